"""Histogram of the predictability of evaluation rows in selected filtering rounds, by adversary."""

from __future__ import annotations

import math
import textwrap

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from advsets.figures import frames, layout, style
from advsets.figures.context import FigureContext

_N_BINS = 20
_MOST_ROUNDS = 4
_MOST_LINES = 12
_MOST_ADVERSARIES = 6


@style.styled
def draw(tables: frames.Tables, context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Draw one block per data set: a row per adversary, a column per selected round.

    Rounds are the first two, the middle and the last of each adversary. Where there are many
    adversaries, some are drawn, evenly spaced in the order of the configuration: six, or fewer
    with more than two data sets. Of several adversary seeds the lowest is drawn.
    """
    data = shown(tables["round_scores"], context)
    names = frames.all_datasets(data, context)
    parts = [data.filter(pl.col("dataset") == name) for name in names]
    heights = [0.85 * max(part["adversary"].n_unique(), 1) + 0.65 for part in parts]
    figure = style.new_figure(sum(heights) + 0.5)
    for name, part, block in zip(names, parts, layout.blocks(figure, heights), strict=True):
        total = tables["round_scores"].filter(pl.col("dataset") == name)["adversary"].n_unique()
        _block(block, part, name, total, context)
    figure.legend(handles=_legend(context), loc="outside lower right", ncols=3)
    return figure, data


def shown(scores: pl.DataFrame, context: FigureContext) -> pl.DataFrame:
    """Rows per bin: `n_retained` and `n_removed` in the round, bins closed on the right (the first on both sides)."""
    runs = ["dataset", "adversary", "adversary_seed"]
    scores = scores.filter(pl.col("adversary_seed") == pl.col("adversary_seed").min().over(runs[:2]))
    scores = scores.filter(pl.col("predictability").is_not_null())
    chosen_of = {name: _chosen(scores, name, context) for name in scores["dataset"].unique()}
    wanted = [
        (dataset, adversary, seed, number)
        for dataset, adversary, seed, last in scores.group_by(runs).agg(pl.col("filtering_round").max()).iter_rows()
        if adversary in chosen_of[dataset]
        for number in selected_rounds(last)
    ]
    keys = [*runs, "filtering_round"]
    chosen = pl.DataFrame(wanted, schema={k: scores.schema[k] for k in keys}, orient="row")
    bins = chosen.join(pl.DataFrame({"bin": range(_N_BINS)}, schema={"bin": pl.Int64}), how="cross")
    # 1e-9 keeps a share that lies on an edge, such as 48 of 64, in the bin below it.
    place = ((pl.col("predictability") * _N_BINS - 1e-9).ceil() - 1).clip(0).cast(pl.Int64)
    counted = (
        scores.with_columns(bin=place)
        .group_by(*keys, "bin")
        .agg(n_retained=(~pl.col("removed")).sum().cast(pl.Int64), n_removed=pl.col("removed").sum().cast(pl.Int64))
    )
    return (
        bins.join(counted, on=[*keys, "bin"], how="left")
        .with_columns(pl.col("n_retained", "n_removed").fill_null(0))
        .select(
            *keys,
            (pl.col("bin") / _N_BINS).alias("bin_low"),
            ((pl.col("bin") + 1) / _N_BINS).alias("bin_high"),
            "n_retained",
            "n_removed",
        )
        .sort(*keys, "bin_low")
    )


def selected_rounds(last: int) -> list[int]:
    """First two, middle and last round."""
    return sorted({1, min(2, last), math.ceil(last / 2), last})


def _chosen(scores: pl.DataFrame, dataset: str, context: FigureContext) -> list[str]:
    of_dataset = scores.filter(pl.col("dataset") == dataset)["adversary"].unique()
    most = min(_MOST_ADVERSARIES, max(2, _MOST_LINES // scores["dataset"].n_unique()))
    return frames.evenly(context.order_models(of_dataset), most)


def _block(block: SubFigure, part: pl.DataFrame, dataset: str, total: int, context: FigureContext) -> None:
    adversaries = context.order_models(part["adversary"].unique())
    some = f"; {len(adversaries)} of {total} adversaries" if total > len(adversaries) else ""
    layout.heading(block, f"{context.dataset_title(dataset)} (evaluation rows{some})")
    if not adversaries:
        layout.say(block.subplots(), "No filtering round has scores.")
        return
    grid = block.subplots(len(adversaries), _MOST_ROUNDS, squeeze=False, sharex=True, sharey=True)
    for line, adversary in zip(grid, adversaries, strict=True):
        rows = part.filter(pl.col("adversary") == adversary)
        rounds = sorted(rows["filtering_round"].unique())
        for axes, number in zip(line, rounds, strict=False):
            shown_round = rows.filter(pl.col("filtering_round") == number)
            _panel(axes, shown_round, number, number == rounds[-1], context.thresholds.get(dataset))
        for axes in line[len(rounds) :]:
            axes.set_axis_off()
        title = layout.shorten(context.model_title(adversary)).replace("…", "… ")
        name = textwrap.fill(title, 14, break_long_words=False)
        line[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=7.5)
    block.supxlabel("Predictability (% of the round's classifiers that are right)", fontsize=8)
    block.supylabel("Rows of the round (%)", fontsize=8)


def _panel(axes: Axes, rows: pl.DataFrame, number: int, is_last: bool, threshold: float | None) -> None:
    n = int((rows["n_retained"] + rows["n_removed"]).sum())
    edges = [*rows["bin_low"], 1.0]
    kept, gone = (rows[c].to_numpy() / max(n, 1) for c in ("n_retained", "n_removed"))
    axes.stairs(kept, edges, fill=True, color=style.BLUE, linewidth=0, gid="retained")
    axes.stairs(
        kept + gone,
        edges,
        baseline=kept,
        fill=True,
        facecolor=style.ORANGE,
        hatch="////",
        edgecolor="white",
        linewidth=0,
        gid="removed",
    )
    if threshold is not None:
        axes.axvline(threshold, color="black", linewidth=0.9, linestyle=(0, (3, 2)), gid="threshold")
    axes.set_title(
        f"{'last: ' if is_last else ''}round {number} (n = {n:,})",
        fontsize=style.SMALLEST_PT,
        fontweight="normal",
        pad=2,
    )
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.5, 1])
    layout.percent(axes.xaxis)
    layout.percent(axes.yaxis)


def _legend(context: FigureContext) -> list[Line2D | Patch]:
    shares = ", ".join(f"{100 * value:g} %" for value in sorted(set(context.thresholds.values())))
    return [
        Patch(facecolor=style.BLUE, label="retained by the round"),
        Patch(facecolor=style.ORANGE, hatch="////", edgecolor="white", linewidth=0, label="removed by the round"),
        Line2D([], [], color="black", linewidth=0.9, linestyle=(0, (3, 2)), label=f"threshold ({shares})"),
    ]
