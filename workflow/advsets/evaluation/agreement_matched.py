"""Tables `agreement_matched` and `agreement_matched_models`: difficulty without contentious examples.

Conventions
-----------
A matched subset has as many examples as its adversary retained, and the annotator agreement of
the full set: from each level of agreement its share of the full set is taken, hardest first (see
`advsets.evaluation.difficulty`). Levels are the values of agreement that occur, or of the
low-agreement flag where more examples have the flag; examples without either are a level of their
own. The weighted score keeps the retained examples and weights each by its agreement.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from advsets.evaluation.agreement_sums import best_known_measure, n_with_measure
from advsets.evaluation.difficulty import places
from advsets.evaluation.frames import table_frame
from advsets.evaluation.study import Study
from advsets.evaluation.weighted import Scores, summary, weighted_scores
from advsets.stats.ranking import mean_ranks

WEIGHTINGS = ("full_set", "retained", "matched", "agreement_weighted")


def agreement_matched(study: Study) -> pl.DataFrame:
    """Difficulty and ranks of each weighting; no rows where no example has a measure of agreement."""
    return table_frame("agreement_matched", _rows(study))


def agreement_matched_models(study: Study) -> pl.DataFrame:
    """Accuracy and rank of each evaluated model under each weighting."""
    return table_frame("agreement_matched_models", _model_rows(study))


def _rows(study: Study) -> Iterator[dict[str, Any]]:
    measure = best_known_measure(study)
    known = study.inputs.frame[measure].cast(pl.Float64)
    values = known.fill_null(0.0).to_numpy()
    has = known.is_not_null().to_numpy()
    for (adversary, seed), weights, scores in _by_run(study):
        for k, name in enumerate(WEIGHTINGS):
            of_known = weights[:, k] * has
            mean = float(of_known @ values / of_known.sum()) if of_known.any() else np.nan
            yield {
                "dataset": study.inputs.dataset,
                "adversary": adversary,
                "adversary_seed": seed,
                "weighting": name,
                "measure": measure,
                "n_examples": int((weights[:, k] > 0).sum()),
                "agreement_mean": mean,
                **summary(study, scores, k),
            }


def _model_rows(study: Study) -> Iterator[dict[str, Any]]:
    for (adversary, seed), _, scores in _by_run(study):
        ranks = mean_ranks(scores.value)
        for k, name in enumerate(WEIGHTINGS):
            for m, model in enumerate(study.inputs.models):
                yield {
                    "dataset": study.inputs.dataset,
                    "adversary": adversary,
                    "adversary_seed": seed,
                    "weighting": name,
                    "evaluated_model": model,
                    "accuracy": scores.value[k, m],
                    "rank": ranks[k, m],
                }


def _by_run(study: Study) -> Iterator[tuple[tuple[str, int], NDArray[np.float64], Scores]]:
    """Each adversary run with its weights, shape (n_examples, n_weightings), and scores; none without a measure."""
    if not n_with_measure(study, best_known_measure(study)):
        return
    levels, agreement = _levels(study), _weights(study)
    for a, run in enumerate(study.inputs.adversary_runs):
        kept = study.inputs.masks[:, a]
        matched = matched_subset(places(study, study.inputs.retained[run]), levels, int(kept.sum()))
        weights = np.column_stack([np.ones(len(kept)), kept, matched, kept * agreement])
        yield run, weights, weighted_scores(study, weights)


def matched_subset(place: NDArray[np.int64], levels: NDArray[np.int64], n_examples: int) -> NDArray[np.bool_]:
    """Subset of `n_examples`, hardest first within each level, in the levels' shares of all examples.

    Parameters
    ----------
    place : array of int, shape (n_all,)
        Place of each example, 0 the hardest.
    levels : array of int, shape (n_all,)
        Level of each example. Shares are rounded to whole examples by largest remainder.
    """
    names, sizes = np.unique(levels, return_counts=True)
    wanted = sizes * n_examples / max(len(levels), 1)
    counts = np.floor(wanted).astype(np.int64)
    by_remainder = np.argsort(-(wanted - counts), kind="stable")
    counts[by_remainder[: n_examples - counts.sum()]] += 1
    chosen = np.zeros(len(levels), dtype=bool)
    for name, count in zip(names, counts, strict=True):
        members = np.flatnonzero(levels == name)
        chosen[members[np.argsort(place[members])[:count]]] = True
    return chosen


def _levels(study: Study) -> NDArray[np.int64]:
    column = study.inputs.frame[best_known_measure(study)].cast(pl.Float64).fill_null(-1.0).to_numpy()
    return np.unique(column, return_inverse=True)[1]


def _weights(study: Study) -> NDArray[np.float64]:
    """Agreement of each example; of those without it the mean of the others, 1 where none has it."""
    column = study.inputs.frame["agreement"].cast(pl.Float64)
    return column.fill_null(column.mean() if column.count() else 1.0).to_numpy()
