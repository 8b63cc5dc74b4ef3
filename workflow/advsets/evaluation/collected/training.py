"""Tables `cross_training` and `model_in_the_loop`: training sets against each other, and seeds against each other.

Conventions
-----------
The standard deviation over seeds is the sample one (n - 1). Examples are selected against an
instance as people's questions are kept against the model in the loop: a wrong label, or an answer
with an F1 of at most 0.4 (Bartolo et al. 2020). The instance itself then scores low by
construction; what the other seeds score on the same examples says how far they are that
instance's own. It is selection among questions that are there, not writing by people.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from advsets.collected import IMPORTED
from advsets.evaluation.collected.study import CollectedStudy, ScoredSet
from advsets.evaluation.frames import table_frame
from advsets.evaluation.inputs import SELF


def cross_training(study: CollectedStudy) -> pl.DataFrame:
    """Score of every model on every set by training set, mean and standard deviation over seeds."""
    rows: list[dict[str, Any]] = []
    for one in study.sets:
        for m, measure in enumerate(one.measures):
            for training_set in _own(study):
                for model, places in study.models_on(one, training_set).items():
                    values = one.means[m, places]
                    rows.append(
                        {
                            "collection": study.collection,
                            "evaluated_model": model,
                            "training_set": training_set,
                            "dataset": one.name,
                            "measure": measure,
                            "n_train": study.n_train[training_set],
                            "n_seeds": len(places),
                            "mean_score": float(values.mean()),
                            "score_sd": float(values.std(ddof=1)) if len(places) > 1 else np.nan,
                        }
                    )
    best: dict[tuple[str, ...], float] = {}
    for row in rows:
        key = (row["evaluated_model"], row["dataset"], row["measure"])
        best[key] = max(best.get(key, 0.0), row["mean_score"])
    for row in rows:
        row["best"] = row["mean_score"] == best[row["evaluated_model"], row["dataset"], row["measure"]]
    return table_frame("cross_training", rows)


def model_in_the_loop(study: CollectedStudy) -> pl.DataFrame:
    """Scores of a model's seeds on examples selected against one of them, and on sets written against its base."""
    return table_frame("model_in_the_loop", (row for one in study.sets for row in _loop_rows(study, one)))


def _loop_rows(study: CollectedStudy, one: ScoredSet) -> Iterator[dict[str, Any]]:
    for training_set in _own(study):
        for places in study.models_on(one, training_set).values():
            everything = np.ones(one.n_examples, bool)
            by_people = one.relation(study.identities[one.runs[places[0]].model]) == SELF
            yield from _seed_rows(study, one, places, everything, "by_people" if by_people else "full_set", None)
            if len(places) > 1:
                selected = one.beaten[:, places[0]]
                yield from _seed_rows(study, one, places, selected, "by_selection", one.runs[places[0]].seed)


def _seed_rows(
    study: CollectedStudy, one: ScoredSet, places: list[int], selected: Any, how: str, loop_seed: int | None
) -> Iterator[dict[str, Any]]:
    for place in places:
        run = one.runs[place]
        for m, measure in enumerate(one.measures):
            yield {
                "collection": study.collection,
                "training_set": run.training_set,
                "evaluated_model": run.model,
                "dataset": one.name,
                "how": how,
                "loop_seed": loop_seed,
                "model_seed": run.seed,
                "measure": measure,
                "in_the_loop": run.seed == loop_seed,
                "n_examples": int(selected.sum()),
                "mean_score": float(one.scores[m, selected, place].mean()) if selected.any() else np.nan,
            }


def _own(study: CollectedStudy) -> list[str]:
    """Training sets of this run."""
    return [name for name in study.training_sets if name != IMPORTED]
