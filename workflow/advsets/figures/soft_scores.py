"""Evaluated models against the annotators' label distribution, on all examples and on what each adversary keeps."""

from __future__ import annotations

from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from advsets.figures import frames, layout, style
from advsets.figures.context import FigureContext

_PANELS = {
    "js_distance": "Jensen-Shannon distance\n(natural log; 0 is best)",
    "kl_nats": "KL divergence\n(nats; 0 is best)",
    "majority_accuracy": "Accuracy against the\nmost frequent label (%)",
}
_FULL: dict[str, Any] = {"color": "black", "marker": "s"}
_RETAINED: dict[str, Any] = {"color": style.VERMILLION, "marker": "o"}


@style.styled
def draw(tables: frames.Tables, context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Draw one block per data set: a panel per measure, a row per evaluated model.

    Of a data set with more annotators these are shown, of others its own; data sets without any
    say so.
    """
    data = shown(tables["soft_scores"])
    names = frames.all_datasets(data, context)
    parts = [data.filter(pl.col("dataset") == name) for name in names]
    heights = [0.2 * part["evaluated_model"].n_unique() + 1.05 if len(part) else 0.9 for part in parts]
    figure = style.new_figure(max(sum(heights), 1.0) + 0.35)
    for name, part, block in zip(names, parts, layout.blocks(figure, heights), strict=True):
        _block(block, part, name, context)
    if len(data):
        figure.legend(handles=_legend(), loc="outside lower right", ncols=3)
    return figure, data


def shown(scores: pl.DataFrame) -> pl.DataFrame:
    """Rows of more annotators where a data set has any, else of its own."""
    has_more = (pl.col("annotators") == "more_annotators").any().over("dataset")
    keys = ["dataset", "annotators", "subset", "adversary", "adversary_seed", "evaluated_model"]
    return scores.filter((pl.col("annotators") == "more_annotators") == has_more).sort(keys)


def _block(block: SubFigure, part: pl.DataFrame, dataset: str, context: FigureContext) -> None:
    layout.heading(block, context.dataset_title(dataset) + _n(part, dataset, context))
    if not len(part):
        layout.say(block.subplots(), "This data set has no annotator labels to compare with.")
        return
    models = context.order_models(part["evaluated_model"].unique())
    for axes, (measure, label) in zip(block.subplots(1, len(_PANELS), sharey=True), _PANELS.items(), strict=True):
        _panel(axes, part, measure, models)
        axes.set_xlabel(label)
        axes.tick_params(axis="y", length=0)
        if measure == "majority_accuracy":
            layout.percent(axes.xaxis)
    first = block.axes[0]
    first.set_yticks(range(len(models)), [layout.shorten(context.model_title(m)) for m in models])
    first.set_ylim(len(models) - 0.5, -0.5)


def _panel(axes: Axes, part: pl.DataFrame, measure: str, models: list[str]) -> None:
    """Random subsets in grey below, the retained parts in the middle, all examples above, each with its range."""
    known = part.filter(pl.col(measure).is_not_null())
    extent = [pl.col(f"{measure}_low").min(), pl.col(f"{measure}_high").max()]
    spans = (
        known.filter(pl.col("subset") == "random_subset").group_by("evaluated_model", maintain_order=True).agg(extent)
    )
    for model, low, high in spans.iter_rows():
        at = models.index(model)
        axes.hlines([at], low, high, color=style.BAND, linewidth=7, zorder=1, gid="random_subset")
    kept = known.filter(pl.col("subset") == "filtered").group_by("evaluated_model", maintain_order=True)
    several = [pl.col(measure).mean(), pl.col(measure).min().alias("low"), pl.col(measure).max().alias("high")]
    _points(axes, kept.agg(several), models, _RETAINED, 0.16, "retained")
    columns = ["evaluated_model", measure, f"{measure}_low", f"{measure}_high"]
    _points(axes, known.filter(pl.col("subset") == "full_set").select(columns), models, _FULL, -0.16, "full_set")


def _points(axes: Axes, rows: pl.DataFrame, models: list[str], look: dict[str, str], shift: float, gid: str) -> None:
    if not len(rows):
        return
    names, value, low, high = (column.to_list() for column in rows)
    at = [models.index(name) + shift for name in names]
    axes.hlines(at, low, high, color=look["color"], linewidth=1.1, zorder=2)
    axes.plot(value, at, look["marker"], color=look["color"], markersize=3.6, zorder=3, gid=gid)


def _n(part: pl.DataFrame, dataset: str, context: FigureContext) -> str:
    if not len(part):
        return ""
    is_more = part["annotators"][0] == "more_annotators"
    who = context.annotators.get(dataset, "more annotators") if is_more else "its annotators"
    full, kept = (
        frames.count_range(part.filter(pl.col("subset") == subset)["n_examples"]) for subset in ("full_set", "filtered")
    )
    return f" (n = {full} with labels of {who}; retained {kept})"


def _legend() -> list[Line2D]:
    return [
        Line2D([], [], markersize=3.6, linewidth=1.1, label="all examples (with interval)", **_FULL),
        Line2D([], [], markersize=3.6, linewidth=1.1, label="retained: mean and range over adversaries", **_RETAINED),
        Line2D([], [], color=style.BAND, linewidth=7, label="random subsets: range"),
    ]
