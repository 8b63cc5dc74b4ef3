"""A round worked by hand, the rules of the stop, and what must not change a result."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from polars.testing import assert_frame_equal

from advsets.aflite import rounds
from advsets.aflite.arrays import split_from_arrays
from advsets.aflite.data import FilterData, prepare
from advsets.aflite.removal import chance
from advsets.aflite.rounds import run_round, run_rounds, start_state
from advsets.aflite.settings import FilterSettings
from advsets.aflite.state import FilterState
from advsets.errors import UserError
from advsets.io import check_frame
from advsets.tables import TABLES


def load(X, y, X_eval=None, y_eval=None, groups=None, eval_groups=None, standardise=True, ids=None) -> FilterData:
    ids = [f"t{i:04d}" for i in range(len(y))] if ids is None else ids
    train = split_from_arrays("train", X, y, ids, groups)
    evaluation = None
    if X_eval is not None:
        eval_ids = [f"v{i:04d}" for i in range(len(y_eval))]
        evaluation = split_from_arrays("evaluation", X_eval, y_eval, eval_ids, eval_groups)
    return prepare(train, evaluation, standardise=standardise)


def run(data: FilterData, seed: int = 0, **settings: Any) -> tuple[FilterState, pl.DataFrame, list[dict[str, Any]]]:
    checked = FilterSettings(**settings)
    counts = checked.resolve(len(data.train.ids), len(data.evaluation.ids))
    results = list(run_rounds(start_state(data, counts), data, checked, counts, seed))
    return results[-1].state, pl.concat([r.scores for r in results]), [r.line for r in results]


def without_times(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in line.items() if not k.endswith("_s")} for line in lines]


def test_a_case_worked_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """One feature; a classifier fitted on one row of each label cuts half-way between the two.

    Subsets {a, d}, {b, e}, {a, e} cut at -0.5, 0.5 and 0. Held out and right: a 1 of 1, b 2 of 2,
    c 0 of 3, d 2 of 2, e 1 of 1, f 0 of 3. The weight w of a subset whose rows are g apart solves
    w = g / (1 + exp(w g / 2)): 0.7157 for g = 5, 0.6837 for g = 6. So the margins of a and e are
    0.7157 * 3.5 = 2.505, those of b and d (0.7157 * 1.5 + 0.6837 * 2) / 2 = 1.220.
    """
    data = load(
        np.array([[-3.0], [-2], [1], [2], [3], [-1]]),
        ["no", "no", "no", "yes", "yes", "yes"],
        np.array([[-1.0], [0.2], [-2]]),
        ["no", "yes", "yes"],
        standardise=False,
        ids=list("abcdef"),
    )
    masks = np.array([[i in subset for i in "abcdef"] for subset in ("ad", "be", "ae")])
    monkeypatch.setattr(rounds, "draw_masks", lambda *args, **kwargs: masks)
    settings = FilterSettings(n_partitions=3, train_size=2, slice_size=2, threshold=0.75, min_retained=2)
    counts = settings.resolve(6, 3)
    state, scores, line = run_round(start_state(data, counts), data, settings, counts, seed=0)

    train = scores.filter(pl.col("split") == "train")
    assert train["n_held_out"].to_list() == [1, 2, 3, 2, 1, 3]
    assert train["n_correct"].to_list() == [1, 2, 0, 2, 1, 0]
    assert train["removed"].to_list() == [True, False, False, False, True, False]
    assert train["margin"].to_list()[0] == pytest.approx(2.505, abs=1e-3)
    assert train["margin"].to_list()[1] == pytest.approx(1.220, abs=1e-3)
    evaluation = scores.filter(pl.col("split") == "evaluation")
    assert evaluation["n_correct"].to_list() == [3, 2, 0]
    assert evaluation["removed"].to_list() == [True, False, False]
    expected = {
        "n_train_before": 6,
        "n_train_removed": 2,
        "n_evaluation_before": 3,
        "n_evaluation_removed": 1,
        "n_tied_at_cut": 4,
        "n_never_held_out": 0,
        "held_out_accuracy": 6 / 12,
        "held_out_accuracy_retained": 4 / 10,
        "evaluation_accuracy": 5 / 9,
        "evaluation_accuracy_retained": 2 / 6,
        "n_converged": 3,
        "stop_reason": None,
    }
    assert {name: line[name] for name in expected} == expected
    assert state.train.removed_in_round.tolist() == [1, 0, 0, 0, 1, 0]


def test_tables_are_as_declared(make_rows) -> None:
    data = load(*make_rows(120), *make_rows(50, seed=1))
    state, scores, lines = run(data, slice_size=0.1)
    check_frame(scores, TABLES["round_scores"])
    check_frame(state.to_frame(data.train.ids, data.evaluation.ids), TABLES["filter_state"])
    check_frame(rounds.lines_frame(lines), TABLES["rounds"])
    assert len(lines) > 2


@pytest.mark.parametrize("n_classes", [2, 3])
def test_threads_change_no_bit(make_rows, n_classes: int) -> None:
    found = []
    for n_threads in (1, 2, 3):
        torch.set_num_threads(n_threads)
        data = load(*make_rows(2600, n_classes, 12), *make_rows(300, n_classes, 12, seed=1))
        state, scores, lines = run(data, n_partitions=8, slice_size=0.3)
        found.append((scores, without_times(lines)))
    for scores, lines in found[1:]:
        assert_frame_equal(scores, found[0][0], check_exact=True)
        assert lines == found[0][1]


def test_permuting_the_rows_permutes_the_output_and_nothing_else(make_rows) -> None:
    X, y = make_rows(150, 3)
    ids = np.array([f"t{i}" for i in range(150)])
    order = np.random.default_rng(5).permutation(150)
    some = run(load(X, y, ids=list(ids)), slice_size=0.2)
    other = run(load(X[order], y[order], ids=list(ids[order])), slice_size=0.2)
    assert_frame_equal(some[1], other[1], check_exact=True)
    assert without_times(some[2]) == without_times(other[2])


def test_evaluation_rows_change_nothing_for_training_rows(make_rows) -> None:
    alone = run(load(*make_rows(150)), slice_size=0.2)
    beside = run(load(*make_rows(150), *make_rows(60, seed=3)), slice_size=0.2)
    only_train = beside[1].filter(pl.col("split") == "train")
    assert_frame_equal(alone[1], only_train, check_exact=True)
    assert alone[2][0]["evaluation_accuracy"] is None


def test_a_round_is_pure(make_rows) -> None:
    data = load(*make_rows(150), *make_rows(60, seed=3))
    settings = FilterSettings(slice_size=0.1)
    counts = settings.resolve(150, 60)
    first = run_round(start_state(data, counts), data, settings, counts, 0)
    before = first.state.to_frame(data.train.ids, data.evaluation.ids)
    again = [run_round(first.state, data, settings, counts, 0) for _ in range(2)]
    assert_frame_equal(before, first.state.to_frame(data.train.ids, data.evaluation.ids))
    assert_frame_equal(again[0].scores, again[1].scores, check_exact=True)
    data.train.shrink(np.flatnonzero(first.state.train.retained))
    shrunk = run_round(first.state, data, settings, counts, 0)
    assert_frame_equal(again[0].scores, shrunk.scores, check_exact=True)
    with pytest.raises(ValueError, match="no longer stored"):
        run_round(start_state(data, counts), data, settings, counts, 0)


def test_a_state_survives_its_table(make_rows) -> None:
    data = load(*make_rows(150), *make_rows(60, seed=3))
    state, _, _ = run(data, slice_size=0.1, max_rounds=2)
    frame = state.to_frame(data.train.ids, data.evaluation.ids).sample(fraction=1, shuffle=True, seed=1)
    back = FilterState.from_frame(frame, data.train.ids, data.evaluation.ids, 2, "max_rounds")
    for name in ("train", "evaluation"):
        for field in dataclasses.fields(state.split(name)):
            found, wanted = (getattr(s.split(name), field.name) for s in (back, state))
            np.testing.assert_array_equal(found, wanted)
    with pytest.raises(ValueError, match="ids are not those of the input"):
        FilterState.from_frame(frame, data.train.ids[1:], data.evaluation.ids, 2, None)


def test_a_row_in_every_subset_is_unknown_and_kept(make_rows) -> None:
    X, y = make_rows(100)
    y[0], X[0] = 2, 50.0
    state, scores, lines = run(load(X, y), slice_size=0.1, max_rounds=3)
    row = scores.filter(pl.col("example_id") == "t0000")
    assert row["n_held_out"].to_list() == [0] * len(lines)
    assert row["predictability"].null_count() == row["margin"].null_count() == len(lines)
    assert not row["removed"].any() and state.train.retained[0]
    assert [line["n_never_held_out"] for line in lines] == [1] * len(lines)


def after_removing(data: FilterData, counts: Any, gone: np.ndarray) -> FilterState:
    """State after one round that removed these training rows."""
    start = start_state(data, counts)
    train = dataclasses.replace(start.train, removed_in_round=gone.astype(np.int64))
    return dataclasses.replace(start, train=train, filtering_round=1)


def test_three_classes_two_rows_of_one_run_through() -> None:
    rng = np.random.default_rng(0)
    y = np.r_[np.zeros(59, int), np.ones(39, int), [2, 2]]
    data = load(rng.normal(size=(100, 3)) + y[:, None], y, rng.normal(size=(9, 3)), np.arange(9) % 3)
    state, scores, lines = run(data, slice_size=0.1)
    assert data.label_order == ["0", "1", "2"] and len(lines) > 1
    assert all(line["n_converged"] == 64 for line in lines)
    assert set(scores.filter(pl.col("split") == "evaluation")["n_held_out"]) == {64}


def test_a_class_that_is_gone_keeps_its_column(make_rows) -> None:
    X, y = make_rows(200, 3)
    data = load(X, y, X[:20] + 0.1, y[:20])
    settings = FilterSettings()
    counts = settings.resolve(200, 20)
    _, scores, line = run_round(after_removing(data, counts, y == 2), data, settings, counts, 0)
    assert line["n_converged"] == 64 and line["n_train_before"] == (y != 2).sum()
    evaluation = scores.filter(pl.col("split") == "evaluation")
    gone = evaluation.filter(pl.Series(y[:20] == 2))
    assert len(gone) > 3 and set(gone["n_held_out"]) == {64} and set(gone["n_correct"]) == {0}
    assert gone["margin"].null_count() == len(gone) and not gone["removed"].any()
    others = evaluation.filter(pl.Series(y[:20] != 2))
    assert others["margin"].null_count() == 0 and others["n_correct"].max() == 64


def test_fewer_than_two_labels_left_is_an_error(make_rows) -> None:
    X, y = make_rows(100)
    data = load(X, y)
    settings = FilterSettings()
    counts = settings.resolve(100, 0)
    wanted = f"filtering round 2: only label '0' is left among {(y == 0).sum()} training rows"
    with pytest.raises(UserError, match=wanted):
        run_round(after_removing(data, counts, y == 1), data, settings, counts, 0)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"slice_size": 0.1, "max_rounds": 2}, "max_rounds"),
        ({"slice_size": 0.1, "threshold": 0.5}, "min_retained"),
        ({"slice_size": 0.6}, "slice_not_filled"),
        ({"slice_size": 0.1, "one_shot": True}, "one_shot"),
        ({"slice_size": 0.1, "stop_at_chance": True}, "at_chance"),
        ({"slice_size": 0.1, "target_size": 40}, "target_size"),
    ],
)
def test_stop_reasons(make_rows, settings: dict[str, Any], reason: str) -> None:
    data = load(*make_rows(150), *make_rows(60, seed=3))
    state, scores, lines = run(data, **settings)
    assert [line["stop_reason"] for line in lines] == [None] * (len(lines) - 1) + [reason]
    assert state.stop_reason == reason
    kept, slice_size = int(state.train.retained.sum()), round(settings["slice_size"] * 150)
    if reason == "max_rounds":
        assert len(lines) == 2
    if reason == "min_retained":
        assert kept <= 19 < kept + slice_size
    if reason == "slice_not_filled":
        assert lines[-1]["n_train_removed"] < slice_size and lines[-1]["n_train_removed"] > 0
    if reason == "one_shot":
        assert len(lines) == 1 and kept == 150 and not state.evaluation.retained.all()
    if reason == "at_chance":
        assert lines[-1]["held_out_accuracy_retained"] < 0.56 < lines[0]["held_out_accuracy_retained"]
        assert kept > 19


def test_a_target_is_met_from_above_by_the_most_predictable(make_rows) -> None:
    rows = load(*make_rows(150), *make_rows(60, seed=3))
    state, scores, lines = run(rows, slice_size=0.1, target_size=40)
    assert state.evaluation.retained.sum() == 40
    last = scores.filter((pl.col("split") == "evaluation") & (pl.col("filtering_round") == len(lines)))
    removed, kept = last.filter("removed"), last.filter(~pl.col("removed"))
    assert removed["predictability"].min() >= kept["predictability"].max()


@pytest.mark.parametrize("target", [5, 0.1])
def test_a_target_below_what_the_threshold_gives_is_met_at_the_stop(make_rows, target: float) -> None:
    settings = {"slice_size": 0.1, "max_rounds": 2, "threshold": 0.97}
    plain, _, _ = run(load(*make_rows(150), *make_rows(60, seed=3)), **settings)
    wanted = 5 if target == 5 else 6
    assert plain.evaluation.retained.sum() > wanted
    state, scores, lines = run(load(*make_rows(150), *make_rows(60, seed=3)), **settings, target_size=target)
    assert state.evaluation.retained.sum() == wanted and state.stop_reason == "max_rounds"
    assert (state.train.retained == plain.train.retained).all()
    last = scores.filter((pl.col("split") == "evaluation") & (pl.col("filtering_round") == 2))
    assert last.filter("removed")["predictability"].min() >= last.filter(~pl.col("removed"))["predictability"].max()


def test_groups_leave_whole_from_both_splits(make_rows) -> None:
    rng = np.random.default_rng(2)
    groups, eval_groups = [f"g{i}" for i in rng.integers(50, size=150)], [f"h{i}" for i in rng.integers(25, size=60)]
    groups[3] = None
    data = load(*make_rows(150), *make_rows(60, seed=3), groups=groups, eval_groups=eval_groups)
    state, scores, lines = run(data, slice_size=0.1, threshold=0.6)
    for split, names in ((state.train, groups), (state.evaluation, eval_groups)):
        removed_in = split.removed_in_round
        for name in set(names) - {None}:
            assert len(set(removed_in[[other == name for other in names]])) == 1
    assert not state.evaluation.retained.all() and len(lines) > 2
    largest = max(groups.count(name) for name in groups)
    assert all(line["n_train_removed"] < 15 + largest for line in lines)


def test_groups_of_one_are_no_groups(make_rows) -> None:
    plain = run(load(*make_rows(150)), slice_size=0.2)
    alone = run(load(*make_rows(150), groups=[None, *[f"g{i}" for i in range(149)]]), slice_size=0.2)
    assert_frame_equal(plain[1], alone[1], check_exact=True)


def test_standardised_features_may_come_on_any_scale(make_rows) -> None:
    X, y = make_rows(150)
    scale, shift = np.array([1e-3, 1, 50, 1e4]), np.array([0, 5, -100, 3])
    plain = run(load(X, y), slice_size=0.2)
    scaled = run(load(X * scale + shift, y), slice_size=0.2)
    assert (plain[0].train.removed_in_round == scaled[0].train.removed_in_round).all()
    raw = run(load(X * scale + shift, y, standardise=False), slice_size=0.2, max_rounds=1)
    first = plain[0].train.removed_in_round == 1
    assert (first != (raw[0].train.removed_in_round == 1)).any()


def test_multiple_choice_follows_its_candidates() -> None:
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(120, 4, 5)), rng.integers(4, size=120)
    X[np.arange(120), y] += 1.5 * rng.random((120, 1))
    state, scores, lines = run(load(X, y), slice_size=0.2)
    turned, _, _ = run(load(X[:, ::-1], 3 - y), slice_size=0.2)
    assert (state.train.removed_in_round == turned.train.removed_in_round).all()
    assert 0.25 < lines[0]["held_out_accuracy"] < 0.9 and len(lines) > 2


def test_candidate_counts_may_differ() -> None:
    rng = np.random.default_rng(4)
    n_candidates = rng.integers(2, 6, size=120)
    X = [rng.normal(size=(n, 5)) for n in n_candidates]
    y = [int(rng.integers(n)) for n in n_candidates]
    for x, label in zip(X, y, strict=True):
        x[label] += 1.5 * rng.random()
    data = load(X, y)
    assert float(chance(data.train, np.arange(120))) == pytest.approx((1 / n_candidates).mean())
    state, scores, lines = run(data, slice_size=0.2)
    left = np.flatnonzero(state.train.retained)
    assert float(chance(data.train, left)) == pytest.approx((1 / n_candidates[left]).mean())
    assert len(lines) > 2 and lines[0]["n_converged"] == 64
    assert scores.filter(pl.col("filtering_round") == 1)["n_held_out"].min() > 30


def test_settings_count_as_they_are_written() -> None:
    counts = FilterSettings(train_size=0.1, slice_size=0.02).resolve(1000, 10)
    assert (counts.train_size, counts.slice_size, counts.min_retained) == (100, 20, 125)
    assert FilterSettings(train_size=0.015).resolve(100).train_size == 2
    assert FilterSettings(slice_size=0.001).resolve(100).slice_size == 1
    assert FilterSettings(train_size=10, min_retained=0.5).resolve(100).min_retained == 50


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"train_size": 1.5}, "train_size: 1.5 is not allowed"),
        ({"train_size": True}, "train_size: True"),
        ({"slice_size": 0}, "slice_size: 0"),
        ({"n_partitions": 0}, "n_partitions: 0"),
        ({"threshold": 1.2}, "threshold: 1.2"),
        ({"threshold": 1.0}, "threshold: 1.0"),
        ({"comparison": "above"}, "comparison: 'above' is not allowed; allowed: more_than, at_least"),
        ({"C": 0}, "C: 0"),
        ({"C": float("nan")}, "C: nan"),
        ({"one_shot": "yes"}, "one_shot: 'yes'"),
        ({"target_size": -3}, "target_size: -3"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        FilterSettings(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"train_size": 100}, "train_size: 100 is 100 of 100 training rows"),
        ({"min_retained": 100}, "min_retained: 100 rows"),
        ({"train_size": 50, "min_retained": 20}, "min_retained: 20 rows"),
        ({"target_size": 5}, "target_size: 5, but there is no evaluation set"),
    ],
)
def test_counts_that_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        FilterSettings(**settings).resolve(100)
    with pytest.raises(UserError, match="target_size: 20 of 20 evaluation rows would remove none"):
        FilterSettings(target_size=20).resolve(100, 20)
