"""One ranking from many adversaries: ranks of the models by method, and how far each ranking holds."""

from __future__ import annotations

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from advsets.figures import frames, layout, style
from advsets.figures.context import FigureContext

_METHODS = {
    "full_set": layout.PointLook("full set", style.BLACK, "D", filled=False),
    "weighted": layout.PointLook("all subsets together", style.BLUE, "o"),
    "weighted_by_family": layout.PointLook("the same, families alike", style.SKY, "s"),
    "mean_rank": layout.PointLook("mean rank", style.VERMILLION, "^"),
    "bradley_terry": layout.PointLook("Bradley-Terry", style.GREEN, "v"),
}
_SINGLE = layout.PointLook("single adversaries\n(mean and range)", style.MUTED, "P")
_STABILITY = {
    "tau_b_draws": "Ranking on other examples:\ntau-b over bootstrap draws",
    "tau_b_unseen": "Ranking by an unseen\nadversary: mean tau-b",
}


@style.styled
def draw(tables: frames.Tables, context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Draw one block per data set: ranks of the models by method, and two measures of stability."""
    ranks, stability = tables["aggregate_ranks"], shown_stability(tables["aggregate_stability"])
    names = frames.datasets(ranks, context)
    heights = [_height(ranks.filter(pl.col("dataset") == name)) for name in names]
    figure = style.new_figure(max(sum(heights), 1.0) + 0.5)
    for name, block in zip(names, layout.blocks(figure, heights), strict=True):
        part = frames.of_dataset({"ranks": ranks, "stability": stability}, name)
        layout.heading(block, context.dataset_title(name))
        _block(block, part, context)
    if names:
        figure.legend(handles=_legend(), loc="outside lower right", ncols=3)
    return figure, pl.concat(
        [ranks.with_columns(kind=pl.lit("rank")), stability.with_columns(kind=pl.lit("stability"))], how="diagonal"
    )


def shown_stability(table: pl.DataFrame) -> pl.DataFrame:
    """One row per method; of single adversaries the mean, with the range over them as bounds."""
    single = pl.col("method") == "single_adversary"
    measures = ["tau_b_draws_mean", "tau_b_unseen"]
    pooled = (
        table.filter(single)
        .group_by("dataset", "method")
        .agg(
            pl.col("tau_b_full_set", *measures).mean(),
            *(pl.col(m).min().alias(f"{m.removesuffix('_mean')}_low") for m in measures),
            *(pl.col(m).max().alias(f"{m.removesuffix('_mean')}_high") for m in measures),
        )
    )
    others = table.filter(~single).drop("adversary", "adversary_seed")
    return (
        pl.concat([others, pooled], how="diagonal")
        .rename({"tau_b_draws_mean": "tau_b_draws"})
        .sort("dataset", "method")
    )


def _height(ranks: pl.DataFrame) -> float:
    return max(0.34 * ranks["evaluated_model"].n_unique(), 1.4) + 0.85


def _block(block: SubFigure, part: dict[str, pl.DataFrame], context: FigureContext) -> None:
    left, middle, right = block.subplots(1, 3, width_ratios=[1.5, 1, 1])
    _ranks(left, part["ranks"], context)
    methods = [m for m in (*_METHODS, "single_adversary") if m in set(part["stability"]["method"])]
    for axes, (measure, label) in zip((middle, right), _STABILITY.items(), strict=True):
        _stability(axes, part["stability"], methods, measure)
        axes.set_xlabel(label)
        axes.set_yticks([])
        axes.set_ylim(len(methods) - 0.5, -0.5)


def _ranks(axes: Axes, ranks: pl.DataFrame, context: FigureContext) -> None:
    full = ranks.filter(pl.col("method") == "full_set").sort("rank", "evaluated_model")
    models = full["evaluated_model"].to_list()
    for i, (method, look) in enumerate(_METHODS.items()):
        rows = ranks.filter(pl.col("method") == method)
        at = [models.index(m) + 0.15 * (i - (len(_METHODS) - 1) / 2) for m in rows["evaluated_model"]]
        layout.bounded_points(axes, at, rows, "rank", look, gid=method)
    axes.set_xlabel("Rank (1 is best)")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    layout.named_rows(axes, [context.model_title(m) for m in models])


def _stability(axes: Axes, stability: pl.DataFrame, methods: list[str], measure: str) -> None:
    for i, method in enumerate(methods):
        look = _METHODS.get(method, _SINGLE)
        layout.bounded_points(axes, [i], stability.filter(pl.col("method") == method), measure, look, gid=measure)


def _legend() -> list[Line2D]:
    return [look.handle() for look in (*_METHODS.values(), _SINGLE)]
