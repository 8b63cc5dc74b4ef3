"""Table `soft_scores`: model probabilities against the annotators' distribution.

Conventions
-----------
The annotators' distribution is the leading part of `label_count`, as long as the list of
probabilities, renormalised: labels that are no class of the task are left out. Examples without
label counts, or without a vote for any class, are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from advsets.errors import UserError
from advsets.evaluation.frames import table_frame
from advsets.evaluation.inputs import Run
from advsets.evaluation.study import Study
from advsets.io import empty_frame
from advsets.stats.bootstrap import fixed_point, range_over_draws, ratio, subset_sums
from advsets.stats.divergence import cross_entropy_nats, js_distance, normalised


def soft_scores(study: Study) -> pl.DataFrame:
    """Cross-entropy and Jensen-Shannon distance by subset and model; no rows where nobody was counted.

    For `random_subset` the scores are means over draws and `n_examples` is the rounded mean.
    """
    if study.inputs.frame["label_count"].null_count() == study.inputs.n_examples:
        return empty_frame("soft_scores")
    scores = [_scores(study, model) for model in study.inputs.models]
    rows = [row for m, values in zip(study.inputs.models, scores, strict=True) for row in _rows(study, m, values)]
    return table_frame("soft_scores", rows)


def _rows(study: Study, model: str, scores: NDArray[np.float64]) -> Iterator[dict[str, Any]]:
    runs: list[tuple[str | None, int | None]] = [(None, None), *study.inputs.adversary_runs]
    for i, run in enumerate(runs):
        chosen = scores[study.subsets[:, i] & ~np.isnan(scores[:, 0])]
        means = chosen.mean(axis=0) if len(chosen) else (np.nan, np.nan)
        yield _row(study, "full_set" if i == 0 else "filtered", run, model, len(chosen), *means)
    for i, (n_examples, *means) in enumerate(_random_means(study, scores)):
        yield _row(study, "random_subset", runs[1 + i], model, round(n_examples), *means)


def _random_means(study: Study, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean number of examples and mean scores over random subsets, shape (n_adversary_runs, 3)."""
    known = ~np.isnan(scores[:, 0])
    (entropy, entropy_scale), (distance, distance_scale) = (fixed_point(np.nan_to_num(c)) for c in scores.T)
    values = np.column_stack([known, entropy, distance])
    s = study.settings
    sums = subset_sums(values, study.sizes[1:], s.n_random_subsets, s.seed)
    means = ratio(sums[..., 1:] / [entropy_scale, distance_scale], sums[..., :1])
    return np.column_stack([sums[..., 0].mean(axis=0), range_over_draws(means)[0]])


def _scores(study: Study, model: str) -> NDArray[np.float64]:
    """Cross-entropy and distance per example, mean over the model's seeds, (n_examples, 2); NaN: no distribution."""
    by_seed = []
    for run in (run for run in study.inputs.model_runs if run[0] == model):
        probabilities = _probabilities(study, run)
        annotators = normalised(_padded(study.inputs.frame["label_count"], probabilities.shape[1]))
        by_seed.append(
            np.column_stack([cross_entropy_nats(annotators, probabilities), js_distance(annotators, probabilities)])
        )
    return np.mean(by_seed, axis=0)


def _probabilities(study: Study, run: Run) -> NDArray[np.float64]:
    """Probabilities of one run, shape (n_examples, n_labels); rows of fewer candidates end in zeros."""
    lists, order = study.inputs.probabilities(run), study.inputs.label_order
    lengths = lists.list.len().to_numpy()
    if order and (lengths != len(order)).any():
        raise UserError(
            f"{study.inputs.predictions[run]}: probabilities of {lengths.min():d} to {lengths.max():d} labels;"
            f" allowed: {len(order)}, in the order {', '.join(order)}; predict again"
        )
    return normalised(_padded(lists, int(lengths.max())))


def _padded(lists: pl.Series, width: int) -> NDArray[np.float64]:
    """First `width` entries of each list, zeros where there are none, shape (n_rows, width)."""
    columns = [lists.list.get(i, null_on_oob=True).cast(pl.Float64).fill_null(0.0).to_numpy() for i in range(width)]
    return np.stack(columns, axis=1)


def _row(
    study: Study,
    subset: str,
    run: tuple[str | None, int | None],
    model: str,
    n_examples: int,
    cross_entropy: float,
    distance: float,
) -> dict[str, Any]:
    return {
        "dataset": study.inputs.dataset,
        "subset": subset,
        "adversary": run[0],
        "adversary_seed": run[1],
        "evaluated_model": model,
        "n_examples": n_examples,
        "cross_entropy_nats": cross_entropy,
        "js_distance": distance,
    }
