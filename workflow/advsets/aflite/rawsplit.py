"""One split as it came, in canonical order, and the checks that it must pass.

Conventions
-----------
Canonical order is that of `example_id` by code points. `x` is float32 of shape
(n_rows, n_features): one row per example, or for multiple choice the candidates of example i
in rows `offsets[i]:offsets[i + 1]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advsets.errors import UserError, allowed

BLOCK_VALUES = 2**19
"""Feature values worked on at a time: 4 MiB in float64."""
SHOWN = 3
"""Ids named in a message."""


@dataclass
class RawSplit:
    """Rows of one file or array; `where` names it in messages.

    `order`, shape (n_examples,), is the input position of each row. `groups` is None when no
    groups were given; a group of None stands for the row alone.
    """

    where: str
    order: NDArray[np.int64]
    ids: list[str]
    labels: list[str]
    groups: list[str | None] | None
    x: NDArray[np.float32]
    offsets: NDArray[np.int64] | None

    @property
    def is_multiple_choice(self) -> bool:
        return self.offsets is not None

    def check(self) -> None:
        """Raise `UserError` for values that no filter can use."""
        if self.offsets is not None:
            self._check_candidates(np.diff(self.offsets))
        if self.x.shape[1] == 0:
            raise UserError(f"{self.where}: vectors have no elements; allowed: at least one feature; write them again")
        check_finite(self.where, self.ids, self.x, self.offsets, "NaN, infinite or too large for float32")

    def _check_candidates(self, n_candidates: NDArray[np.int64]) -> None:
        if (n_candidates < 2).any():
            short = int(np.argmax(n_candidates < 2))
            raise UserError(
                f"{self.where}: example {self.ids[short]!r} has {n_candidates[short]} candidate vector(s);"
                " allowed: at least 2; mend or drop the row"
            )
        for example_id, label, n in zip(self.ids, self.labels, n_candidates, strict=True):
            if not (label.isascii() and label.isdigit() and int(label) < n):
                raise UserError(
                    f"{self.where}: example {example_id!r} has label {label!r}; allowed: index of the right candidate,"
                    f" 0 to {n - 1}; mend the row"
                )


def canonical_order(where: str, ids: Sequence[str | None]) -> NDArray[np.int64]:
    """Input positions in canonical order; raises `UserError` for no, null or repeated ids."""
    if not len(ids):
        raise UserError(f"{where}: it has no rows; allowed: at least one example; check how it was written")
    known: list[str] = [i for i in ids if i is not None]
    if len(known) < len(ids):
        row = next(row for row, i in enumerate(ids) if i is None)
        raise UserError(f"{where}: row {row + 1} has no example_id; allowed: a unique id per row; fill it in")
    order = sorted(range(len(known)), key=known.__getitem__)
    twice = [known[a] for a, b in zip(order, order[1:], strict=False) if known[a] == known[b]]
    if twice:
        raise UserError(
            f"{where}: example_id {twice[0]!r} stands in more than one row ({len(twice)} repeated rows in all);"
            " allowed: unique ids; drop or rename the repeats"
        )
    return np.array(order, dtype=np.int64)


def check_labels(where: str, ids: Sequence[str], labels: Sequence[str | None]) -> list[str]:
    """Labels without nulls, or a `UserError` that names the first row without one."""
    missing = [example_id for example_id, label in zip(ids, labels, strict=True) if label is None]
    if missing:
        raise UserError(
            f"{where}: {len(missing)} row(s) without a label, first {allowed(missing, SHOWN)};"
            " allowed: a label in every row; fill in or drop these rows"
        )
    return [label for label in labels if label is not None]


def check_finite(
    where: str, ids: Sequence[str], x: NDArray[np.float32], offsets: NDArray[np.int64] | None, what: str
) -> None:
    """Raise `UserError` naming the first examples with values that are not finite."""
    bad = [start + np.flatnonzero(~np.isfinite(x[rows]).all(axis=1)) for start, rows in blocks(*x.shape)]
    rows = np.concatenate(bad) if bad else np.zeros(0, dtype=np.int64)
    if len(rows) == 0:
        return
    examples = rows if offsets is None else np.unique(np.searchsorted(offsets, rows, side="right") - 1)
    raise UserError(
        f"{where}: {len(examples)} example(s) with embedding values that are {what},"
        f" first {allowed([ids[i] for i in examples], SHOWN)}; allowed: finite values; embed these rows again or drop"
        " them"
    )


def blocks(n_rows: int, n_features: int) -> Iterator[tuple[int, slice]]:
    """Start and slice of each block of rows, `BLOCK_VALUES` values or one row."""
    step = max(1, BLOCK_VALUES // max(1, n_features))
    for start in range(0, n_rows, step):
        yield start, slice(start, min(start + step, n_rows))


def spans(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows start, start + 1, … of each example, one example after the other."""
    before = np.cumsum(sizes) - sizes
    return np.arange(sizes.sum()) + np.repeat(starts - before, sizes)
