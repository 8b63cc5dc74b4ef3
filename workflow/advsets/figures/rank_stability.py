"""Kendall's tau-b of the model ranking, filtered against full set, by adversary strength."""

from __future__ import annotations

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from advsets.figures import frames, layout, style
from advsets.figures.context import FigureContext

_MEASURES = ["tau_b", "tau_b_low", "tau_b_high", "tau_b_random_mean", "tau_b_random_low", "tau_b_random_high"]


@style.styled
def draw(tables: frames.Tables, context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Draw one panel per data set: tau-b with interval beside the range of random subsets."""
    data = shown(tables)
    names = frames.datasets(data, context)
    above = layout.name_height(context.model_title(a) for a in data["adversary"].unique())
    figure = style.new_figure((2.6 + above) * len(names) + 0.1)
    to_name = []
    for name, block in zip(names, layout.blocks(figure, [1] * len(names)), strict=True):
        axes = block.subplots()
        layout.heading(block, _heading(data.filter(pl.col("dataset") == name), name, context))
        places = _panel(axes, data.filter(pl.col("dataset") == name), context)
        to_name.append((axes, {context.model_title(a): x for a, x in places.items()}))
    figure.legend(handles=_legend(data), loc="outside right center")
    layout.settle(figure)
    for axes, titled in to_name:
        layout.name_above(axes, titled)
    return figure, data


def shown(tables: frames.Tables) -> pl.DataFrame:
    """One row per adversary and seed."""
    columns = [
        "dataset",
        "adversary",
        "adversary_seed",
        "adversary_strength",
        "n_retained",
        "retained_share",
        *_MEASURES,
    ]
    return tables["rank_stability"].select(columns).sort("dataset", "adversary_strength", "adversary", "adversary_seed")


def _panel(axes: Axes, data: pl.DataFrame, context: FigureContext) -> dict[str, float]:
    if data["tau_b"].null_count() == len(data):
        layout.say(
            axes,
            "No rank correlation: it needs at least two evaluated models\nand a filtered subset that is not empty.",
        )
        return {}
    places, is_strength = frames.x_positions(frames.strengths(data), context)
    _frame(axes, places, is_strength)
    data = data.filter(pl.col("adversary").is_in(list(places)))
    for adversary in sorted(data.filter(pl.col("n_retained") == 0)["adversary"].unique()):
        layout.mark_empty(axes, places[adversary])
    data = data.filter(pl.col("tau_b").is_not_null())
    width = axes.get_xlim()[1] - axes.get_xlim()[0]
    seeds = sorted(data["adversary_seed"].unique())
    for i, seed in enumerate(seeds):
        shift = 0.022 * width * (i - (len(seeds) - 1) / 2)
        _points(axes, data.filter(pl.col("adversary_seed") == seed), places, shift)
    if len(seeds) > 1:
        mean = data.group_by("adversary").agg(pl.col("tau_b").mean())
        line = sorted((places[name], tau) for name, tau in mean.iter_rows())
        axes.plot(*zip(*line, strict=True), color=style.BLUE, gid="mean_over_seeds", zorder=3)
    return places


def _points(axes: Axes, rows: pl.DataFrame, places: dict[str, float], shift: float) -> None:
    rows = rows.with_columns(
        pl.col("tau_b_low", "tau_b_random_low", "tau_b_random_mean").fill_null(pl.col("tau_b")),
        pl.col("tau_b_high", "tau_b_random_high").fill_null(pl.col("tau_b")),
        random_known=pl.col("tau_b_random_mean").is_not_null(),
    )
    x = [places[name] + shift for name in rows["adversary"]]
    random = [(a, *row) for a, row in zip(x, rows.select(_MEASURES[3:]).iter_rows(), strict=True)]
    known = [row for row, is_known in zip(random, rows["random_known"], strict=True) if is_known]
    if known:
        at, mean, low, high = map(list, zip(*known, strict=True))
        axes.vlines(at, low, high, color=style.BAND, linewidth=9, zorder=1, gid="random_subset")
        axes.scatter(at, mean, marker="_", s=70, color=style.MUTED, linewidth=1.2, zorder=2, gid="random_mean")
    errors = [rows["tau_b"] - rows["tau_b_low"], rows["tau_b_high"] - rows["tau_b"]]
    drawn = axes.errorbar(
        x,
        rows["tau_b"],
        yerr=[e.clip(0).to_list() for e in errors],
        fmt="o",
        color=style.BLUE,
        capsize=2.5,
        elinewidth=1.1,
        zorder=4,
    )
    drawn.lines[0].set_gid("tau_b")


def _frame(axes: Axes, places: dict[str, float], is_strength: bool) -> None:
    low, high = min(places.values()), max(places.values())
    pad = 0.07 * (high - low) or 0.02
    axes.set_xlim(low - pad, high + pad)
    axes.set_ylabel("Rank correlation with\nthe full set (Kendall's tau-b)")
    axes.margins(y=0.08)
    layout.strength_axis(axes, places, is_strength)


def _heading(data: pl.DataFrame, dataset: str, context: FigureContext) -> str:
    known = data.filter(pl.col("adversary_strength").is_not_null())["adversary"].n_unique()
    note = frames.left_out(known, data["adversary"].n_unique()) if known else ""
    return f"{context.dataset_title(dataset)} ({frames.sizes(data)}{note})"


def _legend(data: pl.DataFrame) -> list[Line2D]:
    handles = [
        Line2D([], [], color=style.BLUE, marker="o", linestyle="none", label="filtered subset\n(with interval)"),
        Line2D([], [], color=style.BAND, linewidth=8, label="random subsets of\nthe same size:\nrange over draws"),
        Line2D([], [], color=style.MUTED, marker="_", markersize=8, linestyle="none", label="their mean"),
    ]
    if data["adversary_seed"].n_unique() > 1:
        handles.insert(1, Line2D([], [], color=style.BLUE, label="mean over\nadversary seeds"))
    return handles
