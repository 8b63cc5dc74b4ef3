"""Tables `collected_sets`, `collected_scores`, `collected_ranks` and `collected_correlation`.

Conventions
-----------
A model's score is the mean over its seeds, and so is it in every bootstrap draw. Ranks and
correlations are within a training set: models that were trained alike. Imported models are
ranked among themselves on sets for which all of a pair have predictions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from advsets.evaluation.collected.study import CollectedStudy, ScoredSet
from advsets.evaluation.frames import table_frame
from advsets.stats.bootstrap import percentile_interval
from advsets.stats.ranking import kendall_tau_b, mean_ranks


def collected_scores(study: CollectedStudy) -> pl.DataFrame:
    """Score of every run on every set."""
    return table_frame("collected_scores", (row for one in study.sets for row in _scores(study, one)))


def _scores(study: CollectedStudy, one: ScoredSet) -> Iterator[dict[str, Any]]:
    low, high = percentile_interval(study.draws[one.name], study.settings.confidence)
    for m, measure in enumerate(one.measures):
        for r, run in enumerate(one.runs):
            identity = study.identities[run.model]
            yield {
                "collection": study.collection,
                "training_set": run.training_set,
                "evaluated_model": run.model,
                "model_seed": run.model_seed,
                "dataset": one.name,
                "measure": measure,
                "relation": one.relation(identity),
                "in_the_loop": one.name in identity.in_the_loop_of,
                "n_examples": one.n_examples,
                "n_missing": int(one.missing[:, r].sum()),
                "mean_score": one.means[m, r],
                "mean_score_low": low[m, r],
                "mean_score_high": high[m, r],
                "saw_training_part": study.saw(run, one.name),
            }


def model_means(
    study: CollectedStudy, one: ScoredSet, training_set: str, measure: int
) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    """Models of a training set on one set, their mean scores (n_models,) and those by draw (n_draws, n_models)."""
    places = study.models_on(one, training_set)
    values = np.array([one.means[measure, own].mean() for own in places.values()])
    by_draw = study.draws[one.name][:, measure]
    draws = [by_draw[:, own].mean(axis=1) for own in places.values()]
    return list(places), values, np.stack(draws, axis=1) if draws else np.zeros((len(by_draw), 0))


def collected_ranks(study: CollectedStudy) -> pl.DataFrame:
    """Rank of every model among those of its training set, on every set."""
    rows = []
    for one in study.sets:
        for training_set in study.training_sets:
            for m, measure in enumerate(one.measures):
                models, values, _ = model_means(study, one, training_set, m)
                for model, value, rank in zip(models, values, mean_ranks(values), strict=True):
                    rows.append(
                        {
                            "collection": study.collection,
                            "training_set": training_set,
                            "evaluated_model": model,
                            "dataset": one.name,
                            "measure": measure,
                            "mean_score": value,
                            "rank": rank,
                            "n_models": len(models),
                        }
                    )
    return table_frame("collected_ranks", rows)


def collected_correlation(study: CollectedStudy) -> pl.DataFrame:
    """Kendall tau-b between the models' scores on each pair of sets; null with fewer than two models."""
    pairs = [(a, b) for i, a in enumerate(study.sets) for b in study.sets[i + 1 :]]
    rows = [
        _correlation(study, first, second, training_set, m)
        for first, second in pairs
        for training_set in study.training_sets
        for m in range(len(study.measures))
    ]
    return table_frame("collected_correlation", (row for row in rows if row["n_models"]))


def _correlation(
    study: CollectedStudy, first: ScoredSet, second: ScoredSet, training_set: str, measure: int
) -> dict[str, Any]:
    sides = [model_means(study, one, training_set, measure) for one in (first, second)]
    shared = [model for model in sides[0][0] if model in sides[1][0]]
    value, low, high = np.nan, np.nan, np.nan
    if len(shared) > 1:
        places = [[models.index(model) for model in shared] for models, _, _ in sides]
        value = float(kendall_tau_b(sides[0][1][places[0]], sides[1][1][places[1]]))
        by_draw = kendall_tau_b(sides[0][2][:, places[0]], sides[1][2][:, places[1]])
        low, high = map(float, percentile_interval(by_draw, study.settings.confidence))
    return {
        "collection": study.collection,
        "training_set": training_set,
        "dataset": first.name,
        "other_dataset": second.name,
        "measure": study.measures[measure],
        "n_models": len(shared),
        "tau_b": value,
        "tau_b_low": low,
        "tau_b_high": high,
    }
