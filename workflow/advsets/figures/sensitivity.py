"""Overlap of retained sets, and difficulty, when one setting or a seed of the filter is another."""

from __future__ import annotations

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from advsets.figures import frames, layout, style
from advsets.figures.context import FigureContext

_WORDS = {
    "threshold": "threshold",
    "train_size": "train_size",
    "n_partitions": "n_partitions",
    "seed": "seed of the draws",
    "adversary_seed": "fine-tuning seed",
}
_PANELS = {
    "jaccard": "Overlap with the run's retained\nset (Jaccard index, %)",
    "accuracy_mean": "Mean accuracy of the\nevaluated models (%)",
}


@style.styled
def draw(tables: frames.Tables, context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Draw one block per data set, a row per changed value: overlap on the left, difficulty on the right."""
    data = tables["sensitivity"]
    names = frames.all_datasets(data, context)
    styles = frames.looks(data["adversary"].unique(), context)
    parts = [data.filter(pl.col("dataset") == name) for name in names]
    heights = [0.23 * len(_values(part)) + 0.95 if len(_values(part)) else 0.9 for part in parts]
    figure = style.new_figure(max(sum(heights), 1.0) + 0.45)
    for name, part, block in zip(names, parts, layout.blocks(figure, heights), strict=True):
        layout.heading(block, f"{context.dataset_title(name)}{_n(part)}")
        _block(block, part, styles)
    if len(data):
        figure.legend(handles=_legend(styles, context), loc="outside lower right", ncols=3)
    return figure, data


def _values(part: pl.DataFrame) -> list[tuple[str, str]]:
    """Settings and values that were tried, in the order of the settings and of the numbers."""
    tried = part.filter(pl.col("setting") != "base").select("setting", "setting_value").unique().iter_rows()
    return sorted(tried, key=lambda pair: (list(_WORDS).index(pair[0]), float(pair[1])))


def _n(part: pl.DataFrame) -> str:
    return f" (retained {frames.count_range(part['n_retained_base'])} by the run's settings)" if len(part) else ""


def _block(block: SubFigure, part: pl.DataFrame, styles: dict[str, style.SeriesStyle]) -> None:
    values = _values(part)
    if not values:
        layout.say(block.subplots(), "No setting was changed: see `sensitivity` in the configuration.")
        return
    left, right = block.subplots(1, 2, sharey=True)
    for axes, measure in zip((left, right), _PANELS, strict=True):
        _rows(axes, part, values, measure, styles)
        axes.set_xlabel(_PANELS[measure])
        layout.percent(axes.xaxis)
    layout.named_rows(left, [f"{_WORDS[setting]} {value}" for setting, value in values])


def _rows(
    axes: Axes, part: pl.DataFrame, values: list[tuple[str, str]], measure: str, styles: dict[str, style.SeriesStyle]
) -> None:
    shown = [name for name in styles if name in set(part["adversary"])]
    for i, adversary in enumerate(shown):
        look = styles[adversary]
        own = part.filter(pl.col("adversary") == adversary)
        rows = own.filter(pl.col("setting") != "base")
        shift = 0.6 * (i + 0.5) / len(shown) - 0.3
        at = [values.index(pair) + shift for pair in rows.select("setting", "setting_value").iter_rows()]
        if measure == "jaccard":
            axes.hlines(at, rows["jaccard_random_low"], rows["jaccard_random_high"], color=style.BAND, linewidth=4)
        else:
            for base in own.filter(pl.col("setting") == "base")[measure].drop_nulls():
                axes.axvline(base, color=look.colour, linewidth=0.8, linestyle=(0, (3, 2)), gid="base")
        point = layout.PointLook(adversary, look.colour, look.marker)
        layout.bounded_points(axes, at, rows, measure, point, gid=measure)


def _legend(styles: dict[str, style.SeriesStyle], context: FigureContext) -> list[Line2D]:
    handles = [
        Line2D(
            [],
            [],
            color=look.colour,
            marker=look.marker,
            linestyle="none",
            label=layout.shorten(context.model_title(a)),
        )
        for a, look in styles.items()
    ]
    return [
        *handles,
        Line2D([], [], color=style.BAND, linewidth=4, label="random subsets of these sizes"),
        Line2D([], [], color=style.MUTED, linewidth=0.8, linestyle=(0, (3, 2)), label="the run's settings"),
    ]
