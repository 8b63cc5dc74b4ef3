"""Agreement, entropy and low-agreement flags, summed by part of the set and gold class.

Conventions
-----------
Axes: draws, parts (`Study.parts`: full set, retained of each adversary run, removed of each),
classes (`Study.classes`: all, then each gold class). Examples without a measure are left out of
its mean, never counted as 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from advsets.evaluation.study import Study
from advsets.stats.bootstrap import fixed_point, masked_sums, ratio

MEASURES = ("agreement", "label_entropy_bits", "low_agreement")


@dataclass(frozen=True)
class Means:
    """Mean of a measure and the number of examples that have it, both of shape (..., n_parts, n_classes)."""

    mean: NDArray[np.float64]
    n_examples: NDArray[np.float64]


def measure_means(study: Study, measure: str) -> Means:
    """Means over the examples as they are."""
    values, scale = _values(study, measure)
    sums = _masks(study).T.astype(np.float64) @ values
    return _means(study, sums, scale)


def measure_draws(study: Study, measure: str) -> Means:
    """Means over each bootstrap draw."""
    values, scale = _values(study, measure)
    sums = masked_sums(values, _masks(study), study.settings.n_bootstrap, study.settings.seed)
    return _means(study, sums, scale)


def n_with_measure(study: Study, measure: str) -> int:
    """Examples of the full set that have the measure."""
    return study.inputs.n_examples - study.inputs.frame[measure].null_count()


def best_known_measure(study: Study) -> str:
    """`agreement`, or `low_agreement` where more examples have the flag."""
    flag = n_with_measure(study, "low_agreement") > n_with_measure(study, "agreement")
    return "low_agreement" if flag else "agreement"


def _values(study: Study, measure: str) -> tuple[NDArray[np.float64], float]:
    """Fixed-point measure and whether it is known, shape (n_examples, 2)."""
    column = study.inputs.frame[measure].cast(pl.Float64)
    whole, scale = fixed_point(column.fill_null(0.0).to_numpy())
    return np.column_stack([whole, column.is_not_null().to_numpy()]), scale


def _masks(study: Study) -> NDArray[np.bool_]:
    both = study.parts[:, :, None] & study.classes[:, None, :]
    return both.reshape(study.inputs.n_examples, -1)


def _means(study: Study, sums: NDArray[np.float64], scale: float) -> Means:
    shape = (*sums.shape[:-2], study.parts.shape[1], study.classes.shape[1])
    n_examples = sums[..., 1].reshape(shape)
    return Means(ratio(sums[..., 0].reshape(shape) / scale, n_examples), n_examples)
