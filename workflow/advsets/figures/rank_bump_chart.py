"""Rank of each evaluated model on the full set and on each adversary's subset."""

from __future__ import annotations

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from advsets.figures import frames, layout, style
from advsets.figures.context import FigureContext


@style.styled
def draw(tables: frames.Tables, context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Draw one chart per data set: full set on the left, adversaries from weakest to strongest."""
    data = shown(tables)
    names = frames.datasets(data, context)
    styles = frames.looks(data["evaluated_model"].unique(), context)
    below = layout.name_height([context.model_title(a) + " (1,000)" for a in data["adversary"].drop_nulls().unique()])
    tall = max(1.6, 0.19 * len(styles)) + below + 0.75
    figure = style.new_figure(tall * len(names) + 0.2)
    ends = []
    for name, block in zip(names, layout.blocks(figure, [1] * len(names)), strict=True):
        axes = block.subplots()
        own = frames.of_dataset({**tables, "shown": data}, name)
        ends.append((axes, _chart(axes, own, styles, context)))
        layout.heading(block, f"{context.dataset_title(name)} ({frames.sizes(own['rank_stability'])})")
    layout.settle(figure)
    for axes, sides in ends:
        for x, heights in sides.items():
            titles = {model: layout.shorten(context.model_title(model)) for model in heights}
            texts = [f"#{rank:.3g} {titles[m]}" if x else f"{titles[m]} #{rank:.3g}" for m, rank in heights.items()]
            layout.name_beside(axes, texts, list(heights.values()), x, right=x > 0)
    return figure, data


def shown(tables: frames.Tables) -> pl.DataFrame:
    """Rows of the figure: mean over adversary seeds (null seed), single seeds where there are several.

    Rows with a null adversary hold the rank on the full set.
    """
    table = tables["ranks"]
    keys = ["dataset", "adversary", "evaluated_model"]
    rank = pl.col("rank_filtered").alias("rank")
    columns = [*keys[:2], "adversary_seed", "adversary_strength", keys[2], "rank"]
    no_seed = pl.lit(None, pl.Int64).alias("adversary_seed")
    full = table.group_by("dataset", "evaluated_model").agg(pl.col("rank_full_set").first().alias("rank"))
    full = full.with_columns(no_seed, adversary=pl.lit(None, pl.String), adversary_strength=pl.lit(None, pl.Float64))
    pooled = table.group_by(keys).agg(rank.mean(), pl.col("adversary_strength").first()).with_columns(no_seed)
    single = table.filter(pl.len().over(keys) > 1).with_columns(rank)
    parts = [part.select(columns) for part in (full, pooled, single)]
    return pl.concat(parts).sort("dataset", "adversary_strength", "adversary", "adversary_seed", "evaluated_model")


def _chart(
    axes: Axes, tables: dict[str, pl.DataFrame], styles: dict[str, style.SeriesStyle], context: FigureContext
) -> dict[int, dict[str, float]]:
    """Draw the lines; returns, for the first and last place, the height of each model there."""
    data = tables["shown"]
    strength = frames.strengths(tables["rank_stability"])
    known = {name: strength.get(name) for name in data["adversary"].drop_nulls().unique()}
    places: dict[str | None, int] = {None: 0}
    places |= {name: i for i, name in enumerate(frames.weakest_first(known, context), 1)}
    sides: dict[int, dict[str, float]] = {0: {}, len(places) - 1: {}}
    for model, look in styles.items():
        for x, y in _line(axes, data.filter(pl.col("evaluated_model") == model), places, model, look):
            if x in sides and y == y:
                sides[x][model] = y
    _frame(axes, places, tables["rank_stability"], len(styles), context)
    filled = data.filter(pl.col("rank").is_not_null())["adversary"].unique()
    for name in [name for name in places if name is not None and name not in filled]:
        layout.mark_empty(axes, places[name])
    return sides


def _line(
    axes: Axes, rows: pl.DataFrame, places: dict[str | None, int], model: str, look: style.SeriesStyle
) -> list[tuple[int, float]]:
    pooled = rows.filter(pl.col("adversary_seed").is_null()).select("adversary", "rank")
    points = sorted((places[name], float("nan") if rank is None else rank) for name, rank in pooled.iter_rows())
    if not points:
        return []
    axes.plot([p[0] for p in points], [p[1] for p in points], gid="rank", zorder=3, **look.line())
    own = [(x, y) for x, y in points if places.get(model) == x and y == y]
    if own:
        layout.ring(axes, own, look.colour)
    seeds = rows.filter(pl.col("adversary_seed").is_not_null() & pl.col("rank").is_not_null())
    layout.seed_points(axes, [places[name] for name in seeds["adversary"]], seeds["rank"].to_list(), look.colour)
    return points


def _frame(
    axes: Axes, places: dict[str | None, int], stability: pl.DataFrame, n_models: int, context: FigureContext
) -> None:
    kept = dict(stability.group_by("adversary").agg(pl.col("n_retained").mean()).iter_rows())
    labels = [
        "full set" if name is None else f"{layout.shorten(context.model_title(name))} ({kept.get(name, 0):,.0f})"
        for name in places
    ]
    axes.set_xticks(list(places.values()), labels, rotation=90)
    axes.set_xlim(-0.25, len(places) - 0.75)
    axes.set_ylim(n_models + 0.5, 0.5)
    axes.set_yticks([])
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    axes.set_title("Rank by accuracy, best on top", fontsize=8, fontweight="normal")
    axes.set_xlabel("Adversary, from weakest to strongest (examples retained)")
