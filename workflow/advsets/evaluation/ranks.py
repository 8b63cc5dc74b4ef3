"""Tables `ranks` and `rank_stability`: does the order of the models survive filtering?

Conventions
-----------
Models are ranked by accuracy, mean over their fine-tuning seeds. Every tau-b compares a
subset with the full set; in a bootstrap draw both are of the same resampled examples.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from advsets.evaluation.frames import table_frame
from advsets.evaluation.study import Study
from advsets.stats.bootstrap import percentile_interval, range_over_draws
from advsets.stats.ranking import kendall_tau_b, mean_rank_change, mean_ranks


def ranks(study: Study) -> pl.DataFrame:
    """Accuracy and rank of each evaluated model on the full set and on each filtered subset."""
    scores = study.model_accuracy
    placed = mean_ranks(scores)
    return table_frame(
        "ranks",
        (
            {
                "dataset": study.inputs.dataset,
                "adversary": adversary,
                "adversary_seed": seed,
                "evaluated_model": model,
                "accuracy_full_set": scores[0, m],
                "accuracy_filtered": scores[a, m],
                "rank_full_set": placed[0, m],
                "rank_filtered": placed[a, m],
                "adversary_strength": study.strength(adversary),
            }
            for a, (adversary, seed) in enumerate(study.inputs.adversary_runs, start=1)
            for m, model in enumerate(study.inputs.models)
        ),
    )


def rank_stability(study: Study) -> pl.DataFrame:
    """tau-b and rank change of each filtered subset, beside size-matched random subsets.

    With fewer than two evaluated models, or where all of them tie, tau-b is null.
    """
    full, filtered = study.model_accuracy[0], study.model_accuracy[1:]
    tau = kendall_tau_b(full, filtered)
    draws = study.model_accuracy_draws
    low, high = percentile_interval(kendall_tau_b(draws[:, :1], draws[:, 1:]), study.settings.confidence)
    random_mean, random_low, random_high = range_over_draws(random_tau(study))
    change = mean_rank_change(full, filtered)
    change_random, _, _ = range_over_draws(mean_rank_change(full, study.model_accuracy_random))
    few = len(study.inputs.models) < 2
    return table_frame(
        "rank_stability",
        (
            {
                "dataset": study.inputs.dataset,
                "adversary": adversary,
                "adversary_seed": seed,
                "n_retained": int(study.sizes[1 + a]),
                "retained_share": float(study.sizes[1 + a] / study.sizes[0]),
                "adversary_strength": study.strength(adversary),
                "tau_b": tau[a],
                "tau_b_low": low[a],
                "tau_b_high": high[a],
                "tau_b_random_mean": random_mean[a],
                "tau_b_random_low": random_low[a],
                "tau_b_random_high": random_high[a],
                "rank_change_mean": None if few else change[a],
                "rank_change_random_mean": None if few else change_random[a],
            }
            for a, (adversary, seed) in enumerate(study.inputs.adversary_runs)
        ),
    )


def random_tau(study: Study) -> NDArray[np.float64]:
    """tau-b of random subsets against the full set, shape (n_random_subsets, n_adversary_runs)."""
    return kendall_tau_b(study.model_accuracy[0], study.model_accuracy_random)
