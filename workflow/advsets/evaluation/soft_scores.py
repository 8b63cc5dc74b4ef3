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
    return table_frame("soft_scores", [*_measured(study, scores), *_random(study, scores)])


def _measured(study: Study, scores: list[NDArray[np.float64]]) -> Iterator[dict[str, Any]]:
    runs: list[tuple[str | None, int | None]] = [(None, None), *study.inputs.adversary_runs]
    for model, values in zip(study.inputs.models, scores, strict=True):
        for i, run in enumerate(runs):
            chosen = values[study.subsets[:, i] & ~np.isnan(values[:, 0])]
            means = chosen.mean(axis=0) if len(chosen) else (np.nan, np.nan)
            yield _row(study, "full_set" if i == 0 else "filtered", run, model, len(chosen), *means)


def _random(study: Study, scores: list[NDArray[np.float64]]) -> Iterator[dict[str, Any]]:
    if not scores:
        return
    columns = np.concatenate(scores, axis=1)
    known = ~np.isnan(columns[:, :1])
    whole, scale = fixed_point(np.nan_to_num(columns))
    s = study.settings
    sums = subset_sums(np.hstack([known, whole]), study.sizes[1:], s.n_random_subsets, s.seed)
    n_examples = np.rint(sums[..., 0].mean(axis=0)).astype(int)
    means = range_over_draws(ratio(sums[..., 1:] / scale, sums[..., :1]))[0].reshape(len(n_examples), -1, 2)
    for i, run in enumerate(study.inputs.adversary_runs):
        for m, model in enumerate(study.inputs.models):
            yield _row(study, "random_subset", run, model, int(n_examples[i]), *means[i, m])


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
