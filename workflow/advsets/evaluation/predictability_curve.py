"""Table `accuracy_by_predictability`: difficulty as a score of each example instead of a cut.

Conventions
-----------
Predictability is that of the first filtering round, when every evaluation example was still
there: the share of the adversary's classifiers that predict it right, from 0 (hardest) to 1.
Bins are of equal width; the lower edge belongs to a bin, the upper one to the next, but for the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from advsets.evaluation.frames import table_frame
from advsets.evaluation.inputs import aligned
from advsets.evaluation.study import Study
from advsets.io import read_table
from advsets.stats.agreement import bin_edges, membership
from advsets.stats.bootstrap import masked_sums, percentile_interval


def accuracy_by_predictability(study: Study) -> pl.DataFrame:
    """Accuracy of each evaluated model by bin of predictability to each adversary run, with bounds."""
    return table_frame("accuracy_by_predictability", _rows(study))


def _rows(study: Study) -> Iterator[dict[str, Any]]:
    n_bins = study.settings.n_predictability_bins
    edges = bin_edges(n_bins)
    values = np.column_stack([study.inputs.correct, np.ones(study.inputs.n_examples, dtype=bool)]).astype(np.int64)
    for adversary, seed in study.inputs.adversary_runs:
        bins = membership(first_round(study, study.inputs.round_scores[adversary, seed]), n_bins)
        sums = bins.T.astype(np.int64) @ values
        draws = masked_sums(values, bins, study.settings.n_bootstrap, study.settings.seed)
        points = study.by_model(sums[:, :-1], sums[:, -1])
        low, high = percentile_interval(study.by_model(draws[..., :-1], draws[..., -1]), study.settings.confidence)
        for b in range(n_bins):
            for m, model in enumerate(study.inputs.models):
                yield {
                    "dataset": study.inputs.dataset,
                    "adversary": adversary,
                    "adversary_seed": seed,
                    "evaluated_model": model,
                    "relation": study.inputs.relation(adversary, model),
                    "bin_low": edges[b],
                    "bin_high": edges[b + 1],
                    "n_examples": int(sums[b, -1]),
                    "accuracy": points[b, m],
                    "accuracy_low": low[b, m],
                    "accuracy_high": high[b, m],
                }


def first_round(study: Study, round_scores: Path) -> NDArray[np.float64]:
    """Predictability of every example in the first round, shape (n_examples,); NaN where unknown."""
    columns = ["filtering_round", "split", "example_id", "predictability"]
    frame = read_table(round_scores, "round_scores", columns)
    first = frame.filter((pl.col("filtering_round") == 1) & (pl.col("split") == "evaluation"))
    rows = aligned(first, study.inputs.frame["example_id"], round_scores, study.inputs.examples)
    return rows["predictability"].fill_null(float("nan")).to_numpy()
