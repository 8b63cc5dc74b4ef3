"""The number behind each finding: value, interval, and how it was reached.

Conventions
-----------
Means over adversaries are over adversary runs with examples left, each counting once.
`draws` are over bootstrap resamples of the examples, or over random subsets where `measure`
says so. The filter itself is not repeated: intervals hold for these filtered subsets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from advsets.evaluation.agreement_sums import Means, best_known_measure, measure_draws, measure_means, n_with_measure
from advsets.evaluation.inputs import SELF
from advsets.evaluation.penalty import own_recovered_share, penalty
from advsets.evaluation.ranks import random_tau
from advsets.evaluation.study import Study
from advsets.stats.bootstrap import known_mean, percentile_interval, range_over_draws, ratio
from advsets.stats.ranking import kendall_tau_b

FEWEST_TO_RANK = 3


@dataclass(frozen=True)
class Measured:
    """One number with its interval; `undecidable` says why no verdict can be given, if so."""

    value: float
    low: float
    high: float
    measure: str
    detail: str
    undecidable: str = ""


def accuracy_drop(study: Study) -> Measured:
    """(a) Filtered minus size-matched random accuracy, mean over adversaries and evaluated models."""
    random, lowest, _ = range_over_draws(study.model_accuracy_random)
    filtered = study.model_accuracy[1:]
    value = float(known_mean(filtered - random))
    # the expected accuracy of a random subset is that of the full set
    draws = study.model_accuracy_draws
    change = known_mean(draws[:, 1:] - draws[:, :1], axis=(1, 2))
    low, high = percentile_interval(change, study.settings.confidence)
    known = ~np.isnan(filtered)
    return Measured(
        value,
        float(low),
        float(high),
        "accuracy on filtered minus size-matched random subsets, mean over cells (bootstrap over examples)",
        f"{int((filtered < lowest)[known].sum())} of {int(known.sum())} cells (adversary x evaluated model) lie below"
        f" each of {study.settings.n_random_subsets} random subsets; {_sizes(study)}; {_seeds(study)}",
        "" if known.any() else "no filtered subset with examples and evaluated models",
    )


def drop_by_strength(study: Study) -> Measured:
    """(b) tau-b over adversaries of strength against mean drop of accuracy."""
    inputs = study.inputs
    scored = [a for a in inputs.adversaries if a in inputs.models]
    strong = [inputs.models.index(a) for a in scored]
    runs = [[i for i, (name, _) in enumerate(inputs.adversary_runs) if name == a] for a in scored]

    def association(accuracies: NDArray[np.float64]) -> NDArray[np.float64]:
        change = known_mean(accuracies[..., :1, :] - accuracies[..., 1:, :], axis=-1)
        drop = np.stack([known_mean(change[..., own], axis=-1) for own in runs], axis=-1)
        return kendall_tau_b(accuracies[..., 0, strong], drop)

    value, low, high = np.nan, np.nan, np.nan
    if len(scored) >= 2:
        value = float(association(study.model_accuracy))
        low, high = map(float, percentile_interval(association(study.model_accuracy_draws), study.settings.confidence))
    few = len(scored) < FEWEST_TO_RANK
    return Measured(
        value,
        low,
        high,
        "tau-b of adversary strength and mean drop of accuracy (bootstrap over examples)",
        f"{len(scored)} adversaries of known strength of {len(inputs.adversaries)}; the interval does not cover the"
        f" choice of adversaries; {_seeds(study)}",
        f"{len(scored)} adversaries of known strength, {FEWEST_TO_RANK} needed" if few else "",
    )


def rank_instability(study: Study) -> Measured:
    """(c) tau-b of random subsets minus that of filtered ones, each against the full set."""
    tau = kendall_tau_b(study.model_accuracy[0], study.model_accuracy[1:])
    known = ~np.isnan(tau)
    draws = known_mean(random_tau(study)[:, known], axis=1)
    mean, low, high = (float(x) for x in range_over_draws(draws))
    filtered = float(known_mean(tau))
    n_models, n_draws = len(study.inputs.models), study.settings.n_random_subsets
    undecidable = ""
    if n_models < FEWEST_TO_RANK:
        undecidable = f"{n_models} evaluated models, {FEWEST_TO_RANK} needed"
    elif 1 / (n_draws + 1) > 1 - study.settings.confidence:
        # by chance alone the filtered value is the lowest of n_draws + 1 with this probability
        undecidable = f"{n_draws} random subsets are too few for a confidence of {study.settings.confidence}"
    return Measured(
        mean - filtered,
        low - filtered,
        high - filtered,
        "tau-b with the full set: random minus filtered subsets (range over random subsets)",
        f"mean tau-b {filtered:.3f} for filtered and {low:.3f} to {high:.3f} for {n_draws}"
        f" random subsets, {n_models} evaluated models, {int(known.sum())} filtered subsets; {_seeds(study)}",
        undecidable,
    )


def agreement_gap(study: Study) -> tuple[Measured, Measured]:
    """(d) Retained minus removed, within gold class and overall.

    The measure is annotator agreement, or the low-agreement flag (with its sign turned) where
    more examples have it: agreement that only some rows have may not be known at random.
    """
    measure = best_known_measure(study)
    flag = measure == "low_agreement"
    sign = -1.0 if flag else 1.0
    points = _gaps(study, measure_means(study, measure))
    draws = _gaps(study, measure_draws(study, measure))
    low, high = percentile_interval(np.stack(draws, axis=1), study.settings.confidence)
    names = "minus the low-agreement share" if flag else "annotator agreement"
    n_known = n_with_measure(study, measure)
    found = []
    for i, where in enumerate(("within gold class", "overall")):
        bounds = sorted((sign * float(low[i]), sign * float(high[i])))
        found.append(
            Measured(
                sign * float(points[i]),
                bounds[0],
                bounds[1],
                f"{names}, retained minus removed, {where} (bootstrap over examples)",
                f"{n_known} of {study.inputs.n_examples} examples have the measure; {_sizes(study)}",
                "" if n_known else "the data has neither agreement nor a low-agreement flag",
            )
        )
    return found[0], found[1]


def _gaps(study: Study, means: Means) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Retained minus removed, within class (weighted by the class's share of the full set) and overall."""
    n_runs = len(study.inputs.adversary_runs)
    gaps = means.mean[..., 1 : 1 + n_runs, :] - means.mean[..., 1 + n_runs :, :]
    weights = np.broadcast_to(means.n_examples[..., :1, 1:], gaps[..., 1:].shape) * ~np.isnan(gaps[..., 1:])
    within = ratio((np.nan_to_num(gaps[..., 1:]) * weights).sum(axis=-1), weights.sum(axis=-1))
    return known_mean(within, axis=-1), known_mean(gaps[..., 0], axis=-1)


