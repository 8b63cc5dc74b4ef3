"""Resampling against loops over drawn rows."""

from __future__ import annotations

import numpy as np
import pytest

from advsets.seeding import rng_for
from advsets.stats import bootstrap
from advsets.stats.bootstrap import (
    fixed_point,
    masked_sums,
    percentile_interval,
    range_over_draws,
    ratio,
    subset_sums,
)


def example(n: int = 60, n_values: int = 3, n_masks: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.random((n, n_values)) < 0.6, rng.random((n, n_masks)) < 0.4


def test_masked_sums_equal_a_loop_over_drawn_rows() -> None:
    values, masks = example()
    found = masked_sums(values, masks, n_draws=20, seed=5)
    for draw in range(20):
        rows = rng_for(5, "bootstrap", draw).integers(0, 60, 60)
        for m in range(masks.shape[1]):
            kept = rows[masks[rows, m]]
            np.testing.assert_array_equal(found[draw, m], values[kept].sum(axis=0))


def test_subset_sums_equal_a_loop_over_permutations() -> None:
    values, _ = example()
    sizes = [7, 0, 60, 7]
    found = subset_sums(values, sizes, n_draws=15, seed=2)
    for draw in range(15):
        places = rng_for(2, "random_subset", draw).permutation(60)
        for s, size in enumerate(sizes):
            np.testing.assert_array_equal(found[draw, s], values[places < size].sum(axis=0))
    np.testing.assert_array_equal(found[:, 0], found[:, 3])


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    values, masks = example()
    whole = masked_sums(values, masks, 30, 0), subset_sums(values, [9, 20], 30, 0)
    monkeypatch.setattr(bootstrap, "_BLOCK_ELEMENTS", 60 * 7)
    monkeypatch.setattr(bootstrap, "_COLUMNS_AT_ONCE", 5)
    np.testing.assert_array_equal(whole[0], masked_sums(values, masks, 30, 0))
    np.testing.assert_array_equal(whole[1], subset_sums(values, [9, 20], 30, 0))


def test_draws_differ_and_depend_on_the_seed() -> None:
    values, masks = example()
    first, other = masked_sums(values, masks, 50, 0), masked_sums(values, masks, 50, 1)
    assert len({row.tobytes() for row in first}) == 50
    assert not np.array_equal(first, other)


def test_fixed_point_sums_are_exact_in_any_order() -> None:
    shares = np.array([1 / 3, 2 / 3, 0.6, 1.0, 0.0] * 200)
    whole, scale = fixed_point(shares)
    shuffled = np.random.default_rng(0).permutation(whole)
    assert whole.sum() == shuffled.sum() == np.cumsum(shuffled)[-1] < 2**53
    assert whole.sum() / scale == pytest.approx(shares.sum(), abs=1e-9)


def test_fixed_point_of_nothing_and_of_zeros() -> None:
    assert fixed_point([])[0].size == 0
    np.testing.assert_array_equal(fixed_point([0.0, 0.0])[0], [0, 0])


def test_large_sums_do_not_lose_units() -> None:
    values = np.full((5, 1), 2**23 + 1)
    found = masked_sums(values, np.ones((5, 1), dtype=bool), 4, 0)
    np.testing.assert_array_equal(found, 5 * (2**23 + 1))


def test_bootstrap_spread_is_that_of_a_mean() -> None:
    values = np.arange(400)[:, None] % 4 == 0
    draws = masked_sums(values, np.ones((400, 1), dtype=bool), 4000, 3)[:, 0, 0] / 400
    assert draws.mean() == pytest.approx(0.25, abs=0.002)
    assert draws.std() == pytest.approx(np.sqrt(0.25 * 0.75 / 400), rel=0.05)


def test_percentiles_leave_out_nan_draws() -> None:
    draws = np.column_stack([np.arange(101.0), np.full(101, np.nan), np.r_[np.nan, np.arange(100.0)]])
    low, high = percentile_interval(draws, 0.9)
    np.testing.assert_allclose(low, [5, np.nan, np.quantile(np.arange(100), 0.05)])
    np.testing.assert_allclose(high, [95, np.nan, np.quantile(np.arange(100), 0.95)])


def test_range_is_mean_lowest_and_highest() -> None:
    mean, low, high = range_over_draws([[1.0, np.nan, 4.0], [3.0, np.nan, np.nan]])
    np.testing.assert_array_equal(mean, [2, np.nan, 4])
    np.testing.assert_array_equal(low, [1, np.nan, 4])
    np.testing.assert_array_equal(high, [3, np.nan, 4])


def test_ratio_of_nothing_is_nan() -> None:
    np.testing.assert_array_equal(ratio([1, 2], [0, 4]), [np.nan, 0.5])
