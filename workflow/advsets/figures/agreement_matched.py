"""Difficulty and ranking of retained subsets, and of subsets with the agreement of the full set."""

from __future__ import annotations

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from advsets.figures import frames, layout, style
from advsets.figures.context import FigureContext

_LOOKS = {
    "retained": layout.PointLook("retained", style.VERMILLION, "o"),
    "matched": layout.PointLook("same size, agreement of the full set", style.BLUE, "s", filled=False),
    "agreement_weighted": layout.PointLook("retained, weighted by agreement", style.GREEN, "^"),
}
_PANELS = {
    "accuracy_mean": "Mean accuracy of the evaluated models (%)",
    "tau_b": "Rank correlation with the full set (tau-b)",
}


@style.styled
def draw(tables: frames.Tables, context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Draw one block per data set: mean accuracy on the left, rank correlation on the right, a row per adversary."""
    data = shown(tables)
    names = frames.all_datasets(data, context)
    parts = [data.filter(pl.col("dataset") == name) for name in names]
    heights = [0.3 * part["adversary"].n_unique() + 0.95 if len(part) else 0.9 for part in parts]
    figure = style.new_figure(max(sum(heights), 1.0) + 0.5)
    for name, part, block in zip(names, parts, layout.blocks(figure, heights), strict=True):
        _block(block, part, name, context)
    if len(data):
        figure.legend(handles=_legend(), loc="outside lower right", ncols=2)
    return figure, data


def shown(tables: frames.Tables) -> pl.DataFrame:
    """Rows of the figure: means over adversary seeds, with the widest of their bounds."""
    keys = ["dataset", "adversary", "weighting", "measure"]
    means = ["n_examples", "agreement_mean", "accuracy_mean", "tau_b", "rank_change_mean"]
    table = tables["agreement_matched"].with_columns(pl.col("n_examples").cast(pl.Float64))
    return (
        table.group_by(keys).agg(pl.col(means).mean(), pl.col("^.*_low$").min(), pl.col("^.*_high$").max()).sort(keys)
    )


def _block(block: SubFigure, part: pl.DataFrame, dataset: str, context: FigureContext) -> None:
    if not len(part):
        layout.heading(block, context.dataset_title(dataset))
        layout.say(
            block.subplots(), "This data set has no annotator data: neither label counts nor a flag of low agreement."
        )
        return
    full = part.filter(pl.col("weighting") == "full_set")
    kept = part.filter(pl.col("weighting") == "retained")["n_examples"]
    sizes = f"n = {frames.count_range(full['n_examples'])}; retained {frames.count_range(kept)}"
    layout.heading(block, f"{context.dataset_title(dataset)} ({sizes})")
    adversaries = context.order_models(part["adversary"].unique())
    left, right = block.subplots(1, 2, sharey=True, width_ratios=[1.25, 1])
    for axes, measure in zip((left, right), _PANELS, strict=True):
        _rows(axes, part, adversaries, measure)
        axes.set_xlabel(_PANELS[measure])
    level = full["accuracy_mean"].mean()
    if level is not None:
        left.axvline(level, color="black", linewidth=0.9, linestyle=(0, (3, 2)), gid="full_set")
    layout.percent(left.xaxis)
    layout.named_rows(left, [context.model_title(a) for a in adversaries])


def _rows(axes: Axes, part: pl.DataFrame, adversaries: list[str], measure: str) -> None:
    for i, (weighting, look) in enumerate(_LOOKS.items()):
        rows = part.filter(pl.col("weighting") == weighting)
        at = [adversaries.index(a) + 0.22 * (i - 1) for a in rows["adversary"]]
        layout.bounded_points(axes, at, rows, measure, look, gid=weighting)


def _legend() -> list[Line2D]:
    full = Line2D([], [], color="black", linewidth=0.9, linestyle=(0, (3, 2)), label="full set")
    return [*(look.handle() for look in _LOOKS.values()), full]
