"""Settings of the filter, and the counts that they become for one training set.

Conventions
-----------
A size is a count (an integer of at least 1) or a fraction (a float between 0 and 1, both
exclusive) of the rows at the start of filtering; `FilterSettings.resolve` turns fractions
into fixed counts, rounded to the nearest row and at least 1. Fractions and the threshold are
read as the decimal numbers they are written as: 0.7 means 7/10 exactly.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

from advsets.errors import UserError, allowed

MORE_THAN = "more_than"
AT_LEAST = "at_least"
COMPARISONS = (MORE_THAN, AT_LEAST)
MEAN = "mean"
MINIMUM = "minimum"
COMBINATIONS = (MEAN, MINIMUM)
"""How scores of several adversaries become one, see `advsets.aflite.ensemble`."""


@dataclass(frozen=True)
class Counts:
    """Fixed counts of one filtering run, in rows; `target_size` is None without a target."""

    n_train: int
    n_evaluation: int
    train_size: int
    slice_size: int
    min_retained: int
    target_size: int | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class FilterSettings:
    """What the filter does; every field can be given on the command line and to the estimator.

    Parameters
    ----------
    n_partitions : int
        Random training subsets, and so classifiers, per round (64 in both AFLite papers).
    train_size : int or float
        Training rows that each classifier is fitted on; count or fraction (our choice: 0.1).
    slice_size : int or float
        Most training rows removed per round; count or fraction (our choice: 0.02).
    threshold : float
        Predictability (0-1) above which a row is a candidate for removal (0.75 in both papers).
    min_retained : int, float or None
        Rounds run while more training rows than this are left; None: `train_size` / 0.8.
    comparison : {"more_than", "at_least"}
        Whether predictability equal to `threshold` stays (Phang et al. 2021) or goes (Le Bras et al. 2020).
    C : float
        Inverse penalty of the logistic regression, as in scikit-learn.
    standardise : bool
        Scale features to mean 0 and variance 1 over the training rows at the start.
    use_groups : bool
        Draw, score and remove rows of one `group_id` together, where there is one. Without it
        every row stands alone, as in the AFLite papers.
    one_shot : bool
        Filter the evaluation set once and remove no training row.
    stop_at_chance : bool
        Stop once the classifiers do no better than chance on the training rows that a round keeps.
    max_rounds : int
        Rounds after which filtering ends in any case.
    target_size : int, float or None
        Wished number (or fraction) of evaluation rows. Rounds go on as usual, most predictable
        first, but never below it; if filtering ends with more rows than that, the most predictable
        by the scores of the last round go, whatever the threshold, until exactly this many are left
        (with groups: until no whole group can go without falling below it).
    tolerance : float
        A fit has converged once every entry of its gradient, divided by its training rows, is below this.
    max_passes : int
        Passes over the data after which an unfinished fit is `stopped`.

    Raises
    ------
    UserError
        If a value is not allowed; the message names the setting.
    """

    n_partitions: int = 64
    train_size: int | float = 0.1
    slice_size: int | float = 0.02
    threshold: float = 0.75
    min_retained: int | float | None = None
    comparison: str = MORE_THAN
    C: float = 1.0
    standardise: bool = True
    use_groups: bool = True
    one_shot: bool = False
    stop_at_chance: bool = False
    max_rounds: int = 50
    target_size: int | float | None = None
    tolerance: float = 1e-5
    max_passes: int = 500

    def __post_init__(self) -> None:
        for name in ("n_partitions", "max_rounds", "max_passes"):
            _check(_is_count(getattr(self, name)), name, getattr(self, name), "an integer of at least 1")
        for name in ("train_size", "slice_size", "min_retained", "target_size"):
            value = getattr(self, name)
            optional = name in ("min_retained", "target_size")
            wanted = f"a count (integer of at least 1) or a fraction (between 0 and 1){', or null' * optional}"
            _check((optional and value is None) or _is_size(value), name, value, wanted)
        for name in ("C", "tolerance"):
            value = getattr(self, name)
            _check(_is_number(value) and 0 < value < math.inf, name, value, "a number above 0")
        for name in ("standardise", "use_groups", "one_shot", "stop_at_chance"):
            _check(isinstance(getattr(self, name), bool), name, getattr(self, name), "true or false")
        _check(self.comparison in COMPARISONS, "comparison", self.comparison, allowed(COMPARISONS))
        self._check_threshold()

    def _check_threshold(self) -> None:
        wanted = "a number above 0 and below 1 (or 1 with comparison at_least)"
        top = 1 if self.comparison == AT_LEAST else math.nextafter(1, 0)
        _check(_is_number(self.threshold) and 0 < self.threshold <= top, "threshold", self.threshold, wanted)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def resolve(self, n_train: int, n_evaluation: int = 0) -> Counts:
        """Counts for `n_train` training and `n_evaluation` evaluation rows.

        Raises
        ------
        UserError
            If the sizes leave nothing to hold out, or nothing to filter.
        """
        train_size = _count(self.train_size, n_train)
        if train_size >= n_train:
            raise UserError(
                f"train_size: {self.train_size} is {train_size} of {n_train} training rows, so no row would be held"
                f" out; allowed: below {n_train}; lower it or add training rows"
            )
        if self.min_retained is None:
            min_retained = math.ceil(Fraction(train_size) / Fraction("0.8"))
        else:
            min_retained = _count(self.min_retained, n_train)
        if not train_size <= min_retained < n_train:
            raise UserError(
                f"min_retained: {min_retained} rows (train_size is {train_size} of {n_train} training rows); allowed:"
                f" from {train_size} to {n_train - 1}; change min_retained or train_size, or add training rows"
            )
        return Counts(
            n_train=n_train,
            n_evaluation=n_evaluation,
            train_size=train_size,
            slice_size=_count(self.slice_size, n_train),
            min_retained=min_retained,
            target_size=self._target(n_evaluation),
        )

    def _target(self, n_evaluation: int) -> int | None:
        if self.target_size is None:
            return None
        if n_evaluation == 0:
            raise UserError(
                f"target_size: {self.target_size}, but there is no evaluation set; give one, or leave target_size out"
            )
        target = _count(self.target_size, n_evaluation)
        if target >= n_evaluation:
            raise UserError(
                f"target_size: {self.target_size} of {n_evaluation} evaluation rows would remove none;"
                f" allowed: below {n_evaluation}; lower it"
            )
        return target


def check_combination(combination: str) -> None:
    """Raise `UserError` for what is no combination of adversaries."""
    _check(combination in COMBINATIONS, "combination", combination, allowed(COMBINATIONS))


def as_fraction(value: float) -> Fraction:
    """Exact value of a number as it is written: `as_fraction(0.7)` is 7/10."""
    return Fraction(repr(float(value)))


def _count(size: int | float, n_rows: int) -> int:
    """Rows that a count or fraction stands for; halves are rounded up."""
    if isinstance(size, Integral):
        return int(size)
    return max(1, math.floor(as_fraction(size) * n_rows + Fraction(1, 2)))


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def _is_size(value: object) -> bool:
    return _is_count(value) or (_is_number(value) and not isinstance(value, Integral) and 0 < value < 1)  # type: ignore[operator]


def _check(ok: bool, name: str, value: object, wanted: str) -> None:
    if not ok:
        raise UserError(f"{name}: {value!r} is not allowed; allowed: {wanted}; change {name}")
