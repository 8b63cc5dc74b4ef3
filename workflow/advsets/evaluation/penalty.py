"""Tables `penalty` and `penalty_cells`: are models harmed more by an adversary of their own base model?

Conventions
-----------
Fitted are adversary and evaluated-model effects on the log-odds of filtered accuracy, over all
cells (see `advsets.stats.penalty` for the correction at 0 and 1 and for the shrinking of own
cells). A cell's log-odds are of the mean over the model's seeds, then the mean over the
adversary's seeds with examples left. Examples are resampled; seeds too, of evaluated models and
of adversaries, each where all of that role have at least three.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from advsets.evaluation.frames import table_frame
from advsets.evaluation.inputs import OTHER, SAME_FAMILY, SELF, Run
from advsets.evaluation.study import Study
from advsets.seeding import rng_for
from advsets.stats.bootstrap import percentile_interval, range_over_draws, ratio
from advsets.stats.penalty import additive_residuals, empirical_log_odds, mean_residual_weights, recovered_share

SEEDS_TO_RESAMPLE = 3


def penalty(study: Study) -> pl.DataFrame:
    """Mean residual of own cells and of same-family cells, with bounds.

    Null where no cell has the relation or the additive fit is exact (one adversary or one
    model). `same_family` is null when no cell is `other`: against own cells alone it says nothing.
    """
    return table_frame("penalty", (_penalty_row(study, relation) for relation in (SELF, SAME_FAMILY)))


def _penalty_row(study: Study, relation: str) -> dict[str, Any]:
    n_cells, value, low, high = penalty_of(
        log_odds(study), lambda: _log_odds_draws(study), relation_matrix(study), relation, study.settings.confidence
    )
    return {
        "dataset": study.inputs.dataset,
        "relation": relation,
        "n_cells": n_cells,
        "penalty_log_odds": value,
        "penalty_low": low,
        "penalty_high": high,
        "interval_over": resampled(study),
    }


def penalty_of(
    matrix: NDArray[np.float64],
    draws: Callable[[], NDArray[np.float64]],
    relations: NDArray[np.str_],
    relation: str,
    confidence: float,
) -> tuple[int, float, float, float]:
    """Known cells of a relation, their mean residual, and its bounds.

    Parameters
    ----------
    matrix : array, shape (n_rows, n_models)
        Log-odds, NaN where not known.
    draws : callable
        To the same by bootstrap draw, shape (n_draws, n_rows, n_models); called where there is a value.
    relations : array of str, shape (n_rows, n_models)

    Returns
    -------
    n_cells, value, low, high
        NaN where no cell has the relation, the fit is exact, or `same_family` has no `other` beside it.
    """
    known, chosen = ~np.isnan(matrix), relations == relation
    n_cells = int((known & chosen).sum())
    weights = mean_residual_weights(known, chosen)
    if weights is None or (relation == SAME_FAMILY and not (known & (relations == OTHER)).any()):
        return n_cells, np.nan, np.nan, np.nan
    low, high = percentile_interval(draws()[:, known] @ weights, confidence)
    return n_cells, float(weights @ matrix[known]), float(low), float(high)


def own_recovered_share(study: Study) -> float:
    """Share of a true own-cell effect that the penalty shows in this matrix."""
    return recovered_share(~np.isnan(log_odds(study)), relation_matrix(study) == SELF)


def penalty_cells(study: Study) -> pl.DataFrame:
    """Accuracy and residual of every adversary and evaluated model."""
    residuals, relations = additive_residuals(log_odds(study)), relation_matrix(study)
    member = _members(study.inputs.adversary_runs, study.inputs.adversaries)
    filtered = _mean_over_runs(study.model_accuracy[1:], member)
    random = _mean_over_runs(range_over_draws(study.model_accuracy_random)[0], member)
    return table_frame(
        "penalty_cells",
        (
            {
                "dataset": study.inputs.dataset,
                "adversary": adversary,
                "evaluated_model": model,
                "relation": relations[a, m],
                "accuracy_full_set": study.model_accuracy[0, m],
                "accuracy_filtered": filtered[a, m],
                "accuracy_random": random[a, m],
                "residual_log_odds": residuals[a, m],
            }
            for a, adversary in enumerate(study.inputs.adversaries)
            for m, model in enumerate(study.inputs.models)
        ),
    )


def relation_matrix(study: Study) -> NDArray[np.str_]:
    """Relation of each pair, shape (n_adversaries, n_models)."""
    inputs = study.inputs
    rows = [[inputs.relation(a, m) for m in inputs.models] for a in inputs.adversaries]
    return np.array(rows, dtype=str).reshape(len(inputs.adversaries), len(inputs.models))


def log_odds(study: Study) -> NDArray[np.float64]:
    """Log-odds of filtered accuracy, shape (n_adversaries, n_models); NaN where nothing is left."""
    n_adversary_runs, n_model_runs = len(study.inputs.adversary_runs), len(study.inputs.model_runs)
    once = np.ones((1, n_model_runs)), np.ones((1, n_adversary_runs))
    return _cells(study, study.correct[None, 1:], study.sizes[None, 1:], *once)[0]


def _log_odds_draws(study: Study) -> NDArray[np.float64]:
    """The same per bootstrap draw, shape (n_draws, n_adversaries, n_models)."""
    model_weights = _seed_weights(study, study.inputs.model_runs, "evaluated_model")
    adversary_weights = _seed_weights(study, study.inputs.adversary_runs, "adversary")
    sums = study.bootstrap[:, 1:]
    return _cells(study, sums[..., :-1], sums[..., -1], model_weights, adversary_weights)


def _cells(
    study: Study, correct: NDArray, sizes: NDArray, model_weights: NDArray, adversary_weights: NDArray
) -> NDArray[np.float64]:
    """Log-odds by adversary and model from sums by run.

    Parameters
    ----------
    correct : array, shape (n_draws, n_adversary_runs, n_model_runs)
    sizes : array, shape (n_draws, n_adversary_runs)
    model_weights, adversary_weights : arrays, shape (n_draws, n_runs)
        How often each run counts; they add up to the number of seeds of each model.
    """
    member = _members(study.inputs.model_runs, study.inputs.models)
    mean_right = (correct * model_weights[:, None, :]) @ member / member.sum(axis=0)
    odds = empirical_log_odds(mean_right, sizes[..., None])
    member = _members(study.inputs.adversary_runs, study.inputs.adversaries)
    return _mean_over_runs(odds, member, adversary_weights)


def _mean_over_runs(values: NDArray, member: NDArray, weights: NDArray | float = 1.0) -> NDArray[np.float64]:
    """Mean over an adversary's runs that are not NaN, (..., n_runs, n_models) to (..., n_adversaries, n_models)."""
    weight = np.broadcast_to(np.asarray(weights)[..., None], values.shape) * ~np.isnan(values)
    return ratio(member.T @ (np.nan_to_num(values) * weight), member.T @ weight)


