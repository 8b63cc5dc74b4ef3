"""Tables `collected_penalty` and `collected_penalty_cells`: is the base of the model in the loop hit hardest?

Conventions
-----------
The matrix has a row per evaluation set (standard ones too) and a column per model; set and model
effects are fitted to the log-odds of the mean scores as for filtered sets (`advsets.stats.penalty`,
with its correction at 0 and 1 and its shrinking of own cells). The instance that was in the loop
is wrong by construction: its cells are shown and stay out of the fit. Every set is resampled by
itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from advsets.evaluation.collected.scores import model_means
from advsets.evaluation.collected.study import IN_THE_LOOP, CollectedStudy
from advsets.evaluation.frames import table_frame
from advsets.evaluation.inputs import SAME_FAMILY, SELF
from advsets.evaluation.penalty import penalty_of
from advsets.stats.penalty import additive_residuals, empirical_log_odds


def collected_penalty(study: CollectedStudy) -> pl.DataFrame:
    """Mean residual of own cells, and of same-family cells, with bounds.

    Null where there is no such cell or the fit is exact. `same_family` is null when no cell is
    `other`: against own cells alone it says nothing.
    """
    return table_frame(
        "collected_penalty",
        (
            row
            for training_set in study.training_sets
            for m in range(len(study.measures))
            for row in _rows(study, training_set, m)
        ),
    )


def collected_penalty_cells(study: CollectedStudy) -> pl.DataFrame:
    """Score and residual of every model on every set."""
    rows = []
    for training_set in study.training_sets:
        for m, measure in enumerate(study.measures):
            models, scores, odds, _ = _matrix(study, training_set, m)
            residuals, relations = additive_residuals(odds), _relations(study, models)
            for s, one in enumerate(study.sets):
                for c, model in enumerate(models):
                    if np.isnan(scores[s, c]):
                        continue
                    rows.append(
                        {
                            "collection": study.collection,
                            "training_set": training_set,
                            "evaluated_model": model,
                            "dataset": one.name,
                            "measure": measure,
                            "relation": relations[s, c],
                            "mean_score": scores[s, c],
                            "residual_log_odds": residuals[s, c],
                        }
                    )
    return table_frame("collected_penalty_cells", rows)


def _rows(study: CollectedStudy, training_set: str, measure: int) -> Iterator[dict[str, Any]]:
    models, _, odds, draws = _matrix(study, training_set, measure)
    relations = _relations(study, models)
    for relation in (SELF, SAME_FAMILY):
        n_cells, value, low, high = penalty_of(odds, lambda: draws, relations, relation, study.settings.confidence)
        yield {
            "collection": study.collection,
            "training_set": training_set,
            "measure": study.measures[measure],
            "relation": relation,
            "n_cells": n_cells,
            "penalty_log_odds": value,
            "penalty_log_odds_low": low,
            "penalty_log_odds_high": high,
        }


def _relations(study: CollectedStudy, models: list[str]) -> NDArray[np.str_]:
    """Relation of each set and model, shape (n_sets, n_models)."""
    rows = [[one.relation(study.identities[model]) for model in models] for one in study.sets]
    return np.array(rows, dtype=str).reshape(len(study.sets), len(models))


def _matrix(
    study: CollectedStudy, training_set: str, measure: int
) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Models; mean scores (n_sets, n_models); log-odds, NaN where unknown or in the loop; the same by draw."""
    per_set = [model_means(study, one, training_set, measure) for one in study.sets]
    models = sorted({model for names, _, _ in per_set for model in names})
    shape = (len(study.sets), len(models))
    scores, odds = np.full((2, *shape), np.nan)
    draws = np.full((study.settings.n_bootstrap, *shape), np.nan)
    for s, (one, (names, values, by_draw)) in enumerate(zip(study.sets, per_set, strict=True)):
        places = [models.index(name) for name in names]
        scores[s, places] = values
        odds[s, places] = empirical_log_odds(values * one.n_examples, one.n_examples)
        draws[:, s, places] = empirical_log_odds(by_draw * one.n_examples, one.n_examples)
    out = _relations(study, models) == IN_THE_LOOP
    odds[out], draws[:, out] = np.nan, np.nan
    return models, scores, odds, draws
