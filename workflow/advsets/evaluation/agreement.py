"""Tables `agreement`, `agreement_histogram` and `accuracy_by_agreement`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from advsets.evaluation.agreement_sums import measure_draws, measure_means, n_with_measure
from advsets.evaluation.frames import table_frame
from advsets.evaluation.study import Study
from advsets.stats.agreement import bin_edges, membership
from advsets.stats.bootstrap import percentile_interval, ratio


def agreement(study: Study) -> pl.DataFrame:
    """Agreement, entropy and share of low-agreement flags, overall and within gold class.

    Means are over the examples that have the measure: `n_examples` for agreement and entropy,
    `n_flagged` for the flag. Where no example has agreement, `n_examples` is `n_flagged`.
    """
    has_agreement, has_flag = (n_with_measure(study, name) > 0 for name in ("agreement", "low_agreement"))
    means = {name: measure_means(study, name) for name in ("agreement", "label_entropy_bits", "low_agreement")}
    bounds = {
        name: percentile_interval(measure_draws(study, name).mean, study.settings.confidence)
        if n_with_measure(study, name)
        else (np.full(means[name].mean.shape, np.nan),) * 2
        for name in ("agreement", "low_agreement")
    }
    return table_frame(
        "agreement",
        (
            {
                "dataset": study.inputs.dataset,
                "adversary": adversary,
                "adversary_seed": seed,
                "gold_label": gold_label,
                "subset": subset,
                "n_examples": int(means["agreement" if has_agreement else "low_agreement"].n_examples[part, c]),
                "n_flagged": int(means["low_agreement"].n_examples[part, c]) if has_flag else None,
                "agreement_mean": means["agreement"].mean[part, c],
                "agreement_low": bounds["agreement"][0][part, c],
                "agreement_high": bounds["agreement"][1][part, c],
                "label_entropy_bits_mean": means["label_entropy_bits"].mean[part, c],
                "low_agreement_share": means["low_agreement"].mean[part, c],
                "low_agreement_low": bounds["low_agreement"][0][part, c],
                "low_agreement_high": bounds["low_agreement"][1][part, c],
            }
            for adversary, seed, subset, part in _parts(study)
            for c, gold_label in enumerate([None, *study.inputs.gold_labels])
        ),
    )


def _parts(study: Study) -> Iterator[tuple[str, int, str, int]]:
    """Adversary, its seed, subset and index in `Study.parts`; the full set stands beside every adversary run."""
    runs = study.inputs.adversary_runs
    for i, (adversary, seed) in enumerate(runs):
        yield adversary, seed, "full_set", 0
        yield adversary, seed, "retained", 1 + i
        yield adversary, seed, "removed", 1 + len(runs) + i


def agreement_histogram(study: Study) -> pl.DataFrame:
    """Examples by bin of agreement, for the full set and what each adversary run retains and removes."""
    n_bins = study.settings.n_agreement_bins
    edges = bin_edges(n_bins)
    counts = study.parts.T.astype(np.int64) @ _bins(study).astype(np.int64)
    shares = ratio(counts, counts.sum(axis=1, keepdims=True))
    return table_frame(
        "agreement_histogram",
        (
            {
                "dataset": study.inputs.dataset,
                "adversary": adversary,
                "adversary_seed": seed,
                "subset": subset,
                "bin_low": edges[b],
                "bin_high": edges[b + 1],
                "n_examples": int(counts[part, b]),
                "share": shares[part, b],
            }
            for adversary, seed, subset, part in _parts(study)
            for b in range(n_bins)
        ),
    )


def accuracy_by_agreement(study: Study) -> pl.DataFrame:
    """Accuracy of each evaluated model by bin of agreement, on the full set."""
    n_bins = study.settings.n_agreement_bins
    edges, bins = bin_edges(n_bins), _bins(study).astype(np.int64)
    counts = bins.sum(axis=0)
    accuracies = study.by_model(bins.T @ study.inputs.correct.astype(np.int64), counts)
    return table_frame(
        "accuracy_by_agreement",
        (
            {
                "dataset": study.inputs.dataset,
                "evaluated_model": model,
                "bin_low": edges[b],
                "bin_high": edges[b + 1],
                "n_examples": int(counts[b]),
                "accuracy": accuracies[b, m],
            }
            for m, model in enumerate(study.inputs.models)
            for b in range(n_bins)
        ),
    )


def _bins(study: Study) -> np.ndarray:
    values = study.inputs.frame["agreement"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return membership(values, study.settings.n_agreement_bins)
