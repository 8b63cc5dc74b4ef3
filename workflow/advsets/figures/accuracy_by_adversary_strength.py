"""Accuracy on each adversary's subset against the adversary's strength, one line per evaluated model."""

from __future__ import annotations

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from advsets.figures import frames, layout, style
from advsets.figures.context import FigureContext

_MEASURES = ("n_examples", "accuracy", "accuracy_low", "accuracy_high")


@style.styled
def draw(tables: frames.Tables, context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Draw one block per data set: full-set accuracy on the left, the curves beside it."""
    data = shown(tables)
    names = frames.datasets(data, context)
    styles = frames.looks(data["evaluated_model"].unique(), context)
    legend = _legend(styles, any(context.chance(name) is not None for name in names), context)
    tall = 2.8 + layout.name_height(context.model_title(a) for a in data["adversary"].drop_nulls().unique())
    figure = style.new_figure(max(tall * len(names), 0.17 * len(legend) + 0.4))
    for name, block in zip(names, layout.blocks(figure, [1] * len(names)), strict=True):
        _block(block, frames.of_dataset({**tables, "shown": data}, name), name, styles, context)
    figure.legend(handles=legend, loc="outside right center")
    layout.settle(figure)
    for axes, places in _curves(figure, tables, names, context):
        layout.name_above(axes, places)
    return figure, data


def shown(tables: frames.Tables) -> pl.DataFrame:
    """Rows of the figure: per adversary seed, and with null seed the mean over seeds.

    All are means over the seeds of the evaluated model; the range over random subsets is the
    widest of its seeds.
    """
    keys = ["dataset", "subset", "adversary", "evaluated_model"]
    of_random = pl.col("subset") == "random_subset"
    table = tables["accuracy"].with_columns(
        pl.when(of_random).then(pl.col(c)).alias(c) for c in ("accuracy_low", "accuracy_high")
    )
    table = table.with_columns(pl.col("n_examples").cast(pl.Float64))
    means = [pl.col("n_examples", "accuracy").mean(), pl.col("accuracy_low").min(), pl.col("accuracy_high").max()]
    single = table.group_by(*keys, "adversary_seed").agg(means)
    pooled = single.group_by(keys).agg(means).with_columns(adversary_seed=pl.lit(None, pl.Int64))
    several = single.filter(pl.col("subset") == "filtered").filter(pl.len().over(keys) > 1)
    strength = tables["rank_stability"].group_by("dataset", "adversary").agg(pl.col("adversary_strength").mean())
    columns = [*keys[:3], "adversary_seed", "adversary_strength", "evaluated_model", "own_adversary", *_MEASURES]
    return (
        pl.concat([pooled, several.select(pooled.columns)])
        .join(strength, on=["dataset", "adversary"], how="left", nulls_equal=True)
        .with_columns(own_adversary=(pl.col("adversary") == pl.col("evaluated_model")).fill_null(False))
        .select(columns)
        .sort("dataset", "subset", "adversary_strength", "adversary", "adversary_seed", "evaluated_model")
    )


def _curves(figure: Figure, tables: frames.Tables, names: list[str], context: FigureContext) -> list:
    axes = [a for a in figure.axes if a.get_gid() == "curves"]
    return [(a, _titled(_places(tables, name, context)[0], context)) for a, name in zip(axes, names, strict=True)]


def _places(tables: frames.Tables, dataset: str, context: FigureContext) -> tuple[dict[str, float], bool]:
    strength = frames.strengths(tables["rank_stability"].filter(pl.col("dataset") == dataset))
    return frames.x_positions(strength, context)


def _titled(places: dict[str, float], context: FigureContext) -> dict[str, float]:
    return {context.model_title(name): x for name, x in places.items()}


def _block(
    block: SubFigure,
    tables: dict[str, pl.DataFrame],
    dataset: str,
    styles: dict[str, style.SeriesStyle],
    context: FigureContext,
) -> None:
    full_axes, axes = block.subplots(1, 2, sharey=True, width_ratios=[1, 9])
    axes.set_gid("curves")
    data = tables["shown"]
    places, is_strength = _places(tables, dataset, context)
    pooled = data.filter(pl.col("adversary_seed").is_null())
    _frame(full_axes, axes, places, is_strength)
    for model, look in styles.items():
        own = pooled.filter(pl.col("evaluated_model") == model)
        for value in own.filter(pl.col("subset") == "full_set")["accuracy"]:
            full_axes.plot([0], [value], gid="full_set", **look.line(linestyle="none", clip_on=False))
            axes.axhline(value, color=look.colour, linewidth=0.6, linestyle=look.line_style, alpha=0.5, gid="reference")
        _band(axes, own.filter(pl.col("subset") == "random_subset"), places, alpha=min(0.15, 0.9 / len(styles)))
        seeds = data.filter(pl.col("adversary_seed").is_not_null() & (pl.col("evaluated_model") == model))
        _line(axes, own.filter(pl.col("subset") == "filtered"), seeds, places, look)
    if (chance := context.chance(dataset)) is not None:
        for part in (full_axes, axes):
            part.axhline(chance, color="black", linewidth=0.9, linestyle=(0, (1, 2)), gid="chance")
    _mark_empty(axes, pooled, places)
    layout.heading(block, _heading(pooled, places, dataset, context))


def _frame(full_axes: Axes, axes: Axes, places: dict[str, float], is_strength: bool) -> None:
    full_axes.set_xlim(-1, 1)
    full_axes.set_xticks([0], ["full\nset"])
    full_axes.grid(axis="x", visible=False)
    full_axes.set_ylabel("Accuracy (% of examples)")
    layout.percent(full_axes.yaxis)
    low, high = (min(places.values()), max(places.values())) if places else (0.0, 1.0)
    pad = 0.06 * (high - low) or 0.02
    axes.set_xlim(low - pad, high + pad)
    axes.tick_params(left=False)
    layout.strength_axis(axes, places, is_strength)


def _band(axes: Axes, random: pl.DataFrame, places: dict[str, float], alpha: float) -> None:
    rows = sorted(
        (places[adversary], low, high)
        for adversary, low, high in random.select("adversary", "accuracy_low", "accuracy_high").iter_rows()
        if adversary in places and low is not None
    )
    if not rows:
        return
    left, right = axes.get_xlim()
    x, low, high = map(list, zip((left, *rows[0][1:]), *rows, (right, *rows[-1][1:]), strict=True))
    axes.fill_between(x, low, high, color="black", alpha=alpha, linewidth=0, zorder=0.5, gid="random_subset")


def _line(
    axes: Axes, rows: pl.DataFrame, seeds: pl.DataFrame, places: dict[str, float], look: style.SeriesStyle
) -> None:
    filtered = rows.select("adversary", pl.col("accuracy").fill_null(float("nan")), "own_adversary")
    points = sorted((places[name], y, is_own) for name, y, is_own in filtered.iter_rows() if name in places)
    axes.plot([p[0] for p in points], [p[1] for p in points], gid="filtered", zorder=3, **look.line())
    own = [(x, y) for x, y, is_own in points if is_own and y == y]
    if own:
        axes.plot([p[0] for p in own], [p[1] for p in own], zorder=5, gid="own_point", **look.line(linestyle="none"))
        layout.ring(axes, own, look.colour)
    single = [(places[name], y) for name, y in seeds.select("adversary", "accuracy").iter_rows() if name in places]
    single = [(x, y) for x, y in single if y is not None]
    layout.seed_points(axes, [p[0] for p in single], [p[1] for p in single], look.colour)


def _mark_empty(axes: Axes, pooled: pl.DataFrame, places: dict[str, float]) -> None:
    empty = pooled.filter((pl.col("subset") == "filtered") & pl.col("accuracy").is_null())
    for adversary in sorted(set(empty["adversary"]) & set(places)):
        layout.mark_empty(axes, places[adversary])


def _heading(pooled: pl.DataFrame, places: dict[str, float], dataset: str, context: FigureContext) -> str:
    full = frames.count_range(pooled.filter(pl.col("subset") == "full_set")["n_examples"])
    kept = pooled.filter(pl.col("subset") == "filtered")
    note = frames.left_out(len(places), kept["adversary"].n_unique())
    return f"{context.dataset_title(dataset)} (n = {full}; retained {frames.count_range(kept['n_examples'])}{note})"


def _legend(styles: dict[str, style.SeriesStyle], with_chance: bool, context: FigureContext) -> list[Line2D | Patch]:
    models: list[Line2D | Patch] = [
        Line2D([], [], label=layout.shorten(context.model_title(name)), **look.line()) for name, look in styles.items()
    ]
    ring = style.SeriesStyle(style.MUTED, "o", "none").line(
        markersize=9.5, markerfacecolor="none", markeredgewidth=1.4, label="own adversary"
    )
    chance = Line2D([], [], color="black", linewidth=0.9, linestyle=(0, (1, 2)), label="chance")
    return [
        *models,
        Line2D([], [], color=style.MUTED, linewidth=0.6, label="full set"),
        Line2D([], [], **ring),
        Patch(facecolor=style.BAND, label="random subsets\nof the same size:\nrange over draws"),
        *([chance] if with_chance else []),
    ]
