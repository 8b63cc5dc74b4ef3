"""Accuracy against predictability, one panel per adversary: difficulty without a cut."""

from __future__ import annotations

import math

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from advsets.figures import frames, layout, style
from advsets.figures.context import FigureContext

_MOST_PANELS = 6
_COLUMNS = 3
_PANEL_IN = 1.75
_MEASURES = ("n_examples", "accuracy", "accuracy_low", "accuracy_high")


@style.styled
def draw(tables: frames.Tables, context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Draw one block per data set: panels of up to six adversaries, weakest first, a line per evaluated model."""
    data = shown(tables)
    names = frames.all_datasets(data, context)
    styles = frames.looks(data["evaluated_model"].unique(), context)
    parts = [frames.of_dataset({**tables, "shown": data}, name) for name in names]
    heights = [_PANEL_IN * math.ceil(max(len(_adversaries(part, context)), 1) / _COLUMNS) + 0.55 for part in parts]
    legend = _legend(styles, context)
    figure = style.new_figure(max(sum(heights), 0.17 * len(legend) + 0.4))
    for name, part, block in zip(names, parts, layout.blocks(figure, heights), strict=True):
        _block(block, part, name, styles, context)
    figure.legend(handles=legend, loc="outside right center")
    return figure, data


def shown(tables: frames.Tables) -> pl.DataFrame:
    """Rows of the figure: means over adversary seeds, with the widest of their bounds."""
    keys = ["dataset", "adversary", "evaluated_model", "relation", "bin_low", "bin_high"]
    table = tables["accuracy_by_predictability"].with_columns(pl.col("n_examples").cast(pl.Float64))
    means = [pl.col("n_examples", "accuracy").mean(), pl.col("accuracy_low").min(), pl.col("accuracy_high").max()]
    return table.group_by(keys).agg(means).select(*keys, *_MEASURES).sort(keys)


def _adversaries(part: dict[str, pl.DataFrame], context: FigureContext) -> list[str]:
    """Adversaries that have a panel, weakest first."""
    strength = frames.strengths(part["rank_stability"])
    known = set(part["shown"]["adversary"])
    order = [a for a in frames.weakest_first(strength, context) if a in known]
    return frames.evenly(order, _MOST_PANELS)


def _block(
    block: SubFigure,
    part: dict[str, pl.DataFrame],
    dataset: str,
    styles: dict[str, style.SeriesStyle],
    context: FigureContext,
) -> None:
    adversaries = _adversaries(part, context)
    n_all = part["shown"]["adversary"].n_unique()
    note = f"; {len(adversaries)} of {n_all} adversaries shown" if len(adversaries) < n_all else ""
    layout.heading(block, f"{context.dataset_title(dataset)} ({frames.sizes(part['rank_stability'])}{note})")
    if not adversaries:
        layout.say(block.subplots(), "No adversary has filtered this data set.")
        return
    rows = math.ceil(len(adversaries) / _COLUMNS)
    grid = block.subplots(rows, _COLUMNS, squeeze=False, sharex=True, sharey=True)
    for axes, adversary in zip(grid.flat, adversaries, strict=False):
        _panel(axes, part["shown"].filter(pl.col("adversary") == adversary), styles)
        axes.set_title(layout.shorten(context.model_title(adversary), 24), fontsize=7.5, fontweight="normal")
        chance = context.chance(dataset)
        if chance is not None:
            axes.axhline(chance, color=style.MUTED, linewidth=0.8, linestyle=(0, (1, 2)), gid="chance")
    for axes in grid.flat[len(adversaries) :]:
        axes.set_axis_off()
    block.supxlabel("Predictability to the adversary in the first round (% of its classifiers)", fontsize=8)
    block.supylabel("Accuracy (%)", fontsize=8)


def _panel(axes: Axes, rows: pl.DataFrame, styles: dict[str, style.SeriesStyle]) -> None:
    for model, look in styles.items():
        own = rows.filter((pl.col("evaluated_model") == model) & pl.col("accuracy").is_not_null()).sort("bin_low")
        middle = ((own["bin_low"] + own["bin_high"]) / 2).to_list()
        axes.plot(middle, own["accuracy"], gid="model", **look.line(linewidth=1.0, markersize=3.2))
        if "self" in own["relation"]:
            axes.fill_between(
                middle, own["accuracy_low"], own["accuracy_high"], color=look.colour, alpha=0.15, linewidth=0
            )
            layout.ring(axes, list(zip(middle, own["accuracy"], strict=True)), look.colour)
    axes.set_xlim(0, 1)
    axes.set_ylim(-0.03, 1.03)
    for axis in (axes.xaxis, axes.yaxis):
        layout.percent(axis)


def _legend(styles: dict[str, style.SeriesStyle], context: FigureContext) -> list[Line2D]:
    handles = [
        Line2D([], [], label=layout.shorten(context.model_title(name), 22), **look.line())
        for name, look in styles.items()
    ]
    own = Line2D(
        [], [], marker="o", markersize=9, markerfacecolor="none", color=style.MUTED, linestyle="none",
        label="the adversary's own\nmodel (with interval)",
    )  # fmt: skip
    chance = Line2D([], [], color=style.MUTED, linewidth=0.8, linestyle=(0, (1, 2)), label="chance")
    return [*handles, own, chance]
