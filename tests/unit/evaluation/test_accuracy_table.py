"""Table `accuracy` on hand-worked cases."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from advsets.evaluation.accuracy import accuracy
from advsets.evaluation.study import Study
from advsets.io import write_table
from advsets.seeding import rng_for

Make = Callable[..., Study]


def rows(frame: pl.DataFrame, **where: object) -> list[dict]:
    for column, value in where.items():
        frame = frame.filter(pl.col(column) == value)
    return frame.to_dicts()


def test_by_hand(make_study: Make) -> None:
    frame = accuracy(make_study({("m", 0): [1, 1, 1, 0, 0, 1]}, {("a", 3): [0, 1, 0, 1, 1, 0]}))
    (full,) = rows(frame, subset="full_set")
    assert (full["n_examples"], full["accuracy"]) == (6, pytest.approx(4 / 6))
    assert (full["adversary"], full["adversary_seed"]) == (None, None)
    (filtered,) = rows(frame, subset="filtered", adversary="a", adversary_seed=3)
    assert (filtered["n_examples"], filtered["accuracy"]) == (3, pytest.approx(1 / 3))
    (random,) = rows(frame, subset="random_subset")
    assert random["n_examples"] == 3
    assert random["accuracy_low"] <= random["accuracy"] <= random["accuracy_high"]


def test_random_subsets_have_the_accuracy_of_the_full_set(make_study: Make) -> None:
    right = (np.arange(500) % 5 > 0).astype(int)
    study = make_study(
        {("m", 0): right}, {("a", 0): (np.arange(500) < 100)}, changes={"n_random_subsets": 2000, "n_bootstrap": 1}
    )
    (random,) = rows(accuracy(study), subset="random_subset")
    assert random["accuracy"] == pytest.approx(0.8, abs=0.003)
    assert random["accuracy_low"] < 0.75 < 0.85 < random["accuracy_high"]


def test_bounds_equal_a_brute_force_bootstrap(make_study: Make) -> None:
    rng = np.random.default_rng(0)
    right, kept = rng.random(80) < 0.7, rng.random(80) < 0.5
    frame = accuracy(make_study({("m", 0): right}, {("a", 0): kept}, changes={"n_bootstrap": 300, "seed": 9}))
    drawn = [rng_for(9, "bootstrap", b).integers(0, 80, 80) for b in range(300)]
    full = np.quantile([right[d].mean() for d in drawn], [0.025, 0.975])
    filtered = np.quantile([right[d][kept[d]].mean() for d in drawn], [0.025, 0.975])
    (row,) = rows(frame, subset="full_set")
    np.testing.assert_allclose([row["accuracy_low"], row["accuracy_high"]], full)
    (row,) = rows(frame, subset="filtered")
    np.testing.assert_allclose([row["accuracy_low"], row["accuracy_high"]], filtered)


def test_an_empty_subset_gives_nulls(make_study: Make, tmp_path) -> None:
    frame = accuracy(make_study({("m", 0): [1, 0, 1]}, {("a", 0): [0, 0, 0]}))
    for subset in ("filtered", "random_subset"):
        (row,) = rows(frame, subset=subset)
        assert (row["n_examples"], row["accuracy"], row["accuracy_low"], row["accuracy_high"]) == (0, None, None, None)
    write_table(frame, tmp_path / "accuracy.parquet", "accuracy")


def test_no_adversary_gives_the_full_set_alone(make_study: Make) -> None:
    frame = accuracy(make_study({("m", 0): [1, 0, 1], ("m", 1): [1, 1, 1]}, {}))
    assert frame["subset"].to_list() == ["full_set"] * 2
