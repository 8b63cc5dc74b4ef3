"""Difficulty and own excess of ensembles beside single adversaries, at equal subset sizes."""

from __future__ import annotations

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from advsets.figures import frames, layout, style
from advsets.figures.context import FigureContext

_LOOKS = {
    "single": layout.PointLook("single adversary", style.MUTED, "o"),
    "mean": layout.PointLook("ensemble: mean over members", style.BLUE, "s"),
    "minimum": layout.PointLook("ensemble: member that predicts worst", style.VERMILLION, "^"),
}
_PANELS = {
    "accuracy_mean": "Mean accuracy of the evaluated\nmodels on the hardest n (%)",
    "own_excess": "Excess of the filter's own models\n(log-odds; below 0: harmed more)",
}


@style.styled
def draw(tables: frames.Tables, context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Draw one block per data set, a row per filter at the middle size: difficulty left, own excess right."""
    data = shown(tables)
    names = frames.all_datasets(data, context)
    middle = data.filter(pl.col("comparison") == "middle")
    parts = [middle.filter(pl.col("dataset") == name) for name in names]
    heights = [0.21 * len(part) + 0.95 if len(part) else 0.9 for part in parts]
    figure = style.new_figure(max(sum(heights), 1.0) + 0.45)
    for name, part, block in zip(names, parts, layout.blocks(figure, heights), strict=True):
        _block(block, part, name, context)
    figure.legend(handles=_legend(middle), loc="outside lower right", ncols=3)
    return figure, data


def shown(tables: frames.Tables) -> pl.DataFrame:
    """Means over adversary seeds, with the widest of their bounds, at every size; single adversaries first."""
    keys = ["dataset", "comparison", "filter", "kind"]
    means = ["n_retained", "accuracy_mean", "accuracy_members", "accuracy_others", "own_excess", "tau_b"]
    order = pl.col("kind").replace_strict({"single": 0, "mean": 1, "minimum": 2}, return_dtype=pl.Int64)
    return (
        tables["ensembles"]
        .with_columns(pl.col("n_retained").cast(pl.Float64))
        .group_by(keys)
        .agg(
            pl.col("members").first().list.join(" "),
            pl.col("n_examples").max(),
            pl.col(means).mean(),
            pl.col("^.*_low$").min(),
            pl.col("^.*_high$").max(),
        )
        .sort("dataset", "comparison", order, (pl.col("members") == ""), "filter")
    )


def _block(block: SubFigure, part: pl.DataFrame, dataset: str, context: FigureContext) -> None:
    if not len(part):
        layout.heading(block, context.dataset_title(dataset))
        layout.say(block.subplots(), "No adversary has filtered this data set.")
        return
    layout.heading(block, f"{context.dataset_title(dataset)} (n = {int(part['n_examples'][0]):,} hardest examples)")
    left, right = block.subplots(1, 2, sharey=True)
    for axes, measure in zip((left, right), _PANELS, strict=True):
        _rows(axes, part, measure)
        axes.set_xlabel(_PANELS[measure])
    layout.percent(left.xaxis)
    right.axvline(0, color="black", linewidth=0.8, linestyle=(0, (3, 2)))
    layout.named_rows(left, [context.model_title(name) for name in part["filter"]])


def _rows(axes: Axes, part: pl.DataFrame, measure: str) -> None:
    for kind, look in _LOOKS.items():
        at = [i for i, k in enumerate(part["kind"]) if k == kind]
        layout.bounded_points(axes, at, part[at], measure, look, gid=kind)


def _legend(data: pl.DataFrame) -> list[Line2D]:
    shown_kinds = set(data["kind"])
    return [look.handle() for kind, look in _LOOKS.items() if kind in shown_kinds]
