"""Table `accuracy`: every evaluated model on the full set, each filtered subset and its random controls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from advsets.evaluation.frames import table_frame
from advsets.evaluation.study import Study
from advsets.stats.bootstrap import percentile_interval, range_over_draws, ratio


def accuracy(study: Study) -> pl.DataFrame:
    """Accuracy by subset and model run, with bootstrap bounds or the range over random subsets.

    Bootstrap draws that hold no example of a small subset are left out of its bounds.
    """
    return table_frame("accuracy", [*_measured(study), *_random(study)])


def _measured(study: Study) -> Iterator[dict[str, Any]]:
    points = ratio(study.correct, study.sizes[:, None])
    draws = ratio(study.bootstrap[..., :-1], study.bootstrap[..., -1:])
    low, high = percentile_interval(draws, study.settings.confidence)
    subsets = [("full_set", None, None), *(("filtered", a, s) for a, s in study.inputs.adversary_runs)]
    for i, subset in enumerate(subsets):
        for j in range(len(study.inputs.model_runs)):
            yield _row(study, subset, j, int(study.sizes[i]), points[i, j], low[i, j], high[i, j])


def _random(study: Study) -> Iterator[dict[str, Any]]:
    sizes = study.sizes[1:]
    mean, low, high = range_over_draws(ratio(study.random, sizes[None, :, None]))
    for i, (adversary, seed) in enumerate(study.inputs.adversary_runs):
        for j in range(len(study.inputs.model_runs)):
            subset = ("random_subset", adversary, seed)
            yield _row(study, subset, j, int(sizes[i]), mean[i, j], low[i, j], high[i, j])


def _row(
    study: Study,
    subset: tuple[str, str | None, int | None],
    run: int,
    n_examples: int,
    value: float,
    low: float,
    high: float,
) -> dict[str, Any]:
    model, seed = study.inputs.model_runs[run]
    return {
        "dataset": study.inputs.dataset,
        "subset": subset[0],
        "adversary": subset[1],
        "adversary_seed": subset[2],
        "evaluated_model": model,
        "model_seed": seed,
        "n_examples": n_examples,
        "accuracy": value,
        "accuracy_low": low,
        "accuracy_high": high,
    }
