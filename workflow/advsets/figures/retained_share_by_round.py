"""Share of the evaluation and training rows that each filtering round leaves, by adversary."""

from __future__ import annotations

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from advsets.figures import frames, layout, style
from advsets.figures.context import FigureContext

_SPLITS = ("evaluation", "train")
_TRAIN_LINE = (0, (3, 1.5))


@style.styled
def draw(tables: frames.Tables, context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Draw one panel per data set; round 0 is the set before filtering."""
    data = shown(tables)
    names = frames.all_datasets(data, context)
    styles = frames.looks(data["adversary"].unique(), context)
    legend = _legend(styles, context)
    figure = style.new_figure(max(2.7 * len(names), 0.17 * len(legend) + 0.4, 1.0))
    for name, block in zip(names, layout.blocks(figure, [1] * len(names)), strict=True):
        axes = block.subplots()
        part = data.filter(pl.col("dataset") == name)
        if part.is_empty():
            layout.say(axes, "No filtering round was run.")
            layout.heading(block, context.dataset_title(name))
            continue
        _panel(axes, part, styles)
        layout.heading(block, f"{context.dataset_title(name)} ({_sizes(part)})")
    figure.legend(handles=legend, loc="outside right center")
    return figure, data


def shown(tables: frames.Tables) -> pl.DataFrame:
    """Rows of the figure: mean over adversary seeds (null seed), single seeds where there are several.

    A seed that stopped earlier keeps its last value in the mean.
    """
    single = pl.concat([_by_round(tables["rounds"], split) for split in _SPLITS])
    keys = ["dataset", "adversary", "split"]
    grid = (
        single.select(*keys, "filtering_round").unique().join(single.select(*keys, "adversary_seed").unique(), on=keys)
    )
    whole = [*keys, "adversary_seed", "filtering_round"]
    values = ["n_retained", "retained_share"]
    filled = (
        grid.join(single, on=whole, how="left")
        .sort(whole)
        .with_columns(pl.col(values).forward_fill().over([*keys, "adversary_seed"], order_by="filtering_round"))
    )
    pooled = filled.group_by(*keys, "filtering_round").agg(pl.col(values).mean())
    pooled = pooled.with_columns(adversary_seed=pl.lit(None, pl.Int64)).select(*whole, *values)
    several = single.filter(pl.col("adversary_seed").n_unique().over(keys) > 1).select(pooled.columns)
    return pl.concat([pooled, several]).sort(whole)


def _by_round(rounds: pl.DataFrame, split: str) -> pl.DataFrame:
    runs = ["dataset", "adversary", "adversary_seed"]
    before, removed = pl.col(f"n_{split}_before"), pl.col(f"n_{split}_removed")
    after = rounds.select(*runs, "filtering_round", n_retained=(before - removed).cast(pl.Float64))
    start = rounds.filter(pl.col("filtering_round") == pl.col("filtering_round").min().over(runs))
    start = start.select(*runs, filtering_round=pl.lit(0, pl.Int64), n_retained=before.cast(pl.Float64))
    total = pl.col("n_retained").max().over(runs)
    share = pl.when(total > 0).then(pl.col("n_retained") / total)
    return pl.concat([start, after]).with_columns(retained_share=share, split=pl.lit(split))


def _panel(axes: Axes, data: pl.DataFrame, styles: dict[str, style.SeriesStyle]) -> None:
    for adversary, look in styles.items():
        for split in _SPLITS:
            rows = data.filter((pl.col("adversary") == adversary) & (pl.col("split") == split))
            pooled = rows.filter(pl.col("adversary_seed").is_null())
            x, y = pooled["filtering_round"].to_list(), pooled["retained_share"].to_list()
            if split == "train":
                axes.plot(x, y, color=look.colour, linestyle=_TRAIN_LINE, linewidth=0.9, alpha=0.55, gid="train")
                continue
            axes.plot(x, y, gid="evaluation", zorder=3, **look.line(markersize=0.8 * look.marker_size))
            seeds = rows.filter(pl.col("adversary_seed").is_not_null())
            layout.seed_points(axes, seeds["filtering_round"].to_list(), seeds["retained_share"].to_list(), look.colour)
    axes.set_ylim(0, 1.03)
    layout.percent(axes.yaxis)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("Filtering round (0: before filtering)")
    axes.set_ylabel("Rows retained (%)")


def _sizes(part: pl.DataFrame) -> str:
    start = part.filter(pl.col("filtering_round") == 0)
    text = [
        f"{frames.count_range(start.filter(pl.col('split') == split)['n_retained'])} {name}"
        for split, name in (("evaluation", "evaluation"), ("train", "training rows"))
    ]
    return "n = " + " and ".join(text)


def _legend(styles: dict[str, style.SeriesStyle], context: FigureContext) -> list[Line2D]:
    models = [
        Line2D([], [], label=layout.shorten(context.model_title(name)), **look.line()) for name, look in styles.items()
    ]
    return [
        *models,
        Line2D([], [], color=style.MUTED, marker="o", markeredgewidth=0, label="evaluation rows"),
        Line2D([], [], color=style.MUTED, linestyle=_TRAIN_LINE, linewidth=0.9, label="training rows"),
    ]
