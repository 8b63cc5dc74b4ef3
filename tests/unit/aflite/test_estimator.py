"""The estimator: scikit-learn's conventions, input order, and the results of the file run."""

from __future__ import annotations

import doctest
import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from sklearn.base import clone

from advsets import AFLite
from advsets.aflite.run import filter_files
from advsets.aflite.settings import FilterSettings
from advsets.errors import UserError
from advsets.io import read_table

SETTINGS: dict[str, Any] = {"n_partitions": 16, "slice_size": 0.15, "threshold": 0.6, "max_rounds": 3}


def model(**changes: Any) -> AFLite:
    return AFLite(**{**SETTINGS, "device": "cpu", **changes})


def test_parameters_are_those_of_the_settings_with_the_same_defaults() -> None:
    found = {name: p.default for name, p in inspect.signature(AFLite.__init__).parameters.items() if name != "self"}
    for field in fields(FilterSettings):
        assert found.pop(field.name) == field.default
    assert found == {"random_state": 0, "device": "auto", "n_threads": None, "combination": None}


def test_get_params_set_params_clone_and_repr() -> None:
    one = model(C=2.0)
    assert one.get_params()["C"] == 2.0 and clone(one).get_params() == one.get_params()
    assert one.set_params(threshold=0.9).threshold == 0.9
    assert "threshold=0.9" in repr(one)


def test_settings_are_checked_in_fit(make_rows) -> None:
    wrong = AFLite(threshold=7)
    with pytest.raises(UserError, match="threshold: 7 is not allowed"):
        wrong.fit(*make_rows(50))


def test_attributes_are_in_input_order_and_follow_a_permutation(make_rows) -> None:
    X, y = make_rows(150)
    X_eval, y_eval = make_rows(60, seed=3)
    ids, eval_ids = np.array([f"t{i}" for i in range(150)]), np.array([f"v{i}" for i in range(60)])
    one = model().fit(X, y, ids, eval_set=(X_eval, y_eval), eval_ids=eval_ids)
    rng = np.random.default_rng(0)
    order, eval_order = rng.permutation(150), rng.permutation(60)
    other = model().fit(
        X[order], y[order], ids[order], eval_set=(X_eval[eval_order], y_eval[eval_order]), eval_ids=eval_ids[eval_order]
    )
    for name in ("retained_", "removed_in_round_", "predictability_", "margin_"):
        np.testing.assert_array_equal(getattr(one, name)[order], getattr(other, name))
        np.testing.assert_array_equal(getattr(one, f"eval_{name}")[eval_order], getattr(other, f"eval_{name}"))
    assert_frame_equal(one.round_scores_, other.round_scores_, check_exact=True)
    removed = one.round_scores_.filter(pl.col("removed") & (pl.col("split") == "train"))
    assert set(ids[~one.retained_]) == set(removed["example_id"]) and 0 < len(removed) < 150
    np.testing.assert_array_equal(one.retained_, one.removed_in_round_ == 0)


def test_the_file_run_gives_the_same(tmp_path: Path, make_rows, write_rows) -> None:
    X, y = make_rows(150, 3)
    X_eval, y_eval = make_rows(60, 3, seed=3)
    train, evaluation = tmp_path / "t.parquet", tmp_path / "v.parquet"
    write_rows(train, X, y, [f"t{i}" for i in range(150)])
    write_rows(evaluation, X_eval, y_eval, [f"v{i}" for i in range(60)])
    filter_files(train, evaluation, tmp_path / "out", FilterSettings(**SETTINGS), seed=4, device="cpu", progress=False)
    one = model(random_state=4)
    one.fit(X, y, [f"t{i}" for i in range(150)], None, (X_eval, y_eval), [f"v{i}" for i in range(60)])
    scores = read_table(tmp_path / "out" / "round_scores.parquet", "round_scores")
    key = ["filtering_round", "split", "example_id"]
    assert_frame_equal(scores, one.round_scores_.sort(key), check_exact=True)
    rounds = read_table(tmp_path / "out" / "rounds.parquet", "rounds")
    assert_frame_equal(rounds.drop("duration_s"), one.rounds_.drop("duration_s"), check_exact=True)
    assert one.n_rounds_ == 3 and one.stop_reason_ == "max_rounds" and one.classes_.tolist() == ["0", "1", "2"]
    assert one.n_features_in_ == 4


def test_without_ids_row_numbers_serve(make_rows) -> None:
    X, y = make_rows(150)
    plain = model().fit(X, y, eval_set=make_rows(60, seed=3))
    numbered = model().fit(X, y, range(150), eval_set=make_rows(60, seed=3))
    np.testing.assert_array_equal(plain.removed_in_round_, numbered.removed_in_round_)
    turned = model().fit(X[::-1], y[::-1])
    assert (turned.removed_in_round_[::-1] != plain.removed_in_round_).any()