def _members(runs: list[Run], names: list[str]) -> NDArray[np.float64]:
    """1 where a run is of a model, shape (n_runs, n_names)."""
    return np.array([[float(run[0] == name) for name in names] for run in runs]).reshape(len(runs), len(names))


def _has_enough_seeds(runs: list[Run]) -> bool:
    seeds = [sum(other == model for other, _ in runs) for model, _ in runs]
    return min(seeds, default=0) >= SEEDS_TO_RESAMPLE


def _seed_weights(study: Study, runs: list[Run], role: str) -> NDArray[np.float64]:
    """How often each run is drawn among the seeds of its model, shape (n_draws, n_runs)."""
    n_draws = study.settings.n_bootstrap
    weights = np.ones((n_draws, len(runs)))
    if not _has_enough_seeds(runs):
        return weights
    for model in sorted({model for model, _ in runs}):
        own = [i for i, run in enumerate(runs) if run[0] == model]
        rng = rng_for(study.settings.seed, "bootstrap_seeds", role, model)
        weights[:, own] = rng.multinomial(len(own), np.full(len(own), 1 / len(own)), size=n_draws)
    return weights


def resampled(study: Study) -> str:
    """What the interval of the penalty covers."""
    models = _has_enough_seeds(study.inputs.model_runs)
    adversaries = _has_enough_seeds(study.inputs.adversary_runs)
    if models and adversaries:
        return "examples and fine-tuning seeds"
    if models or adversaries:
        return f"examples and fine-tuning seeds of {'evaluated models' if models else 'adversaries'}"
    return "examples"
