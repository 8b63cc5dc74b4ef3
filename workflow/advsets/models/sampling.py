"""Which training rows are used, and which of them choose the checkpoint.

Conventions
-----------
Draws are keyed by seed and `example_id` or `group_id`: the order of the rows changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from advsets.errors import UserError
from advsets.seeding import uniform_for

if TYPE_CHECKING:
    import polars as pl


def cap_examples(examples: pl.DataFrame, n_most: int | None, seed: int) -> pl.DataFrame:
    """At most `n_most` rows, classes in proportion to their size (largest remainder)."""
    import polars as pl

    if n_most is None or examples.height <= n_most:
        return examples
    keyed = examples.with_columns(_draw=pl.Series(uniform_for(examples["example_id"].to_list(), seed, "cap")))
    quota = _quota(examples["label"].to_list(), n_most)
    parts = [
        keyed.filter(pl.col("label") == label).sort("_draw", "example_id").head(n) for label, n in quota.items() if n
    ]
    return pl.concat(parts).drop("_draw").sort("example_id")


def _quota(labels: list[str], n_most: int) -> dict[str, int]:
    names = sorted(set(labels))
    exact = {name: n_most * labels.count(name) / len(labels) for name in names}
    quota = {name: int(value) for name, value in exact.items()}
    by_remainder = sorted(names, key=lambda name: (quota[name] - exact[name], name))
    for name in by_remainder[: n_most - sum(quota.values())]:
        quota[name] += 1
    return quota


def selection_mask(example_ids: list[str], groups: list[str | None], share: float, seed: int) -> NDArray[np.bool_]:
    """Rows of the slice that chooses the checkpoint, shape (n_examples,): whole groups, about `share` of the rows.

    Raises
    ------
    UserError
        If the slice would take every row.
    """
    if share == 0:
        return np.zeros(len(example_ids), bool)
    keys = [f"g{group}" if group is not None else f"i{i}" for i, group in zip(example_ids, groups, strict=True)]
    sizes: dict[str, int] = {}
    for key in keys:
        sizes[key] = sizes.get(key, 0) + 1
    names = sorted(sizes)
    draws = uniform_for(names, seed, "selection")
    wanted, taken, chosen = max(1, round(share * len(keys))), 0, set()
    for _, name in sorted(zip(draws, names, strict=True)):
        if taken >= wanted:
            break
        chosen.add(name)
        taken += sizes[name]
    if taken == len(keys):
        raise UserError(
            f"fine_tune: selection_share {share} takes all {len(keys)} training examples in {len(names)} groups;"
            " allowed: a share that leaves groups to train on; lower it (0: keep the last epoch) or add data"
        )
    return np.array([key in chosen for key in keys])
