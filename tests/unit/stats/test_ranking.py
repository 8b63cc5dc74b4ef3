"""Ranks and tau-b against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import kendalltau, rankdata

from advsets.stats.ranking import bradley_terry, kendall_tau_b, mean_rank_change, mean_ranks

pairs = st.integers(2, 9).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n) for _ in range(2)])
)


def test_ranks_by_hand() -> None:
    np.testing.assert_array_equal(mean_ranks([0.5, 0.9, 0.5, 0.1]), [2.5, 1, 2.5, 4])


def test_a_row_with_a_missing_score_has_no_ranks() -> None:
    np.testing.assert_array_equal(mean_ranks([[1, np.nan], [1, 2]]), [[np.nan, np.nan], [2, 1]])


@given(pairs)
def test_ranks_and_tau_equal_scipy(pair: tuple[list[int], list[int]]) -> None:
    x, y = pair
    np.testing.assert_array_equal(mean_ranks(x), rankdata([-v for v in x]))
    expected = kendalltau(x, y).statistic
    assert float(kendall_tau_b(x, y)) == pytest.approx(expected, nan_ok=True)


def test_tau_of_many_rows_at_once() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 6, (5, 1, 8)), rng.integers(0, 6, (5, 7, 8))
    found = kendall_tau_b(x, y)
    assert found.shape == (5, 7)
    expected = [[kendalltau(x[i, 0], y[i, j]).statistic for j in range(7)] for i in range(5)]
    np.testing.assert_allclose(found, expected)


def test_tau_without_a_ranking_is_nan() -> None:
    assert np.isnan(kendall_tau_b([1.0], [2.0]))
    assert np.isnan(kendall_tau_b([1.0, 1.0], [1.0, 2.0]))
    assert np.isnan(kendall_tau_b([1.0, np.nan, 3.0], [1.0, 2.0, 3.0]))


def test_rank_change_by_hand() -> None:
    # ranks 1 2 3 become 3 1 2: changes 2, 1, 1
    assert mean_rank_change([9, 8, 7], [1, 3, 2]) == pytest.approx(4 / 3)


@pytest.mark.parametrize("seed", range(4))
def test_bradley_terry_is_the_most_likely_fit(seed: int) -> None:
    wins = np.random.default_rng(seed).integers(0, 6, (5, 5)).astype(float)

    def loss(strengths: np.ndarray) -> float:
        gaps = strengths[:, None] - strengths[None, :]
        return float(((wins + 0.5) * (1 - np.eye(5)) * np.logaddexp(0, -gaps)).sum())

    expected = minimize(loss, np.zeros(5), tol=1e-12).x
    np.testing.assert_allclose(bradley_terry(wins), expected - expected.mean(), atol=1e-4)


def test_bradley_terry_of_one_who_always_wins_is_finite_and_first() -> None:
    found = bradley_terry([[0, 9, 9], [0, 0, 5], [0, 4, 0]])
    assert np.isfinite(found).all()
    assert found[0] > found[1] > found[2]
    assert found.sum() == pytest.approx(0, abs=1e-9)


def test_bradley_terry_of_a_row_does_not_depend_on_its_neighbours() -> None:
    wins = np.random.default_rng(1).integers(0, 6, (3, 4, 4))
    np.testing.assert_array_equal(bradley_terry(wins)[1], bradley_terry(wins[1]))
    assert bradley_terry(np.zeros((2, 1, 1))).tolist() == [[0.0], [0.0]]
