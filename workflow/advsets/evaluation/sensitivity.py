"""Table `sensitivity`: how much of a retained set stays when one setting, or a seed, is another.

Conventions
-----------
Every row compares a filter with its base: the run's own settings and first adversary seed. The
overlap is the Jaccard index of the two retained sets of evaluation examples. Two random subsets of
the same sizes share some examples, too: their index is drawn from the hypergeometric distribution.
Setting `adversary_seed` compares the run's own filters by other fine-tuning seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from advsets.evaluation.difficulty import retained_mask
from advsets.evaluation.frames import table_frame
from advsets.evaluation.study import Study
from advsets.evaluation.weighted import summary, weighted_scores
from advsets.seeding import rng_for
from advsets.stats.bootstrap import known_mean, percentile_interval

ADVERSARY_SEED = "adversary_seed"
BASE = "base"
Variant = tuple[str, str, str]
"""Adversary, setting and value of a filter that was run once more."""


def sensitivity(study: Study, variants: Mapping[Variant, Path]) -> pl.DataFrame:
    """One row per variant, and one per adversary for the base itself.

    Parameters
    ----------
    variants : mapping of (adversary, setting, value) to Path
        Tables `retained` of the filters with one setting changed.
    """
    return table_frame("sensitivity", _rows(study, variants))


def jaccard(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> float:
    """Shared examples of all that either holds; NaN where both are empty."""
    either = int((one | other).sum())
    return int((one & other).sum()) / either if either else float("nan")


def random_jaccard(n_all: int, sizes: tuple[int, int], n_draws: int, seed: int, *key: str | int) -> NDArray[np.float64]:
    """Jaccard index of two random subsets of `n_all` examples with these sizes, shape (n_draws,)."""
    shared = rng_for(seed, *key).hypergeometric(sizes[0], n_all - sizes[0], sizes[1], size=n_draws)
    either = sum(sizes) - shared
    return np.divide(shared, either, out=np.full(n_draws, np.nan), where=either > 0)


def _rows(study: Study, variants: Mapping[Variant, Path]) -> Iterator[dict[str, Any]]:
    for adversary in sorted({name for name, _, _ in variants}):
        runs = [i for i, (name, _) in enumerate(study.inputs.adversary_runs) if name == adversary]
        base = study.inputs.masks[:, runs[0]]
        masks = {(BASE, ""): base}
        masks |= {(ADVERSARY_SEED, str(study.inputs.adversary_runs[i][1])): study.inputs.masks[:, i] for i in runs[1:]}
        masks |= {(s, v): retained_mask(study, path) for (a, s, v), path in sorted(variants.items()) if a == adversary}
        scores = weighted_scores(study, np.column_stack(list(masks.values())))
        for at, ((setting, value), mask) in enumerate(masks.items()):
            yield {
                "dataset": study.inputs.dataset,
                "adversary": adversary,
                "setting": setting,
                "setting_value": value,
                "n_retained": int(mask.sum()),
                "n_retained_base": int(base.sum()),
                "jaccard": jaccard(base, mask),
                **_chance(study, (int(base.sum()), int(mask.sum())), adversary, setting, value),
                **summary(study, scores, at),
            }


def _chance(study: Study, sizes: tuple[int, int], *key: str) -> dict[str, float]:
    s = study.settings
    draws = random_jaccard(study.inputs.n_examples, sizes, s.n_bootstrap, s.seed, "jaccard", *key)
    low, high = percentile_interval(draws, s.confidence)
    return {
        "jaccard_random_mean": float(known_mean(draws)),
        "jaccard_random_low": float(low),
        "jaccard_random_high": float(high),
    }
