"""Which rows go where: evaluation or train, adversary or filtering, kept or beyond the limit.

Conventions
-----------
A unit is what stays together: the group, or without groups the example. Every draw compares a
keyed hash of the unit with a bound, so it depends on neither row order nor other rows.
The evaluation set of a one-file source does not depend on the run's seed.
"""

from __future__ import annotations

import polars as pl

from advsets.seeding import uniform_for


def evaluation_mask(units: pl.Series, fraction: float) -> pl.Series:
    """Whether each unit belongs to the evaluation set, shape (n_rows,)."""
    return pl.Series(uniform_for(units.to_list(), 0, "evaluation split") < fraction)


def train_roles(units: pl.Series, adversary_fraction: float, seed: int) -> pl.Series:
    """`adversary` or `filtering` for each training row, shape (n_rows,)."""
    drawn = pl.Series(uniform_for(units.to_list(), seed, "train role") < adversary_fraction)
    return pl.select(pl.when(drawn).then(pl.lit("adversary")).otherwise(pl.lit("filtering"))).to_series()


def subsample_mask(units: pl.Series, labels: pl.Series, n_max: int, seed: int) -> pl.Series:
    """Rows of a draw of at most `n_max`, whole units, each label with its share, shape (n_rows,).

    Units are taken in order of a keyed hash within the label that most of their rows have,
    until the label's share of `n_max` would be passed; a unit larger than that share is passed
    over. With units of one row the result has exactly `n_max` rows; with larger ones it may be
    smaller.
    """
    frame = pl.DataFrame({"unit": units, "label": labels})
    if frame.height <= n_max:
        return pl.Series([True] * frame.height)
    majority = (
        frame.group_by("unit", "label")
        .len()
        .sort(["unit", "len", "label"], descending=[False, True, False])
        .group_by("unit", maintain_order=True)
        .agg(pl.col("label").first(), pl.col("len").sum().alias("n"))
    )
    draw = uniform_for(majority["unit"].to_list(), seed, "subsample")
    ordered = majority.with_columns(pl.Series("draw", draw)).sort(["draw", "unit"])
    quotas = _quotas(ordered.group_by("label").agg(pl.col("n").sum()).sort("label"), n_max)
    fitting = ordered.join(quotas, on="label", maintain_order="left").filter(pl.col("n") <= pl.col("quota"))
    taken = fitting.filter(pl.col("n").cum_sum().over("label") <= pl.col("quota"))
    return units.is_in(taken["unit"].to_list())


def _quotas(totals: pl.DataFrame, n_max: int) -> pl.DataFrame:
    """Rows per label that add up to `n_max`, by largest remainder."""
    exact = totals.with_columns((pl.col("n") * n_max / totals["n"].sum()).alias("exact"))
    floors = exact.with_columns(pl.col("exact").floor().cast(pl.Int64).alias("quota"))
    rest = n_max - int(floors["quota"].sum())
    ranked = floors.sort([pl.col("exact") - pl.col("quota"), "label"], descending=[True, False])
    extra = pl.Series([1] * rest + [0] * (ranked.height - rest), dtype=pl.Int64)
    return ranked.with_columns((pl.col("quota") + extra).alias("quota")).select("label", "quota")
