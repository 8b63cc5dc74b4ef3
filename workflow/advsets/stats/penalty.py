"""Self-adversary penalty: how much worse own cells are than adversary and model effects explain.

Conventions
-----------
Rows of a matrix are adversaries, columns evaluated models. Log-odds are empirical:
log((k + 1/2) / (n - k + 1/2)) for k right of n, in every cell, so that 0 and 1 stay finite
(Haldane 1956, Anscombe 1956).
The additive model `mean + adversary + evaluated model` is fitted by least squares to all cells
that are known, own cells included. So own cells pull the effects towards themselves and their
residuals are smaller than the effect that caused them: with every model once its own adversary
in an m x m matrix, by the factor 1 - 1/m. `recovered_share` is that factor for any matrix;
penalty / recovered_share is the coefficient that an own-cell term in the model would get.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def empirical_log_odds(n_right: ArrayLike, n_examples: ArrayLike) -> NDArray[np.float64]:
    """Log-odds of an accuracy; NaN where there are no examples. Counts may be means over seeds."""
    right, total = np.asarray(n_right, dtype=np.float64), np.asarray(n_examples, dtype=np.float64)
    odds = np.log(right + 0.5) - np.log(total - right + 0.5)
    return np.where(total > 0, odds, np.nan)


def residual_operator(known: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Matrix that takes known cells (row by row) to their residuals of the additive fit.

    Parameters
    ----------
    known : array of bool, shape (n_adversaries, n_models)

    Returns
    -------
    array, shape (n_known, n_known)
    """
    rows, columns = np.nonzero(known)
    effects = np.hstack([np.eye(known.shape[0])[rows], np.eye(known.shape[1])[columns]])
    return np.eye(rows.size) - effects @ np.linalg.pinv(effects)


def additive_residuals(matrix: ArrayLike) -> NDArray[np.float64]:
    """Residuals of the least-squares fit of row and column effects; NaN cells are left out.

    Parameters
    ----------
    matrix : array, shape (n_adversaries, n_models)

    Returns
    -------
    array of the same shape, NaN where the cell is.
    """
    values = np.asarray(matrix, dtype=np.float64)
    known = ~np.isnan(values)
    residuals = np.full(values.shape, np.nan)
    residuals[known] = residual_operator(known) @ values[known]
    return residuals


def mean_residual_weights(known: NDArray[np.bool_], chosen: NDArray[np.bool_]) -> NDArray[np.float64] | None:
    """Weights w so that w @ matrix[known] is the mean residual of the chosen known cells.

    Returns
    -------
    array, shape (n_known,), or None where no chosen cell is known, or the fit is exact in all of
    them whatever their values, as in a matrix of one row.
    """
    picked = (chosen & known)[known]
    if not picked.any():
        return None
    weights = residual_operator(known)[picked].mean(axis=0)
    return weights if np.abs(weights).max() > 1e-9 else None


def recovered_share(known: NDArray[np.bool_], chosen: NDArray[np.bool_]) -> float:
    """Mean residual that an effect of 1 in every chosen cell, and nowhere else, leaves in them (0-1)."""
    weights = mean_residual_weights(known, chosen)
    return 0.0 if weights is None else float(weights @ chosen[known])
