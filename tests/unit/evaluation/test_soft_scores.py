"""Models against the distributions of a data set's own and of more annotators."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy

from advsets.evaluation.soft_scores import MEASURES, soft_scores
from advsets.evaluation.study import Study
from advsets.io import check_frame, write_table
from advsets.tables import TABLES

Make = Callable[..., Study]


@pytest.fixture
def with_more(make_study: Make, tmp_path: Path) -> Make:
    """Study whose examples (by number) have counts of more annotators."""

    def make(more: dict[int, list[int]], *arguments: Any, **keys: Any) -> Study:
        study = make_study(*arguments, **keys)
        frame = pl.DataFrame(
            {"example_id": [f"e{i:05d}" for i in more], "label_count": list(more.values())},
            schema={"example_id": pl.String, "label_count": pl.List(pl.Int64)},
        )
        write_table(frame, tmp_path / "more.parquet", "more_annotators")
        inputs = dataclasses.replace(study.inputs, more_annotators=tmp_path / "more.parquet")
        return Study(inputs, study.settings)

    return make


def one(frame: pl.DataFrame, **where: Any) -> dict[str, Any]:
    (row,) = frame.filter(*(pl.col(key).eq_missing(pl.lit(value)) for key, value in where.items())).to_dicts()
    return row


def test_more_annotators_by_hand(with_more: Make) -> None:
    q = {("m", 0): [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]}
    # gold labels are no, yes, no, yes; the model is right on the first three
    more = {0: [60, 40], 1: [70, 30], 3: [50, 50]}
    study = with_more(more, {("m", 0): [1, 1, 1, 0]}, {("a", 0): [0, 1, 1, 1]}, probabilities=q)
    frame = soft_scores(study)
    check_frame(frame, TABLES["soft_scores"])
    assert set(frame["annotators"]) == {"more_annotators"}, "the data set has none of its own"
    p = {i: np.array(counts) / 100 for i, counts in more.items()}
    for subset, adversary, chosen in (("full_set", None, [0, 1, 3]), ("filtered", "a", [1, 3])):
        row = one(frame, subset=subset, adversary=adversary)
        assert row["n_examples"] == len(chosen) and row["n_majority"] == len(chosen) - 1, "one tie"
        probabilities = {i: q["m", 0][i] for i in chosen}
        distances = [jensenshannon(p[i], x) for i, x in probabilities.items()]
        assert row["js_distance"] == pytest.approx(np.mean(distances))
        assert row["kl_nats"] == pytest.approx(np.mean([entropy(p[i], x) for i, x in probabilities.items()]))
        crossed = [entropy(p[i]) + entropy(p[i], x) for i, x in probabilities.items()]
        assert row["cross_entropy_nats"] == pytest.approx(np.mean(crossed))
    assert one(frame, subset="full_set")["majority_accuracy"] == 0.5, "right of 0, wrong of 1, whose majority is new"
    assert one(frame, subset="filtered")["majority_accuracy"] == 0.0


def test_both_groups_of_annotators_stand_side_by_side(with_more: Make) -> None:
    counts = [[5, 0], [1, 4], None, [2, 3]]
    study = with_more({1: [10, 90]}, {("m", 0): [1, 1, 1, 1]}, {}, label_count=counts)
    frame = soft_scores(study)
    sizes = dict(frame.select("annotators", "n_examples").rows())
    assert sizes == {"own": 3, "more_annotators": 1}
    assert frame["annotators"].to_list() == ["more_annotators", "own"], "sorted by key"


def test_label_counts_beyond_the_classes_are_left_out(with_more: Make) -> None:
    q = {("m", 0): [[0.5, 0.5]] * 3}
    more = {0: [30, 10, 60], 1: [0, 0, 100]}
    row = one(soft_scores(with_more(more, {("m", 0): [1, 1, 1]}, {}, probabilities=q)), subset="full_set")
    assert row["n_examples"] == 1
    assert row["js_distance"] == pytest.approx(jensenshannon([0.75, 0.25], [0.5, 0.5]))
    assert row["majority_accuracy"] == 1.0


def test_no_more_annotators_for_any_row(with_more: Make) -> None:
    assert soft_scores(with_more({}, {("m", 0): [1, 0]}, {("a", 0): [1, 1]})).is_empty()


def test_intervals_cover_the_truth_and_shrink_with_n(make_study: Make) -> None:
    """Mean of the bounds' width against the normal approximation of the mean's standard error."""
    rng = np.random.default_rng(0)
    for n in (100, 900):
        p = rng.dirichlet([2, 2], n)
        q = {("m", 0): rng.dirichlet([1, 1], n).tolist()}
        counts = np.rint(p * 100).astype(int).tolist()
        study = make_study(
            {("m", 0): [1] * n},
            {("a", 0): [1] * (n // 2) + [0] * (n - n // 2)},
            probabilities=q,
            label_count=counts,
            changes={"n_bootstrap": 1000},
        )
        frame = soft_scores(study)
        each = np.array([jensenshannon(np.array(c) / sum(c), x) for c, x in zip(counts, q["m", 0], strict=True)])
        for subset, values in (("full_set", each), ("filtered", each[: n // 2])):
            row = one(frame, subset=subset)
            half = 1.96 * values.std() / np.sqrt(len(values))
            assert row["js_distance"] == pytest.approx(values.mean())
            assert row["js_distance_low"] == pytest.approx(values.mean() - half, abs=0.15 * half)
            assert row["js_distance_high"] == pytest.approx(values.mean() + half, abs=0.15 * half)


def test_random_subsets_are_of_the_annotated_part(with_more: Make) -> None:
    rng = np.random.default_rng(2)
    n = 200
    more = {i: [int(c), 100 - int(c)] for i, c in zip(range(0, n, 2), rng.integers(0, 101, n // 2), strict=True)}
    kept = [1 if i < 60 else 0 for i in range(n)]
    q = {("m", 0): rng.dirichlet([2, 3], n).tolist()}
    study = with_more(more, {("m", 0): [1] * n}, {("a", 0): kept}, probabilities=q, changes={"n_random_subsets": 400})
    frame = soft_scores(study)
    full, filtered, random = (one(frame, subset=s) for s in ("full_set", "filtered", "random_subset"))
    assert (full["n_examples"], filtered["n_examples"], random["n_examples"]) == (100, 30, 30)
    for name in MEASURES:
        assert random[f"{name}_low"] < full[name] < random[f"{name}_high"]
        spread = random[f"{name}_high"] - random[f"{name}_low"]
        assert random[name] == pytest.approx(full[name], abs=spread / 20)


def test_order_of_rows_and_seeds_changes_nothing(with_more: Make) -> None:
    q = {("m", s): [[0.9 - 0.2 * s, 0.1 + 0.2 * s], [0.3, 0.7]] for s in range(2)}
    runs = {("m", 0): [1, 1], ("m", 1): [0, 1]}
    frames = [
        soft_scores(with_more(more, runs, {("a", 0): [1, 0]}, probabilities=q))
        for more in ({0: [9, 1], 1: [4, 6]}, {1: [4, 6], 0: [9, 1]})
    ]
    assert frames[0].equals(frames[1])
    assert one(frames[0], subset="full_set")["majority_accuracy"] == 0.75, "mean over seeds"
