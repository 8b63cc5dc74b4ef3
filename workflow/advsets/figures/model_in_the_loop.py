"""Score of a model's instances on examples that one of them gets wrong, and on sets written against its base."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from advsets.figures import collected, frames, layout, style
from advsets.figures.context import FigureContext

_HOWS = {
    "full_set": layout.PointLook("whole set", style.BLACK, "s"),
    "by_selection": layout.PointLook("by selection, not by people", style.VERMILLION, "o"),
    "by_people": layout.PointLook("by people, against this base", style.BLUE, "^"),
}
_ROW_IN, _AROUND_IN = 0.19, 0.6
_LONGEST_LINE = 40
_GROUP = ["collection", "training_set", "evaluated_model", "dataset", "how", "loop_seed", "measure"]


@dataclass(frozen=True)
class _Row:
    """One line of a panel: a set's title, or one way of taking examples from it."""

    dataset: str
    label: str
    how: str | None = None
    loop_seed: int | None = None


@style.styled
def draw(tables: frames.Tables, context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Draw one block per collection, a panel per training set and model, a row per set and way."""
    data = shown(tables["model_in_the_loop"])
    names = collected.collections(data, context)
    if not names:
        return layout.nothing("This run has no collection of adversarial sets."), data
    parts = [_drawn(data.filter(pl.col("collection") == name)) for name in names]
    panels = [_panels(part, name, context) for name, part in zip(names, parts, strict=True)]
    heights = [
        0.3 + sum(_AROUND_IN + _ROW_IN * len(rows) for *_, rows in inside) + 0.2 if inside else 0.9 for inside in panels
    ]
    figure = style.new_figure(sum(heights) + 0.6)
    for name, part, inside, block in zip(names, parts, panels, layout.blocks(figure, heights), strict=True):
        layout.heading(block, f"{name}: {collected.MEASURES[part['measure'][0]]}" if inside else name)
        _block(block, part, inside, context)
    if any(panels):
        figure.legend(handles=_legend(pl.concat(parts)), loc="outside lower left", ncols=3)
    return figure, data


def shown(table: pl.DataFrame) -> pl.DataFrame:
    """Rows of the figure: `kind` `instance`, and `mean` over those that were not in the loop.

    A mean has `n_seeds` and `score_sd`, the sample standard deviation (null: fewer than two).
    """
    others = table.filter(~pl.col("in_the_loop") & pl.col("mean_score").is_not_null())
    mean = others.group_by(_GROUP).agg(
        pl.lit("mean").alias("kind"),
        pl.lit(None, pl.Int64).alias("model_seed"),
        pl.lit(False).alias("in_the_loop"),
        pl.col("n_examples").max(),
        pl.len().cast(pl.Int64).alias("n_seeds"),
        pl.col("mean_score").sort_by("model_seed").mean(),
        pl.col("mean_score").sort_by("model_seed").std().alias("score_sd"),
    )
    instances = table.with_columns(
        kind=pl.lit("instance"), n_seeds=pl.lit(1, pl.Int64), score_sd=pl.lit(None, pl.Float64)
    )
    return pl.concat([instances.select(mean.columns), mean]).sort(*_GROUP, "kind", "model_seed")


def _drawn(part: pl.DataFrame) -> pl.DataFrame:
    return part.filter(pl.col("measure") == collected.drawn_measure(part["measure"]))


def _panels(part: pl.DataFrame, collection: str, context: FigureContext) -> list[tuple[str, str, list[_Row]]]:
    """Training set, model and rows of each panel."""
    found = []
    for training_set in context.order_training_sets(collection, part["training_set"]):
        trained = part.filter(pl.col("training_set") == training_set)
        for model in context.order_models(trained["evaluated_model"]):
            own = trained.filter(pl.col("evaluated_model") == model)
            sets = context.order_sets(collection, own["dataset"])
            rows = [row for name in sets for row in _rows(own.filter(pl.col("dataset") == name), name, context)]
            found.append((training_set, model, rows))
    return found


def _rows(own: pl.DataFrame, dataset: str, context: FigureContext) -> list[_Row]:
    rows = [_Row(dataset, layout.shorten(context.dataset_title(dataset), 40))]
    ways = own.group_by("how", "loop_seed").agg(pl.col("n_examples").max()).sort("how", "loop_seed").rows()
    for how, seed, n in sorted(ways, key=lambda way: list(_HOWS).index(way[0])):
        against = f" (seed {seed})" if how == "by_selection" and seed is not None else ""
        rows.append(_Row(dataset, f"{_HOWS[how].label}{against}, n = {n:,}", how, seed))
    return rows


def _block(
    block: SubFigure, part: pl.DataFrame, panels: list[tuple[str, str, list[_Row]]], context: FigureContext
) -> None:
    if not panels:
        layout.say(block.subplots(), "No model of this collection was trained, so none was in a loop.")
        return
    heights = [_AROUND_IN / _ROW_IN + len(rows) for *_, rows in panels]
    grid = block.subplots(len(panels), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
    for axes, (training_set, model, rows) in zip(grid, panels, strict=True):
        own = part.filter((pl.col("training_set") == training_set) & (pl.col("evaluated_model") == model))
        title, trained_on = layout.shorten(context.model_title(model)), f"trained on {layout.shorten(training_set)}"
        between = ",\n" if len(title) + len(trained_on) > _LONGEST_LINE else ", "
        axes.set_title(f"{title}{between}{trained_on}")
        _panel(axes, own, rows, context)
    grid[-1].set_xlabel(f"{collected.MEASURES[part['measure'][0]]} (%)")
    layout.percent(grid[-1].xaxis)


def _panel(axes: Axes, own: pl.DataFrame, rows: list[_Row], context: FigureContext) -> None:
    for at, row in enumerate(rows):
        if row.how is None:
            _start_of_set(axes, at, row.dataset, [r.dataset for r in rows].count(row.dataset), own, context)
        else:
            seed = pl.col("loop_seed").eq_missing(pl.lit(row.loop_seed, pl.Int64))
            _line(axes, at, own.filter((pl.col("dataset") == row.dataset) & (pl.col("how") == row.how) & seed), row.how)
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    for label, row in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_fontsize(style.SMALLEST_PT)
        label.set_fontweight("bold" if row.how is None else "normal")
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)


def _start_of_set(axes: Axes, at: int, dataset: str, n_rows: int, own: pl.DataFrame, context: FigureContext) -> None:
    if at:
        axes.axhline(at - 0.5, color=style.BAND, linewidth=0.8)
    chance = context.chance(dataset) if own["measure"][0] == "accuracy" else None
    if chance is not None:
        axes.vlines(
            [chance], at + 0.5, at + n_rows - 0.5, color="black", linewidth=0.9, linestyle=(0, (1, 2)), gid="chance"
        )


def _line(axes: Axes, at: int, rows: pl.DataFrame, how: str) -> None:
    """Instances as dots, the one in the loop as a star, the others' mean and deviation, and these in words."""
    look = _HOWS[how]
    single = rows.filter((pl.col("kind") == "instance") & pl.col("mean_score").is_not_null())
    loop, others = (list(single.filter(pl.col("in_the_loop") == is_in)["mean_score"]) for is_in in (True, False))
    dots: dict[str, Any] = {"color": look.colour, "linestyle": "none", "markeredgewidth": 0}
    axes.plot(others, [at + 0.22] * len(others), marker="o", markersize=2.8, alpha=0.7, gid=f"instance_{how}", **dots)
    if loop:  # an empty line that is not clipped would count as a point in the figure's corner
        axes.plot(loop, [at] * len(loop), marker="*", markersize=8.5, gid="in_the_loop", clip_on=False, **dots)
    said = "no examples" if not len(single) else "only the instance in the loop"
    for mean, sd, n in rows.filter(pl.col("kind") == "mean").select("mean_score", "score_sd", "n_seeds").iter_rows():
        if sd is not None:
            axes.hlines([at], mean - sd, mean + sd, color=look.colour, linewidth=1.1, gid=f"deviation_{how}")
        axes.plot([mean], [at], look.marker, color=look.colour, markersize=4.2, gid=f"mean_{how}", zorder=3)
        spread = "" if sd is None else f" ± {collected.share(sd)}"
        said = f"{collected.share(mean)}{spread}, {n} seed{'s' if n != 1 else ''}"
    axes.annotate(
        said,
        (1, at),
        xycoords=axes.get_yaxis_transform(),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=style.SMALLEST_PT,
        annotation_clip=False,
    )


def _legend(data: pl.DataFrame) -> list[Line2D]:
    present = set(data["how"])
    muted: dict[str, Any] = {"color": style.MUTED, "linestyle": "none"}
    loop = Line2D([], [], marker="*", markersize=8.5, label="the instance in the loop", **muted)
    return [
        *(look.handle() for how, look in _HOWS.items() if how in present),
        Line2D([], [], marker="o", markersize=2.8, label="one fine-tuning seed", **muted),
        *([loop] if data["in_the_loop"].any() else []),
    ]
