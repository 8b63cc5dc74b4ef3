"""What a filtering run works on: both splits, coded, in canonical order, and standardised.

Conventions
-----------
Labels are indices into `label_order` (names sorted), or for multiple choice the index of the
right candidate. Features are standardised by the mean and the population standard deviation
of the training rows at the start of filtering (all candidates, for multiple choice), both
computed in float64; a feature that is constant there becomes 0 there (scale 1).
Groups hold within a split: rows of one `group_id` in both splits do not leave together.
`Split.shrink` lets go of rows that have left, in place, so that memory stays at one copy.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from advsets.aflite.rawsplit import SHOWN, RawSplit, blocks, check_finite, spans
from advsets.errors import UserError, allowed
from advsets.seeding import id_hashes

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Standardisation:
    """Mean and scale of each feature over the training rows, shape (n_features,) float64."""

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]


@dataclass
class Split:
    """Rows of one split; arrays over examples have shape (n_examples,).

    `groups` indexes `group_hashes` and `group_names` (for messages); all three are None when every
    row stands alone. `x` and `offsets` cover the examples of `stored` (ascending) only.
    """

    ids: list[str]
    hashes: NDArray[np.uint64]
    labels: Ints
    groups: Ints | None
    group_hashes: NDArray[np.uint64] | None
    x: NDArray[np.float32]
    offsets: Ints | None
    stored: Ints
    group_names: list[str] | None = None

    def take(self, examples: Ints) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Features and offsets of some stored examples (ascending), copied only if they are not all."""
        x, offsets = self.x, self.offsets
        if len(examples) != len(self.stored):
            at = self._positions(examples)
            if offsets is None:
                x = x[at]
            else:
                sizes = np.diff(offsets)[at]
                x, offsets = x[spans(offsets[at], sizes)], _offsets(sizes)
        return torch.from_numpy(x), None if offsets is None else torch.from_numpy(offsets)

    def shrink(self, examples: Ints) -> None:
        """Keep the features of these examples (ascending) only, moving rows up within `x`."""
        if len(examples) == len(self.stored):
            return
        rows = at = self._positions(examples)
        if self.offsets is not None:
            sizes = np.diff(self.offsets)[at]
            rows, self.offsets = spans(self.offsets[at], sizes), _offsets(sizes)
        for _, block in blocks(len(rows), self.x.shape[1]):
            self.x[block] = self.x[rows[block]]
        self.x = self.x[: len(rows)]
        self.stored = examples

    def release(self) -> None:
        """Let go of all features."""
        n_features = self.x.shape[1]
        self.shrink(self.stored[:0])
        self.x = np.empty((0, n_features), dtype=np.float32)

    def _positions(self, examples: Ints) -> Ints:
        at = np.searchsorted(self.stored, examples)
        if len(examples) and (at[-1] >= len(self.stored) or (self.stored[at] != examples).any()):
            raise ValueError("features of some of these examples are no longer stored")
        return at


@dataclass
class FilterData:
    """Both splits of one filtering run; the evaluation split may have no rows.

    `others` are further members of an ensemble: the same rows in other representations. Rows,
    labels and groups are read from the first member; `combination` says how the members' scores
    become one (see `advsets.aflite.ensemble`) and nothing where there is one member.
    """

    train: Split
    evaluation: Split
    label_order: list[str]
    standardisation: Standardisation | None
    others: tuple[FilterData, ...] = ()
    combination: str = "mean"

    @property
    def members(self) -> tuple[FilterData, ...]:
        return (self, *self.others)

    @property
    def is_multiple_choice(self) -> bool:
        return self.train.offsets is not None

    def split(self, name: str) -> Split:
        return self.train if name == "train" else self.evaluation

    def shrink(self, train: Ints, evaluation: Ints) -> None:
        """Keep the features of these examples (ascending) only, in every member."""
        for member in self.members:
            member.train.shrink(train)
            member.evaluation.shrink(evaluation)

    def release(self) -> None:
        """Let go of the features of both splits of every member."""
        for member in self.members:
            member.train.release()
            member.evaluation.release()


def load(train: Path, evaluation: Path | None, *, standardise: bool, use_groups: bool = True) -> FilterData:
    """Read, check and prepare the embeddings of both splits; without `use_groups` every row stands alone.

    Raises
    ------
    UserError
        If a file, or the two together, cannot be used.
    """
    from advsets.aflite.reading import read_split

    def read(path: Path) -> RawSplit:
        raw = read_split(path)
        return raw if use_groups else dataclasses.replace(raw, groups=None)

    return prepare(read(train), None if evaluation is None else read(evaluation), standardise=standardise)


