"""Table `label_balance`: does filtering keep the gold classes in proportion?"""

from __future__ import annotations

import numpy as np
import polars as pl

from advsets.evaluation.frames import table_frame
from advsets.evaluation.study import Study
from advsets.stats.bootstrap import range_over_draws, ratio, subset_sums


def label_balance(study: Study) -> pl.DataFrame:
    """Share of each gold class in each filtered subset, beside the range over size-matched random subsets."""
    classes, s = study.classes[:, 1:], study.settings
    counts = study.subsets.T.astype(np.int64) @ classes.astype(np.int64)
    shares = ratio(counts, study.sizes[:, None])
    random = subset_sums(classes, study.sizes[1:], s.n_random_subsets, s.seed)
    _, low, high = range_over_draws(ratio(random, study.sizes[None, 1:, None]))
    return table_frame(
        "label_balance",
        (
            {
                "dataset": study.inputs.dataset,
                "adversary": adversary,
                "adversary_seed": seed,
                "gold_label": label,
                "share_full_set": shares[0, c],
                "share_filtered": shares[1 + a, c],
                "share_random_low": low[a, c],
                "share_random_high": high[a, c],
            }
            for a, (adversary, seed) in enumerate(study.inputs.adversary_runs)
            for c, label in enumerate(study.inputs.gold_labels)
        ),
    )
