"""Which rows leave: exact comparison with the threshold, and an order that ties cannot upset.

Conventions
-----------
A unit is what is removed whole: a row, or a group of rows. Its predictability is
n_correct / n_held_out, both summed over its rows; since a group is drawn whole, all of its
rows are held out equally often and this is the mean over rows. Comparison with the
threshold is between integers.
Order: predictability, then mean margin, then a keyed hash of the unit's id (smallest first).
Margins are not rounded (a value on the edge of a grid would fall to either side): equally
predictable units whose margins follow each other by at most `MARGIN_TIE` count as tied, so
that rows with equal vectors tie although their products differ in the last digits.
Quotients of integers below 2**26 are distinct in float64 wherever the fractions are, so
sorting by the quotient is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advsets.aflite.settings import MORE_THAN, as_fraction
from advsets.seeding import mix

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MARGIN_TIE = 1e-9
"""Difference of margins, in logits, that may be rounding: float64 products err by about 1e-13."""


@dataclass(frozen=True)
class Units:
    """Rows or groups of one split that may leave; arrays have shape (n_units,).

    `of_row`, shape (n_rows,), is the unit of each row.
    """

    of_row: Ints
    size: Ints
    n_held_out: Ints
    n_correct: Ints
    margin: Floats
    tie_key: NDArray[np.uint64]

    @property
    def predictability(self) -> Floats:
        """n_correct / n_held_out, nan where never held out."""
        return ratio(self.n_correct, self.n_held_out)

    def order(self) -> Ints:
        """Units held out at least once, most predictable first."""
        known = np.flatnonzero(self.n_held_out > 0)
        rough = known[np.lexsort((-self.margin[known], -self.predictability[known]))]
        if len(rough) == 0:
            return rough
        share, margin = self.predictability[rough], self.margin[rough]
        with np.errstate(invalid="ignore"):
            lower = (share[1:] < share[:-1]) | (margin[:-1] - margin[1:] > MARGIN_TIE)
        level = np.concatenate([[0], np.cumsum(lower)])
        return rough[np.lexsort((self.tie_key[rough], level))]

    def rows_of(self, units: Ints) -> Bools:
        """Rows that belong to `units`, shape (n_rows,)."""
        chosen = np.zeros(len(self.size), dtype=bool)
        chosen[units] = True
        return chosen[self.of_row]


def make_units(
    n_held_out: Ints,
    n_correct: Ints,
    margin: Floats,
    hashes: NDArray[np.uint64],
    seed: int,
    groups: Ints | None = None,
    group_hashes: NDArray[np.uint64] | None = None,
) -> Units:
    """Units of rows with these scores, each of shape (n_rows,), nan margins where unknown."""
    known_margin = np.where(np.isnan(margin), -np.inf, margin)
    if groups is None or group_hashes is None:
        n_rows = len(n_correct)
        ones = np.ones(n_rows, dtype=np.int64)
        return Units(np.arange(n_rows), ones, n_held_out, n_correct, known_margin, mix(hashes, int(seed), "tie"))
    present, of_row = np.unique(groups, return_inverse=True)
    n_units = len(present)
    size = np.bincount(of_row, minlength=n_units)

    def total(values: Ints) -> Ints:
        sums = np.zeros(n_units, dtype=np.int64)
        np.add.at(sums, of_row, values)
        return sums

    mean_margin = np.bincount(of_row, weights=known_margin, minlength=n_units) / size
    tie_key = mix(group_hashes[present], int(seed), "tie")
    return Units(of_row, size, total(n_held_out), total(n_correct), mean_margin, tie_key)


def above_threshold(units: Units, threshold: float, comparison: str) -> Bools:
    """Units that may leave, shape (n_units,): 48 of 64 is not more than 0.75, but at least 0.75."""
    limit = as_fraction(threshold)
    above = np.zeros(len(units.size), dtype=bool)
    for held_out in np.unique(units.n_held_out[units.n_held_out > 0]):
        product = limit * int(held_out)
        fewest = math.floor(product) + 1 if comparison == MORE_THAN else math.ceil(product)
        above |= (units.n_held_out == held_out) & (units.n_correct >= fewest)
    return above


def take_slice(units: Units, candidates: Bools, slice_size: int) -> tuple[Bools, int]:
    """Most predictable candidates until `slice_size` rows are reached.

    The group that reaches it leaves whole, so a slice may exceed `slice_size` by less than
    one group; without groups it never does.

    Returns
    -------
    removed : ndarray of bool, shape (n_rows,)
    n_tied_at_cut : int
        Candidate rows as predictable as the last unit taken; 0 if all candidates were taken.
    """
    order = units.order()
    order = order[candidates[order]]
    reached = np.cumsum(units.size[order])
    n_taken = min(len(order), int(np.searchsorted(reached, slice_size, side="left")) + 1)
    if n_taken == len(order):
        return units.rows_of(order), 0
    last = order[n_taken - 1]
    tied = order[units.predictability[order] == units.predictability[last]]
    return units.rows_of(order[:n_taken]), int(units.size[tied].sum())


def take_down_to(units: Units, candidates: Bools, n_rows: int, target: int) -> Bools:
    """Most predictable candidates, skipping what would leave fewer than `target` of `n_rows` rows."""
    taken: list[int] = []
    order = units.order()
    for unit in order[candidates[order]]:
        size = int(units.size[unit])
        if n_rows - size >= target:
            taken.append(int(unit))
            n_rows -= size
    return units.rows_of(np.array(taken, dtype=np.int64))


def ratio(numerator: Ints | Floats, denominator: Ints) -> Floats:
    """Quotient, nan where the denominator is 0."""
    out = np.full(len(numerator), np.nan)
    np.divide(numerator, denominator, out=out, where=denominator > 0)
    return out