def prepare(train: RawSplit, evaluation: RawSplit | None, *, standardise: bool, shared_ids: bool = False) -> FilterData:
    """Code labels and groups of both splits and standardise them, in place.

    Parameters
    ----------
    train, evaluation : RawSplit
        As read; their matrices are taken over.
    standardise : bool
        Whether to scale features by training statistics.
    shared_ids : bool
        Allow one id in both splits (row numbers that stand for missing ids).
    """
    if evaluation is not None:
        _check_pair(train, evaluation, shared_ids)
    label_order = [] if train.is_multiple_choice else sorted(set(train.labels))
    if len(label_order) == 1:
        raise UserError(
            f"{train.where}: every row has label {label_order[0]!r}; allowed: at least two labels; add rows of another"
        )
    statistics = None
    if standardise:
        statistics = _statistics(train.x)
        for raw in (train, evaluation):
            if raw is not None:
                _standardise(raw, statistics)
    coded = _code(train, label_order)
    other = _code(evaluation, label_order) if evaluation is not None else _no_rows(coded)
    return FilterData(coded, other, label_order, statistics)


def _check_pair(train: RawSplit, evaluation: RawSplit, shared_ids: bool) -> None:
    """Raise `UserError` where the two splits do not fit together."""
    here, there = evaluation.where, train.where
    if train.is_multiple_choice != evaluation.is_multiple_choice:
        kinds = {True: "multiple choice (candidates)", False: "classification (one embedding)"}
        raise UserError(
            f"{here}: it is {kinds[evaluation.is_multiple_choice]}, but {there} is {kinds[train.is_multiple_choice]};"
            " allowed: both of one kind; give matching sets"
        )
    if train.x.shape[1] != evaluation.x.shape[1]:
        raise UserError(
            f"{here}: vectors have {evaluation.x.shape[1]} elements, those of {there} {train.x.shape[1]};"
            " allowed: one length in both; embed both with one model"
        )
    both = [] if shared_ids else sorted(set(train.ids) & set(evaluation.ids))
    if both:
        raise UserError(
            f"{here}: {len(both)} example_id(s) also stand in {there}, first {allowed(both, SHOWN)};"
            " allowed: no id in both; drop these rows from one of them, or rename them"
        )
    unknown = [] if train.is_multiple_choice else sorted(set(evaluation.labels) - set(train.labels))
    if unknown:
        raise UserError(
            f"{here}: label {unknown[0]!r} does not occur in {there}; allowed: {allowed(sorted(set(train.labels)))};"
            " map the label, drop its rows, or add training rows that have it"
        )


def _code(raw: RawSplit, label_order: list[str]) -> Split:
    if raw.is_multiple_choice:
        labels = [int(label) for label in raw.labels]
    else:
        place = {label: index for index, label in enumerate(label_order)}
        labels = [place[label] for label in raw.labels]
    groups, group_hashes, group_names = _group(raw)
    return Split(
        ids=raw.ids,
        hashes=id_hashes(raw.ids),
        labels=np.array(labels, dtype=np.int64),
        groups=groups,
        group_hashes=group_hashes,
        x=raw.x,
        offsets=raw.offsets,
        stored=np.arange(len(raw.ids)),
        group_names=group_names,
    )


def _group(raw: RawSplit) -> tuple[Ints | None, NDArray[np.uint64] | None, list[str] | None]:
    """Group index per row, hash and name per group; None if every row stands alone."""
    if raw.groups is None:
        return None, None, None
    names = [f"row:{i}" if g is None else f"group:{g}" for i, g in zip(raw.ids, raw.groups, strict=True)]
    place = {name: index for index, name in enumerate(dict.fromkeys(names))}
    if len(place) == len(names):
        return None, None, None
    shown = [name.split(":", 1)[1] for name in place]
    return np.array([place[name] for name in names], dtype=np.int64), id_hashes(list(place)), shown


def _no_rows(train: Split) -> Split:
    """Evaluation split without rows, of the same kind as `train`."""
    none = np.zeros(0, dtype=np.int64)
    offsets = None if train.offsets is None else np.zeros(1, dtype=np.int64)
    return Split([], none.astype(np.uint64), none, None, None, train.x[:0], offsets, none)


def _statistics(x: NDArray[np.float32]) -> Standardisation:
    """Mean and scale of each feature; a constant feature gets its value and scale 1."""
    n_rows, n_features = x.shape
    low, high = x[0].copy(), x[0].copy()
    total, squares = np.zeros(n_features), np.zeros(n_features)
    for _, rows in blocks(n_rows, n_features):
        low, high = np.minimum(low, x[rows].min(0)), np.maximum(high, x[rows].max(0))
        total += x[rows].sum(0, dtype=np.float64)
    constant = low == high
    mean = np.where(constant, low.astype(np.float64), total / n_rows)
    for _, rows in blocks(n_rows, n_features):
        squares += np.square(x[rows] - mean).sum(0)
    return Standardisation(mean, np.where(constant, 1.0, np.sqrt(squares / n_rows)))


def _standardise(raw: RawSplit, statistics: Standardisation) -> None:
    """Scale the features of `raw` in place, a block of rows at a time."""
    with np.errstate(over="ignore"):
        for _, rows in blocks(*raw.x.shape):
            raw.x[rows] = (raw.x[rows] - statistics.mean) / statistics.scale
    check_finite(raw.where, raw.ids, raw.x, raw.offsets, "infinite once standardised by the training rows")


def _offsets(sizes: Ints) -> Ints:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
