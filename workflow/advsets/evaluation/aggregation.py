"""Tables `aggregate_ranks` and `aggregate_stability`: one ranking from the subsets of many adversaries.

Conventions
-----------
Methods, each giving a score per model (higher is better) from the accuracies on all subsets:

| method | score |
|---|---|
| `full_set` | accuracy on the full set |
| `single_adversary` | accuracy on the subset of one adversary |
| `weighted` | accuracy over all subsets together: each example counts once for each adversary that retains it |
| `weighted_by_family` | the same, adversaries weighted so that each family counts alike |
| `mean_rank` | minus the mean rank over the subsets |
| `bradley_terry` | log-strength from the models' wins over each other, one comparison per subset and pair |

Adversary seeds are subsets of their own. A subset without examples is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from advsets.evaluation.frames import table_frame
from advsets.evaluation.study import Study
from advsets.stats.bootstrap import known_mean, percentile_interval, range_over_draws
from advsets.stats.ranking import bradley_terry, kendall_tau_b, mean_ranks

Floats = NDArray[np.float64]
Method = Callable[[Study, Floats, Floats, Sequence[int]], Floats]
"""From right answers (..., n_adversary_runs, n_model_runs) and examples (..., n_adversary_runs), and the
adversary runs to use, to scores (..., n_models)."""


def _weighted(study: Study, correct: Floats, sizes: Floats, runs: Sequence[int]) -> Floats:
    return study.by_model(correct[..., runs, :].sum(axis=-2), sizes[..., runs].sum(axis=-1))


def _weighted_by_family(study: Study, correct: Floats, sizes: Floats, runs: Sequence[int]) -> Floats:
    families = [study.inputs.family(study.inputs.adversary_runs[i][0]) for i in runs]
    weights = np.array([1 / families.count(family) for family in families])
    right = (correct[..., runs, :] * weights[:, None]).sum(axis=-2)
    return study.by_model(right, (sizes[..., runs] * weights).sum(axis=-1))


def _mean_rank(study: Study, correct: Floats, sizes: Floats, runs: Sequence[int]) -> Floats:
    return -known_mean(mean_ranks(study.by_model(correct[..., runs, :], sizes[..., runs])), axis=-2)


def _bradley_terry(study: Study, correct: Floats, sizes: Floats, runs: Sequence[int]) -> Floats:
    scores = study.by_model(correct[..., runs, :], sizes[..., runs])
    above = (scores[..., :, None] > scores[..., None, :]).sum(axis=-3)
    tied = (scores[..., :, None] == scores[..., None, :]).sum(axis=-3)
    return bradley_terry(above + tied / 2)


METHODS: dict[str, Method] = {
    "weighted": _weighted,
    "weighted_by_family": _weighted_by_family,
    "mean_rank": _mean_rank,
    "bradley_terry": _bradley_terry,
}


def aggregate_ranks(study: Study) -> pl.DataFrame:
    """Score and rank of each model by each method, with bootstrap bounds over examples."""
    return table_frame("aggregate_ranks", _rank_rows(study))


def aggregate_stability(study: Study) -> pl.DataFrame:
    """How far each method's ranking repeats on other examples, and foretells an unseen adversary's.

    `tau_b_draws` compares a ranking with those on bootstrap draws; `tau_b_unseen` the ranking
    made without an adversary with that on its subset, mean over adversaries (for a single
    adversary: its ranking with those of all others).
    """
    return table_frame("aggregate_stability", _stability_rows(study))


def _scored(study: Study) -> Iterator[tuple[str, str | None, int | None, Floats, Floats]]:
    """Method, adversary and its seed, scores (n_models,) and their draws (n_draws, n_models)."""
    yield "full_set", None, None, study.model_accuracy[0], study.model_accuracy_draws[:, 0]
    for a, (adversary, seed) in enumerate(study.inputs.adversary_runs, start=1):
        yield "single_adversary", adversary, seed, study.model_accuracy[a], study.model_accuracy_draws[:, a]
    every = range(len(study.inputs.adversary_runs))
    if not len(every):
        return
    correct, sizes = study.correct[1:].astype(np.float64), study.sizes[1:].astype(np.float64)
    draws = study.bootstrap[:, 1:]
    for name, method in METHODS.items():
        values = method(study, correct, sizes, every)
        yield name, None, None, values, method(study, draws[..., :-1], draws[..., -1], every)


def _rank_rows(study: Study) -> Iterator[dict[str, Any]]:
    for name, adversary, seed, values, draws in _scored(study):
        low, high = percentile_interval(draws, study.settings.confidence)
        ranks = mean_ranks(values)
        rank_low, rank_high = percentile_interval(mean_ranks(draws), study.settings.confidence)
        for m, model in enumerate(study.inputs.models):
            yield {
                "dataset": study.inputs.dataset,
                "method": name,
                "adversary": adversary,
                "adversary_seed": seed,
                "evaluated_model": model,
                "method_score": values[m],
                "method_score_low": low[m],
                "method_score_high": high[m],
                "rank": ranks[m],
                "rank_low": rank_low[m],
                "rank_high": rank_high[m],
            }


def _stability_rows(study: Study) -> Iterator[dict[str, Any]]:
    full = study.model_accuracy[0]
    for name, adversary, seed, values, draws in _scored(study):
        mean, _, _ = range_over_draws(kendall_tau_b(values, draws))
        low, high = percentile_interval(kendall_tau_b(values, draws), study.settings.confidence)
        yield {
            "dataset": study.inputs.dataset,
            "method": name,
            "adversary": adversary,
            "adversary_seed": seed,
            "tau_b_full_set": float(kendall_tau_b(full, values)),
            "tau_b_draws_mean": float(mean),
            "tau_b_draws_low": float(low),
            "tau_b_draws_high": float(high),
            "tau_b_unseen": _unseen(study, name, adversary, values),
        }


def _unseen(study: Study, name: str, adversary: str | None, values: Floats) -> float:
    """Mean tau-b of the ranking with that of each adversary that it has not used."""
    found = []
    names = [a for a, _ in study.inputs.adversary_runs]
    correct, sizes = study.correct[1:].astype(np.float64), study.sizes[1:].astype(np.float64)
    for unseen in study.inputs.adversaries:
        if unseen == adversary:
            continue
        others = [i for i, a in enumerate(names) if a != unseen]
        ranked = values
        if name in METHODS:
            if not others:
                continue
            ranked = METHODS[name](study, correct, sizes, others)
        own = [i for i, a in enumerate(names) if a == unseen]
        found += kendall_tau_b(ranked, study.model_accuracy[1:][own]).tolist()
    return float(known_mean(np.array(found)))