def test_input_is_left_as_it_was_and_may_be_of_any_float_type_or_a_frame(make_rows) -> None:
    X, y = make_rows(150)
    X = X.astype(np.float16)
    before = X.copy()
    half = model().fit(X, y)
    np.testing.assert_array_equal(X, before)
    for other in (X.astype(np.float32), X.astype(np.float64), pd.DataFrame(X.astype(np.float64)), X.tolist()):
        found = model().fit(other, list(y))
        np.testing.assert_array_equal(found.removed_in_round_, half.removed_in_round_)
    strings = model().fit(X, np.array(["a", "b"])[y])
    np.testing.assert_array_equal(strings.removed_in_round_, half.removed_in_round_)
    assert strings.classes_.tolist() == ["a", "b"]


def test_multiple_choice_as_array_or_list(make_rows) -> None:
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(120, 3, 5)).astype(np.float32), rng.integers(3, size=120)
    X[np.arange(120), y] += 1.5 * rng.random((120, 1))
    one = model().fit(X, y, eval_set=(X[:20], y[:20]))
    other = model().fit(list(X), y, eval_set=(list(X[:20]), y[:20]))
    np.testing.assert_array_equal(one.removed_in_round_, other.removed_in_round_)
    np.testing.assert_array_equal(one.eval_removed_in_round_, other.eval_removed_in_round_)
    assert not one.retained_.all() and one.classes_.tolist() == []


def test_groups_leave_together(make_rows) -> None:
    X, y = make_rows(150)
    groups = np.array([f"g{i}" for i in np.random.default_rng(1).integers(60, size=150)])
    found = model().fit(X, y, groups=groups)
    for group in set(groups):
        assert len(set(found.removed_in_round_[groups == group])) == 1
    assert not found.retained_.all()


def test_random_state_may_be_a_generator(make_rows) -> None:
    X, y = make_rows(150)
    one = model(random_state=np.random.RandomState(3)).fit(X, y)
    other = model(random_state=np.random.RandomState(3)).fit(X, y)
    np.testing.assert_array_equal(one.removed_in_round_, other.removed_in_round_)
    assert (model(random_state=1).fit(X, y).removed_in_round_ != one.removed_in_round_).any()


def bad(kind: str, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    nan = X.copy()
    nan[7, 1] = np.nan
    return {
        "nan": {"X": nan, "y": y},
        "length": {"X": X, "y": y[:-1]},
        "axes": {"X": X[:, 0], "y": y},
        "text": {"X": X.astype(str), "y": y},
        "one class": {"X": X, "y": np.zeros(len(y))},
        "missing label": {"X": X, "y": [None, *y[1:]]},
        "same id twice": {"X": X, "y": y, "ids": ["a"] * len(y)},
        "id in both": {"X": X, "y": y, "ids": range(60), "eval_set": (X, y), "eval_ids": range(59, 119)},
        "no pair": {"X": X, "y": y, "eval_set": X},
        "ids alone": {"X": X, "y": y, "eval_ids": range(60)},
        "other width": {"X": X, "y": y, "eval_set": (X[:, :2], y)},
        "other candidates": {"X": [X[:2], X[:2, :3]], "y": [0, 1]},
    }[kind]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("nan", r"training rows: 1 example\(s\) .* first 7"),
        ("length", "training rows: y has 59 values for 60 rows"),
        ("axes", "training rows: X has 1 axes"),
        ("text", "training rows: X has values of type <U"),
        ("one class", "training rows: every row has label '0.0'"),
        ("missing label", r"training rows: 1 row\(s\) without a label, first 0"),
        ("same id twice", "training rows: example_id 'a' stands in more than one row"),
        ("id in both", r"evaluation rows: 1 example_id\(s\) also stand in training rows, first 59"),
        ("no pair", "eval_set: not a pair"),
        ("ids alone", "eval_set: missing, but eval_ids"),
        ("other width", "evaluation rows: vectors have 2 elements, those of training rows 4"),
        ("other candidates", r"training rows: example '1' has candidates of shape \(2, 3\)"),
    ],
)
def test_bad_input_is_refused(make_rows, kind: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        model().fit(**bad(kind, *make_rows(60)))


def test_the_example_of_the_docstring_runs() -> None:
    from advsets.aflite import estimator

    failed, n_tried = doctest.testmod(estimator)
    assert failed == 0 and n_tried > 5
