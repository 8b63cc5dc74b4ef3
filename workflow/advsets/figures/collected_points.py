"""Points of the figure of adversarial collections: their rows, looks and legend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from advsets.figures import collected, frames, layout, style
from advsets.figures.context import FigureContext

_SET = ["collection", "dataset", "measure"]
_OF_SET = [
    "construction",
    "collection_round",
    "model_in_the_loop",
    "chance",
    "majority",
    "n_with_annotators",
    "agreement_mean",
    "unanimous_share",
]
_INSTANCE = ["collection", "training_set", "evaluated_model", "model_seed", "measure"]
_STANDARD = ["standard_score", "standard_score_low", "standard_score_high"]
_SCORE = ["mean_score", "mean_score_low", "mean_score_high"]
_KEYS = ["collection", "training_set", "evaluated_model", "dataset", "measure", "relation", "in_the_loop"]
_LOOP_MARKER = "*"


@dataclass(frozen=True)
class Level:
    """Line of a score that needs no model."""

    gid: str
    line: Mapping[str, Any]


LEVELS = (
    Level("chance", {"color": "black", "linewidth": 0.9, "linestyle": (0, (1, 2)), "zorder": 1}),
    Level("majority", {"color": style.MUTED, "linewidth": 0.8, "linestyle": (0, (6, 2)), "zorder": 1}),
)
DIAGONAL: dict[str, Any] = {"color": style.MUTED, "linewidth": 0.7, "zorder": 1}


def shown(tables: frames.Tables, context: FigureContext) -> pl.DataFrame:
    """Rows of the figure: `kind` `mean` (over seeds) and, of models with several, `seed`.

    Bounds of a mean are the widest of its seeds'. `standard_*` is the score on
    `standard_dataset`, the first standard set of the collection; null where there is none.
    `level` is the chance level, of questions the score of the whole passage as answer, and
    `above_level` whether the interval lies above it. `drawn` rows are in the figure.
    """
    sets = tables["collected_sets"].select(*_SET, *_OF_SET)
    scores = tables["collected_scores"].join(sets, on=_SET, how="left")
    scores = scores.join(_standard(scores, context), on=_INSTANCE, how="left", nulls_equal=True)
    mean = (
        scores.sort(*_KEYS, "model_seed", nulls_last=True)
        .group_by(_KEYS)
        .agg(
            pl.lit(None, pl.Int64).alias("model_seed"),
            pl.len().cast(pl.Int64).alias("n_seeds"),
            pl.col("n_examples").max(),
            pl.col("n_missing").max(),
            pl.col("mean_score", "standard_score").mean(),
            pl.col("^.*score_low$").min(),
            pl.col("^.*score_high$").max(),
            pl.col("saw_training_part").any(ignore_nulls=False),
            pl.col("standard_dataset", *_OF_SET).first(),
        )
        .with_columns(kind=pl.lit("mean"))
    )
    seeds = scores.filter(pl.len().over(_KEYS) > 1).with_columns(n_seeds=pl.lit(1, pl.Int64), kind=pl.lit("seed"))
    return _with_level(pl.concat([mean, seeds.select(mean.columns)]))


def _standard(scores: pl.DataFrame, context: FigureContext) -> pl.DataFrame:
    """Score of each instance on the first standard set of its collection."""
    standard = scores.filter(pl.col("construction") == "standard")
    first = {
        name: context.order_sets(name, standard.filter(pl.col("collection") == name)["dataset"])[0]
        for name in standard["collection"].unique()
    }
    named = pl.DataFrame({"collection": list(first), "dataset": list(first.values())}, schema=["collection", "dataset"])
    named = named.cast({"collection": pl.String, "dataset": pl.String})
    renamed = {"dataset": "standard_dataset", **dict(zip(_SCORE, _STANDARD, strict=True))}
    return standard.join(named, on=["collection", "dataset"]).select(*_INSTANCE, "dataset", *_SCORE).rename(renamed)


def _with_level(rows: pl.DataFrame) -> pl.DataFrame:
    drawn = {
        name: collected.drawn_measure(rows.filter(pl.col("collection") == name)["measure"])
        for name in rows["collection"].unique()
    }
    measure = pl.col("collection").replace_strict(drawn, return_dtype=pl.String)
    columns = ["collection", "training_set", "evaluated_model", "kind", "model_seed", "n_seeds", "dataset", "measure"]
    return (
        rows.with_columns(level=pl.coalesce("chance", "majority"))
        .with_columns(
            above_level=pl.coalesce("mean_score_low", "mean_score") > pl.col("level"),
            drawn=(pl.col("construction") == "adversarial")
            & (pl.col("measure") == measure)
            & (pl.col("kind") == "mean"),
        )
        .select(*columns, pl.exclude(columns))
        .sort(*columns[:4], "model_seed", "dataset", "measure", "in_the_loop", "relation")
    )


def point(axes: Axes, x: float, row: Mapping[str, Any], look: style.SeriesStyle) -> None:
    """One model on one set at x: its intervals, and the marks of what it is to the set."""
    y = row["mean_score"]
    if y is None:
        return
    bars: dict[str, Any] = {"color": look.colour, "linewidth": 0.9, "zorder": 2}
    if row["mean_score_low"] is not None and row["mean_score_high"] is not None:
        axes.vlines([x], row["mean_score_low"], row["mean_score_high"], gid="interval", **bars)
    if row["standard_score_low"] is not None and row["standard_score_high"] is not None:
        axes.hlines([y], row["standard_score_low"], row["standard_score_high"], gid="standard_interval", **bars)
    changes: dict[str, Any] = {"linestyle": "none", "zorder": 3, "clip_on": False, "markeredgewidth": 0.9}
    changes |= {"markeredgecolor": look.colour, "markerfacecolor": "white" if row["saw_training_part"] else look.colour}
    if row["in_the_loop"]:
        changes |= {"marker": _LOOP_MARKER, "markersize": 8.5}
    axes.plot([x], [y], gid="in_the_loop" if row["in_the_loop"] else "model", **look.line(**changes))
    if row["relation"] == "self":
        layout.ring(axes, [(x, y)], look.colour)
    if row["above_level"] is False and not row["in_the_loop"]:
        axes.plot([x], [y], "x", color="black", markersize=5.5, markeredgewidth=0.9, zorder=6, gid="not_above")


def legend(rows: pl.DataFrame, looks: Mapping[str, style.SeriesStyle], context: FigureContext) -> list[Line2D]:
    """Entries of the models and of those marks and levels that the rows have."""
    models = [
        Line2D([], [], label=layout.shorten(context.model_title(name)), **look.line(linestyle="none"))
        for name, look in looks.items()
    ]
    ring = {"marker": "o", "markersize": 9.5, "markerfacecolor": "none", "markeredgewidth": 1.4}
    others = rows.filter(~pl.col("in_the_loop"))
    passage = {False: "chance", True: "whole passage"}
    levels = "/".join(passage[kind] for kind in sorted(set(rows["chance"].is_null())))
    most = {"chance": "most frequent label", "whole passage": "whole passage as answer"}
    marks: list[tuple[bool, dict[str, Any]]] = [
        ((rows["relation"] == "self").any(), {**ring, "label": "same base as model in the loop"}),
        (rows["in_the_loop"].any(), {"marker": _LOOP_MARKER, "markersize": 8.5, "label": "instance in the loop"}),
        (
            (rows["saw_training_part"]).any(),
            {"marker": "o", "markerfacecolor": "white", "label": "hollow: saw the training part"},
        ),
        (
            (~others["above_level"]).any(),
            {"marker": "x", "color": "black", "markersize": 5.5, "label": f"not above {levels}"},
        ),
    ]
    lines = [
        (rows["chance"], LEVELS[0], "chance"),
        (rows["majority"], LEVELS[1], most.get(levels, "most frequent label/passage")),
    ]
    return [
        *models,
        *(Line2D([], [], **{"color": style.MUTED, "linestyle": "none", **look}) for present, look in marks if present),
        *(Line2D([], [], label=label, **level.line) for values, level, label in lines if len(values.drop_nulls())),
        *(
            [Line2D([], [], label="as on the standard set", **DIAGONAL)]
            if len(rows["standard_score"].drop_nulls())
            else []
        ),
    ]
