"""The additive fit against least squares on a dummy matrix, and what it recovers."""

from __future__ import annotations

import numpy as np
import pytest

from advsets.stats.penalty import (
    additive_residuals,
    empirical_log_odds,
    mean_residual_weights,
    recovered_share,
)


def dummy_residuals(matrix: np.ndarray) -> np.ndarray:
    """Least squares on intercept and dummies, solved by numpy, cell by cell."""
    cells = [(i, j) for i in range(matrix.shape[0]) for j in range(matrix.shape[1]) if not np.isnan(matrix[i, j])]
    design = np.zeros((len(cells), 1 + sum(matrix.shape)))
    for row, (i, j) in enumerate(cells):
        design[row, [0, 1 + i, 1 + matrix.shape[0] + j]] = 1
    values = np.array([matrix[c] for c in cells])
    solution = np.linalg.lstsq(design, values, rcond=None)[0]
    out = np.full(matrix.shape, np.nan)
    for (i, j), residual in zip(cells, values - design @ solution, strict=True):
        out[i, j] = residual
    return out


def test_log_odds_by_hand() -> None:
    np.testing.assert_allclose(empirical_log_odds([0, 3, 10], [10, 4, 10]), np.log([0.5 / 10.5, 3.5 / 1.5, 10.5 / 0.5]))
    assert np.isnan(empirical_log_odds(0, 0))


def test_balanced_residuals_by_hand() -> None:
    # means: rows 1, 3; columns 1, 3; all 2: residual = value - row - column + 2
    np.testing.assert_allclose(additive_residuals([[1.0, 1.0], [1.0, 5.0]]), [[1, -1], [-1, 1]], atol=1e-12)


@pytest.mark.parametrize("n_missing", [0, 3, 9])
def test_residuals_equal_dummy_least_squares(n_missing: int) -> None:
    rng = np.random.default_rng(n_missing)
    matrix = rng.normal(size=(5, 6))
    matrix.ravel()[rng.choice(30, n_missing, replace=False)] = np.nan
    np.testing.assert_allclose(additive_residuals(matrix), dummy_residuals(matrix), atol=1e-10)


def test_a_whole_missing_row_is_left_out() -> None:
    matrix = np.random.default_rng(0).normal(size=(4, 3))
    matrix[2] = np.nan
    rest = np.delete(matrix, 2, axis=0)
    np.testing.assert_allclose(np.delete(additive_residuals(matrix), 2, axis=0), additive_residuals(rest), atol=1e-10)


def test_weights_give_the_mean_residual() -> None:
    rng = np.random.default_rng(1)
    matrix, chosen = rng.normal(size=(4, 5)), rng.random((4, 5)) < 0.3
    matrix[0, 1] = np.nan
    known = ~np.isnan(matrix)
    weights = mean_residual_weights(known, chosen)
    assert weights @ matrix[known] == pytest.approx(additive_residuals(matrix)[chosen & known].mean())


@pytest.mark.parametrize("m", [2, 4, 18])
def test_own_cells_are_shrunk_by_one_over_m(m: int) -> None:
    known, own = np.ones((m, m), dtype=bool), np.eye(m, dtype=bool)
    assert recovered_share(known, own) == pytest.approx(1 - 1 / m)


def test_penalty_over_recovered_share_is_the_coefficient_of_an_own_term() -> None:
    rng = np.random.default_rng(2)
    matrix = rng.normal(size=(4, 6))
    known, own = rng.random((4, 6)) < 0.85, np.eye(4, 6, dtype=bool)
    rows, columns = np.nonzero(known)
    design = np.hstack([np.eye(4)[rows], np.eye(6)[columns], own[known][:, None]])
    coefficient = np.linalg.lstsq(design, matrix[known], rcond=None)[0][-1]
    penalty = mean_residual_weights(known, own) @ matrix[known]
    assert penalty / recovered_share(known, own) == pytest.approx(coefficient)


@pytest.mark.parametrize("shape", [(1, 4), (4, 1), (1, 1)])
def test_one_row_or_column_says_nothing(shape: tuple[int, int]) -> None:
    known = np.ones(shape, dtype=bool)
    assert mean_residual_weights(known, np.eye(*shape, dtype=bool)) is None
    assert recovered_share(known, np.eye(*shape, dtype=bool)) == 0


def test_no_chosen_cell_says_nothing() -> None:
    assert mean_residual_weights(np.ones((3, 3), dtype=bool), np.zeros((3, 3), dtype=bool)) is None
