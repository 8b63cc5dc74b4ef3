"""Accuracy on each adversary's subset against the adversary's strength, one line per evaluated model."""

from __future__ import annotations

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from advsets.figures import frames, layout, style
from advsets.figures.context import FigureContext

NEEDS = ("accuracy", "rank_stability")
_MEASURES = ("n_examples", "accuracy", "accuracy_low", "accuracy_high")


@style.styled
def draw(tables: frames.Tables, context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Draw one block per data set: full-set accuracy on the left, the curves beside it."""
    data = shown(tables)
    names = frames.datasets(data, context)
    models = context.order_models(data["evaluated_model"].unique())
    styles = style.series_styles(models)
    legend = _legend(styles, context)
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
        seeds = data.filter(
            pl.col("adversary_seed").is_not_null() & (pl.col("evaluated_model") == model)
        )
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
    if is_strength:
        layout.percent(axes.xaxis)
        axes.set_xlabel("Adversary strength: its accuracy on the full set (%)")
    else:
        axes.set_xticks(list(places.values()))
        axes.set_xlabel("Adversary (strength unknown: none was evaluated)")


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
    rows = rows.filter(pl.col("adversary").is_in(list(places)))
    x, y = [places[name] for name in rows["adversary"]], rows["accuracy"].fill_null(float("nan")).to_list()
    axes.plot(x, y, gid="filtered", zorder=3, **look.line())
    own = [(a, b) for a, b, is_own in zip(x, y, rows["own_adversary"], strict=True) if is_own and b == b]
    if own:
        axes.plot(*zip(*own, strict=True), zorder=5, **look.line(linestyle="none"))
        axes.scatter(*zip(*own, strict=True), s=95, facecolor="none", edgecolor=look.colour, linewidth=1.4, zorder=5, gid="own")
    points = [(places[a], v) for a, v in seeds.select("adversary", "accuracy").iter_rows() if a in places and v is not None]
    if points:
        axes.scatter(*zip(*points, strict=True), s=7, color=look.colour, alpha=0.6, linewidth=0, zorder=2, gid="seed")


def _mark_empty(axes: Axes, pooled: pl.DataFrame, places: dict[str, float]) -> None:
    empty = pooled.filter((pl.col("subset") == "filtered") & pl.col("accuracy").is_null())
    for adversary in sorted(set(empty["adversary"]) & set(places)):
        axes.text(
            places[adversary],
            0.02,
            "empty subset",
            rotation=90,
            ha="center",
            va="bottom",
            fontsize=style.SMALLEST_PT,
            color=style.MUTED,
            transform=axes.get_xaxis_transform(),
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
            zorder=5,
        )


def _heading(pooled: pl.DataFrame, places: dict[str, float], dataset: str, context: FigureContext) -> str:
    full = frames.count_range(pooled.filter(pl.col("subset") == "full_set")["n_examples"])
    kept = pooled.filter(pl.col("subset") == "filtered")
    unknown = kept["adversary"].n_unique() - len(places)
    note = f"; not shown, as their strength is unknown: {unknown} of the adversaries" if unknown else ""
    return f"{context.dataset_title(dataset)} (n = {full}; retained {frames.count_range(kept['n_examples'])}{note})"


def _legend(styles: dict[str, style.SeriesStyle], context: FigureContext) -> list[Line2D | Patch]:
    models: list[Line2D | Patch] = [
        Line2D([], [], label=layout.shorten(context.model_title(name)), **look.line())
        for name, look in styles.items()
    ]
    ring = {"marker": "o", "markersize": 9.5, "markerfacecolor": "none", "markeredgecolor": style.MUTED}
    return [
        *models,
        Line2D([], [], color=style.MUTED, linewidth=0.6, label="full set"),
        Line2D([], [], linestyle="none", markeredgewidth=1.4, label="own adversary", **ring),
        Patch(facecolor=style.BAND, label="random subsets\nof the same size:\nrange over draws"),
        Line2D([], [], color="black", linewidth=0.9, linestyle=(0, (1, 2)), label="chance"),
    ]
