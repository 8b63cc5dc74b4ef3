"""Ranks of models and the agreement of two rankings, for many draws at once.

Conventions
-----------
The last axis holds the things ranked; leading axes are draws or subsets and broadcast.
Rank 1 is the highest score; equal scores share the mean of their ranks.
A row with a NaN score has no ranking: its results are NaN.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def mean_ranks(scores: ArrayLike) -> NDArray[np.float64]:
    """Rank of each score within its row, 1 for the highest, shape of `scores`."""
    values = np.asarray(scores, dtype=np.float64)
    above = (values[..., None, :] > values[..., :, None]).sum(axis=-1)
    equal = (values[..., None, :] == values[..., :, None]).sum(axis=-1)
    ranks = above + (equal + 1) / 2
    return np.where(np.isnan(values).any(axis=-1, keepdims=True), np.nan, ranks)


def kendall_tau_b(x: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
    """Kendall's tau-b between rows of `x` and `y`.

    Parameters
    ----------
    x, y : arrays, shape (..., n_things)
        Scores; leading axes broadcast.

    Returns
    -------
    array, shape (...)
        NaN where a side holds fewer than two distinct scores, or a NaN.
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    sign_x, sign_y = _pair_signs(first), _pair_signs(second)
    concordance = (sign_x * sign_y).sum(axis=-1, dtype=np.int64)
    untied = np.abs(sign_x).sum(axis=-1, dtype=np.int64) * np.abs(sign_y).sum(axis=-1, dtype=np.int64)
    known = (untied > 0) & ~np.isnan(first).any(axis=-1) & ~np.isnan(second).any(axis=-1)
    out = np.full(np.shape(concordance), np.nan)
    np.divide(concordance, np.sqrt(untied), out=out, where=known)
    return out


def _pair_signs(values: NDArray[np.float64]) -> NDArray[np.int8]:
    left, right = np.triu_indices(values.shape[-1], k=1)
    signs = (values[..., left] > values[..., right]).astype(np.int8)
    signs -= values[..., left] < values[..., right]
    return signs


def mean_rank_change(before: ArrayLike, after: ArrayLike) -> NDArray[np.float64]:
    """Mean absolute difference of two rankings of the same things, shape (...)."""
    change = np.abs(mean_ranks(after) - mean_ranks(before))
    return change.mean(axis=-1) if change.shape[-1] else np.full(change.shape[:-1], np.nan)


def bradley_terry(wins: ArrayLike, n_steps: int = 200) -> NDArray[np.float64]:
    """Log-strengths of the Bradley-Terry model, mean 0.

    Every pair gets half a win each way on top of `wins`, so that a model that always wins, or
    never, has a finite strength. Fitted by Hunter's minorisation steps (2004), which are the
    same number for every row, so that a result does not depend on its neighbours.

    Parameters
    ----------
    wins : array, shape (..., n_things, n_things)
        Wins of the row's thing over the column's; a tie is half a win each way. The diagonal is not read.

    Returns
    -------
    array, shape (..., n_things)
    """
    if np.shape(wins)[-1] < 2:
        return np.zeros(np.shape(wins)[:-1])
    off = 1.0 - np.eye(np.shape(wins)[-1])
    counted = (np.asarray(wins, dtype=np.float64) + 0.5) * off
    games = counted + np.swapaxes(counted, -1, -2)
    won = counted.sum(axis=-1)
    strength = np.ones_like(won)
    for _ in range(n_steps):
        pairs = strength[..., :, None] + strength[..., None, :]
        strength = won / np.maximum((games / pairs).sum(axis=-1), np.finfo(np.float64).tiny)
        strength /= np.exp(np.log(np.maximum(strength, np.finfo(np.float64).tiny)).mean(axis=-1, keepdims=True))
    return np.log(strength)