def own_penalty(study: Study) -> Measured:
    """(e) Mean residual of own cells on the log-odds of accuracy."""
    found = penalty(study).filter(pl.col("relation") == SELF).to_dicts()[0]
    share = own_recovered_share(study)
    value, low, high = (
        np.nan if found[k] is None else found[k] for k in ("penalty_log_odds", "penalty_low", "penalty_high")
    )
    return Measured(
        value,
        low,
        high,
        f"mean residual of own cells, log-odds of accuracy (bootstrap over {found['interval_over']})",
        f"{found['n_cells']} own cells of {len(study.inputs.adversaries)} adversaries x {len(study.inputs.models)}"
        f" evaluated models; a true effect of 1 shows here as {share:.2f}; {_seeds(study)}",
        "" if np.isfinite(value) else "no own cell beside others to compare it with",
    )


def _sizes(study: Study) -> str:
    kept = study.sizes[1:]
    if not kept.size:
        return "no filtered subset"
    return f"{kept.min()} to {kept.max()} of {study.sizes[0]} examples retained"


def _seeds(study: Study) -> str:
    counts = []
    for runs, role in ((study.inputs.model_runs, "evaluated model"), (study.inputs.adversary_runs, "adversary")):
        seeds = len({seed for _, seed in runs})
        counts.append(f"{'one fine-tuning seed' if seeds == 1 else f'{seeds} fine-tuning seeds'} per {role}")
    return ", ".join(counts)
