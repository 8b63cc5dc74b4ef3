"""Accuracy under example weights, with bootstrap draws: what subsets and weightings have in common.

Conventions
-----------
A weighting is a column of non-negative weights over the examples in canonical order; a subset is
one of 0 and 1. A model's score is the weighted share of examples it gets right, mean over its
fine-tuning seeds. All weightings of one study share the bootstrap draws of `Study.bootstrap`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advsets.evaluation.study import Study
from advsets.stats.bootstrap import fixed_point, masked_sums, percentile_interval
from advsets.stats.ranking import kendall_tau_b, mean_rank_change


@dataclass(frozen=True)
class Scores:
    """Accuracy of each model under each weighting, (n_weightings, n_models), and per draw."""

    value: NDArray[np.float64]
    draws: NDArray[np.float64]


def weighted_scores(study: Study, weights: ArrayLike) -> Scores:
    """Scores of the evaluated models.

    Parameters
    ----------
    weights : array, shape (n_examples, n_weightings)
        Any scale; a weighting without weight has NaN scores.
    """
    columns = np.asarray(weights, dtype=np.float64)
    whole, _ = fixed_point(columns)
    correct = np.column_stack([study.inputs.correct, np.ones(study.inputs.n_examples, dtype=bool)])
    values = (whole[:, :, None] * correct[:, None, :]).reshape(len(whole), -1)
    everything = np.ones((len(whole), 1), dtype=bool)
    shape = (columns.shape[1], correct.shape[1])
    sums = values.sum(axis=0).reshape(shape)
    draws = masked_sums(values, everything, study.settings.n_bootstrap, study.settings.seed).reshape(-1, *shape)
    return Scores(
        study.by_model(sums[..., :-1], sums[..., -1]),
        study.by_model(draws[..., :-1], draws[..., -1]),
    )


def summary(study: Study, scores: Scores, at: int, models: Sequence[int] | None = None) -> dict[str, Any]:
    """Mean accuracy and rank correlation with the full set of one weighting, with bounds.

    Parameters
    ----------
    at : int
        Index of the weighting.
    models : sequence of int, optional
        Models whose mean accuracy is taken; all by default. Ranks are always of all.
    """
    chosen = slice(None) if models is None else list(models)
    confidence = study.settings.confidence
    mean_low, mean_high = percentile_interval(_mean(scores.draws[:, at, chosen]), confidence)
    full, full_draws = study.model_accuracy[0], study.model_accuracy_draws[:, 0]
    tau_low, tau_high = percentile_interval(kendall_tau_b(full_draws, scores.draws[:, at]), confidence)
    return {
        "accuracy_mean": float(_mean(scores.value[at, chosen])),
        "accuracy_mean_low": float(mean_low),
        "accuracy_mean_high": float(mean_high),
        "tau_b": float(kendall_tau_b(full, scores.value[at])),
        "tau_b_low": float(tau_low),
        "tau_b_high": float(tau_high),
        "rank_change_mean": float(mean_rank_change(full, scores.value[at])),
    }


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over models; NaN where there are none, or no examples."""
    return values.mean(axis=-1) if values.shape[-1] else np.full(values.shape[:-1], np.nan)
