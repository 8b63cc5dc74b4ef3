"""One filter of several adversaries: their scores of the same rows, made into one.

Conventions
-----------
Members see the same rows, labels and draws, each in its own representation. With `mean` every
classifier of every member counts alike: held-out and right ones are added up. With `minimum` a row
has the scores of the member that predicts it worst (lowest predictability, then lowest margin, then
the first member), so it leaves only if every member predicts it well enough.
A member that never held a row out says nothing about it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from advsets.aflite.removal import RowScores
from advsets.aflite.selection import ratio
from advsets.aflite.settings import MEAN


def combine(scores: Sequence[RowScores], combination: str) -> RowScores:
    """Scores of an ensemble from those of its members, all of the same rows."""
    if len(scores) == 1:
        return scores[0]
    return _mean(scores) if combination == MEAN else _minimum(scores)


def _mean(scores: Sequence[RowScores]) -> RowScores:
    n_held_out = np.stack([s.n_held_out for s in scores])
    margin = np.stack([s.margin for s in scores])
    known = (n_held_out > 0) & ~np.isnan(margin)
    total = (np.where(known, margin, 0.0) * n_held_out).sum(axis=0)
    return RowScores(
        scores[0].rows,
        n_held_out.sum(axis=0),
        np.stack([s.n_correct for s in scores]).sum(axis=0),
        ratio(total, (n_held_out * known).sum(axis=0)),
    )


def _minimum(scores: Sequence[RowScores]) -> RowScores:
    worst = np.zeros(len(scores[0].rows), dtype=np.int64)
    lowest = _rank_keys(scores[0])
    for member, other in enumerate(scores[1:], start=1):
        keys = _rank_keys(other)
        below = (keys[0] < lowest[0]) | ((keys[0] == lowest[0]) & (keys[1] < lowest[1]))
        worst[below] = member
        lowest = (np.where(below, keys[0], lowest[0]), np.where(below, keys[1], lowest[1]))

    def pick(name: str) -> NDArray:
        return np.stack([getattr(s, name) for s in scores])[worst, np.arange(len(worst))]

    return RowScores(scores[0].rows, pick("n_held_out"), pick("n_correct"), pick("margin"))


def _rank_keys(scores: RowScores) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Predictability and margin to compare by: infinite where never held out, lowest where the margin is unknown."""
    known = scores.n_held_out > 0
    predictability = np.where(known, ratio(scores.n_correct, scores.n_held_out), np.inf)
    margin = np.where(np.isnan(scores.margin), -np.inf, scores.margin)
    return predictability, np.where(known, margin, np.inf)
