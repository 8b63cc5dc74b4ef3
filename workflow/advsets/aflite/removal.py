"""What a round's scores decide: who leaves, and whether filtering ends.

Conventions
-----------
Only training scores decide when filtering ends, but for a wished number of evaluation rows.
Chance is the share of the most frequent label among the training rows kept, for multiple
choice the mean of 1 / n_candidates over them. All comparisons are between integers or
fractions.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from advsets.aflite.data import FilterData, Split
from advsets.aflite.selection import Units, above_threshold, make_units, take_down_to, take_slice
from advsets.aflite.settings import Counts, FilterSettings

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

TARGET_SIZE = "target_size"
ONE_SHOT = "one_shot"
SLICE_NOT_FILLED = "slice_not_filled"
MIN_RETAINED = "min_retained"
AT_CHANCE = "at_chance"
MAX_ROUNDS = "max_rounds"
STOP_REASONS = (TARGET_SIZE, ONE_SHOT, SLICE_NOT_FILLED, MIN_RETAINED, AT_CHANCE, MAX_ROUNDS)
"""Why filtering ends; where several apply, the first of these is given."""


@dataclass(frozen=True)
class RowScores:
    """Scores of the retained rows of one split.

    `rows` are positions in canonical order; all arrays have shape (n_retained,).
    """

    rows: Ints
    n_held_out: Ints
    n_correct: Ints
    margin: NDArray[np.float64]

    def accuracy(self, kept: Bools | None = None) -> float | None:
        """Share of right predictions among held-out ones, over the rows `kept`; None without any."""
        mask = slice(None) if kept is None else kept
        held_out = int(self.n_held_out[mask].sum())
        return int(self.n_correct[mask].sum()) / held_out if held_out else None


@dataclass(frozen=True)
class Removal:
    """Rows of each split that leave, shape (n_retained,), and why filtering ends, if it does."""

    train: Bools
    evaluation: Bools
    n_tied_at_cut: int
    stop_reason: str | None


def decide(
    data: FilterData,
    settings: FilterSettings,
    counts: Counts,
    seed: int,
    filtering_round: int,
    train: RowScores,
    evaluation: RowScores,
) -> Removal:
    """Rows that leave in this round.

    With a target size, evaluation rows leave most predictable first and never below it; if
    filtering ends above it, the most predictable of the rest follow, whatever the threshold.
    """
    units = _units(data.train, train, seed)
    if settings.one_shot:
        train_removed, n_tied = np.zeros(len(train.rows), dtype=bool), 0
    else:
        candidates = above_threshold(units, settings.threshold, settings.comparison)
        train_removed, n_tied = take_slice(units, candidates, counts.slice_size)
    units = _units(data.evaluation, evaluation, seed)
    n_rows, target = len(evaluation.rows), counts.target_size or 0
    candidates = above_threshold(units, settings.threshold, settings.comparison)
    removed = take_down_to(units, candidates, n_rows, target)
    at_target = counts.target_size is not None and n_rows - int(removed.sum()) <= target
    stop_reason = _stop_reason(data, settings, counts, filtering_round, train, ~train_removed, at_target)
    if stop_reason is not None and counts.target_size is not None:
        removed = take_down_to(units, np.ones_like(candidates), n_rows, target)
    return Removal(train_removed, removed, n_tied, stop_reason)


def _units(split: Split, scores: RowScores, seed: int) -> Units:
    return make_units(
        scores.n_held_out,
        scores.n_correct,
        scores.margin,
        split.hashes[scores.rows],
        seed,
        None if split.groups is None else split.groups[scores.rows],
        split.group_hashes,
    )


def _stop_reason(
    data: FilterData,
    settings: FilterSettings,
    counts: Counts,
    filtering_round: int,
    train: RowScores,
    kept: Bools,
    at_target: bool,
) -> str | None:
    applies = {
        TARGET_SIZE: at_target,
        ONE_SHOT: settings.one_shot,
        SLICE_NOT_FILLED: int((~kept).sum()) < counts.slice_size,
        MIN_RETAINED: int(kept.sum()) <= counts.min_retained,
        AT_CHANCE: settings.stop_at_chance and _at_chance(data.train, train, kept),
        MAX_ROUNDS: filtering_round >= settings.max_rounds,
    }
    return next((reason for reason in STOP_REASONS if applies[reason]), None)


def _at_chance(split: Split, train: RowScores, kept: Bools) -> bool:
    """Whether classifiers do no better than chance on the training rows kept."""
    held_out, correct = int(train.n_held_out[kept].sum()), int(train.n_correct[kept].sum())
    return held_out > 0 and Fraction(correct, held_out) <= chance(split, train.rows[kept])


def chance(split: Split, rows: Ints) -> Fraction:
    """Accuracy of the most frequent label, or of a guess among candidates, on these rows."""
    if split.offsets is None:
        return Fraction(int(np.bincount(split.labels[rows]).max()), len(rows))
    at = np.searchsorted(split.stored, rows)
    sizes, counts = np.unique(np.diff(split.offsets)[at], return_counts=True)
    total = sum((Fraction(int(n), int(size)) for size, n in zip(sizes, counts, strict=True)), Fraction(0))
    return total / len(rows)
