"""Joins by id, and what is said when they do not fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from advsets.errors import UserError
from advsets.evaluation.inputs import EvaluationInputs
from advsets.evaluation.settings import EvaluateSettings
from advsets.evaluation.study import Study

Make = Callable[..., Study]


def rewrite(path: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    change(pl.read_parquet(path)).write_parquet(path)


def broken(make_study: Make, change: Callable[[pl.DataFrame], pl.DataFrame]) -> EvaluationInputs:
    inputs = make_study({("m", 0): [1, 0, 1, 1]}, {("a", 0): [1, 0, 1, 0]}).inputs
    rewrite(inputs.predictions["m", 0], change)
    return inputs


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.head(3), r"predictions-m-0.parquet: 1 missing example_id: e00003; .*examples.parquet"),
        (
            lambda f: f.with_columns(example_id=pl.col("example_id").replace("e00001", "x")),
            r"1 missing example_id: e00001",
        ),
        (
            lambda f: pl.concat([f, f.head(1).with_columns(example_id=pl.lit("x"))]),
            r"1 unknown example_id: x; allowed: exactly one row for each of the 4 examples",
        ),
        (lambda f: pl.concat([f, f.head(2)]), r"2 repeated example_id: e00000, e00001"),
        (lambda f: f.drop("predicted_label"), r"column 'predicted_label' is missing"),
    ],
)
def test_coverage_is_checked(make_study: Make, change, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        _ = broken(make_study, change).correct
    assert "\n" not in str(caught.value)


def test_retained_is_checked_too(make_study: Make) -> None:
    inputs = make_study({}, {("a", 0): [1, 0, 1, 0]}).inputs
    rewrite(inputs.retained["a", 0], lambda f: f.tail(2))
    with pytest.raises(UserError, match=r"retained-a-0.parquet: 2 missing example_id: e00000, e00001"):
        _ = inputs.masks


def test_rows_in_any_order_are_joined_by_id(make_study: Make) -> None:
    inputs = broken(make_study, lambda f: f.sample(fraction=1, shuffle=True, seed=3))
    np.testing.assert_array_equal(inputs.correct[:, 0], [1, 0, 1, 1])


def test_no_examples(make_study: Make) -> None:
    inputs = broken(make_study, lambda f: f)
    rewrite(inputs.examples, lambda f: f.head(0))
    with pytest.raises(UserError, match="examples.parquet: no examples"):
        _ = inputs.frame


def test_relations(make_study: Make) -> None:
    inputs = make_study({("m", 0): [1]}, {}, families={"a": "f", "b": "f", "c": "g"}).inputs
    pairs = [("a", "a"), ("a", "b"), ("a", "c"), ("unnamed", "a"), ("unnamed", "unnamed")]
    found = [inputs.relation(*pair) for pair in pairs]
    assert found == ["self", "same_family", "other", "other", "self"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("n_bootstrap", 0),
        ("n_random_subsets", 0),
        ("n_agreement_bins", 0),
        ("n_predictability_bins", 0),
        ("confidence", 1.0),
        ("confidence", 0.0),
    ],
)
def test_settings_name_the_key(key: str, value: float) -> None:
    good = {"n_bootstrap": 9, "confidence": 0.9, "n_random_subsets": 9, "seed": 0}
    good |= {"n_agreement_bins": 3, "n_predictability_bins": 3}
    with pytest.raises(UserError, match=rf"^{key}: {value}; allowed"):
        EvaluateSettings(**{**good, key: value})
