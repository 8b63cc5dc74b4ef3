"""Annotator agreement of retained and removed examples against the full set, by gold class."""

from __future__ import annotations

import math

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from advsets.figures import frames, layout, style
from advsets.figures.context import FigureContext

_MOST_COLUMNS = 4
_MOST_CURVES = 4
_HISTOGRAM_IN = 1.9
_LOOKS = {"retained": (style.VERMILLION, "o", "full"), "removed": (style.BLUE, "s", "none")}
_LABELS = {
    "agreement": "Mean agreement with the gold label (% of annotators)",
    "low_agreement": "Examples flagged for low agreement (%)",
}


@style.styled
def draw(tables: frames.Tables, context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Draw one block per data set: dots by adversary and gold class, the histogram below.

    Where the flag of low agreement is what is known of most examples, its share is drawn;
    data sets without annotator data say so.
    """
    means = shown_means(tables["agreement"])
    by_labels = means.filter(pl.col("measure") == "agreement")["dataset"].unique()
    bars = shown_histogram(tables["agreement_histogram"].filter(pl.col("dataset").is_in(by_labels.implode())), context)
    names = frames.all_datasets(means, context)
    parts = [frames.of_dataset({"means": means, "bars": bars}, name) for name in names]
    heights = [_height(part) for part in parts]
    figure = style.new_figure(max(sum(heights), 1.0) + 0.35)
    for name, part, block in zip(names, parts, layout.blocks(figure, heights), strict=True):
        _block(block, part, name, context)
    if len(means):
        figure.legend(handles=_legend(), loc="outside lower right", ncols=3)
    return figure, pl.concat(
        [means.with_columns(kind=pl.lit("mean")), bars.with_columns(kind=pl.lit("histogram"))], how="diagonal"
    )


def shown_means(agreement: pl.DataFrame) -> pl.DataFrame:
    """One row per adversary, seed, gold class and subset; `measure` says what `value` is.

    A data set is measured by the flag of low agreement where more examples have it than have
    annotators' labels: those with labels need not be a random sample.
    """
    keys = ["dataset", "adversary", "adversary_seed", "gold_label", "subset"]
    n_mean = pl.col("n_examples").filter(pl.col("agreement_mean").is_not_null()).max().fill_null(0).over("dataset")
    n_flag = pl.col("n_flagged").max().fill_null(0).over("dataset")
    uses_flag = n_flag > n_mean
    kinds = [
        ("agreement", (n_mean > 0) & ~uses_flag, "agreement_mean", "n_examples"),
        ("low_agreement", uses_flag, "low_agreement_share", "n_flagged"),
    ]
    parts = [
        agreement.filter(chosen).select(
            *keys,
            measure=pl.lit(name),
            n_examples=pl.col(n),
            value=pl.col(mean),
            low=pl.col(f"{name}_low"),
            high=pl.col(f"{name}_high"),
        )
        for name, chosen, mean, n in kinds
    ]
    return pl.concat(parts).sort(keys)


def shown_histogram(histogram: pl.DataFrame, context: FigureContext) -> pl.DataFrame:
    """Shares per bin, means over adversary seeds, of the full set and of up to four adversaries' retained rows."""
    parts = []
    for name in frames.datasets(histogram, context):
        rows = histogram.filter(pl.col("dataset") == name)
        chosen = frames.evenly(context.order_models(rows["adversary"].unique()), _MOST_CURVES)
        is_full = (pl.col("subset") == "full_set") & (pl.col("adversary") == chosen[0])
        parts.append(rows.filter(is_full | ((pl.col("subset") == "retained") & pl.col("adversary").is_in(chosen))))
    keys = ["dataset", "adversary", "subset", "bin_low", "bin_high"]
    rows = pl.concat(parts) if parts else histogram
    return rows.group_by(keys).agg(pl.col("share").mean()).sort(keys)


def _classes(means: pl.DataFrame, dataset: str, context: FigureContext) -> list[str | None]:
    return [None, *context.order_labels(dataset, means["gold_label"].drop_nulls().unique())]


def _grid(n_panels: int) -> tuple[int, int]:
    columns = min(n_panels, _MOST_COLUMNS)
    return math.ceil(n_panels / columns), columns


def _height(part: dict[str, pl.DataFrame]) -> float:
    if not len(part["means"]):
        return 0.9
    rows, _ = _grid(1 + part["means"]["gold_label"].drop_nulls().n_unique())
    dots = rows * (0.2 * part["means"]["adversary"].n_unique() + 0.5) + 0.65
    return dots + (_HISTOGRAM_IN if len(part["bars"]) else 0)


def _block(block: SubFigure, part: dict[str, pl.DataFrame], dataset: str, context: FigureContext) -> None:
    means, bars = part["means"], part["bars"]
    layout.heading(block, context.dataset_title(dataset) + _n(means))
    if not len(means):
        layout.say(
            block.subplots(), "This data set has no annotator data: neither label counts nor a flag of low agreement."
        )
        return
    bars = bars.filter(pl.col("share").is_not_null())
    whole = _height(part)
    upper, *lower = layout.blocks(block, [whole - _HISTOGRAM_IN, _HISTOGRAM_IN] if len(bars) else [whole])
    classes = _classes(means, dataset, context)
    grid = upper.subplots(*_grid(len(classes)), squeeze=False, sharex=True, sharey=True)
    adversaries = context.order_models(means["adversary"].unique())
    for axes, gold in zip(grid.flat, classes, strict=False):
        _dots(axes, means.filter(pl.col("gold_label").eq_missing(gold)), adversaries)
        axes.set_title("all classes" if gold is None else layout.shorten(gold, 18), fontsize=8, fontweight="normal")
    for axes in grid.flat[len(classes) :]:
        axes.set_axis_off()
    grid[0, 0].set_yticks(range(len(adversaries)), [layout.shorten(context.model_title(a)) for a in adversaries])
    grid[0, 0].set_ylim(len(adversaries) - 0.5, -0.5)
    upper.supxlabel(_LABELS[means["measure"][0]], fontsize=8)
    for below in lower:
        _histogram(below.subplots(), bars, context)


def _dots(axes: Axes, rows: pl.DataFrame, adversaries: list[str]) -> None:
    full = rows.filter(pl.col("subset") == "full_set")
    low, value, high = (full[c].drop_nulls().mean() for c in ("low", "value", "high"))
    if value is not None:
        axes.axvspan(value if low is None else low, value if high is None else high, color=style.BAND, linewidth=0)  # type: ignore[arg-type]
        axes.axvline(value, color="black", linewidth=0.9, linestyle=(0, (3, 2)), gid="full_set")  # type: ignore[arg-type]
    seeds = sorted(rows["adversary_seed"].unique())
    for subset, (colour, marker, fill) in _LOOKS.items():
        for i, seed in enumerate(seeds):
            own = rows.filter(
                (pl.col("subset") == subset) & (pl.col("adversary_seed") == seed) & pl.col("value").is_not_null()
            )
            shift = 0.16 * (i - (len(seeds) - 1) / 2)
            y = [adversaries.index(a) + shift for a in own["adversary"]]
            bounded = own.with_columns(pl.col("low", "high").fill_null(pl.col("value")))
            axes.hlines(y, bounded["low"], bounded["high"], color=colour, linewidth=1.1)
            axes.plot(
                own["value"],
                y,
                marker,
                color=colour,
                fillstyle=fill,
                markersize=4 if len(seeds) == 1 else 3,
                gid=subset,
                markerfacecolor=colour if fill == "full" else "white",
            )
    axes.tick_params(axis="y", length=0)
    layout.percent(axes.xaxis)


def _histogram(axes: Axes, bars: pl.DataFrame, context: FigureContext) -> None:
    full = bars.filter(pl.col("subset") == "full_set").sort("bin_low")
    width = full["bin_high"] - full["bin_low"]
    axes.bar(
        full["bin_low"],
        full["share"],
        width,
        align="edge",
        color=style.BAND,
        edgecolor="#BDBDBD",
        linewidth=0.5,
        label="full set",
    )
    retained = bars.filter(pl.col("subset") == "retained")
    for name, look in frames.looks(retained["adversary"].unique(), context).items():
        rows = retained.filter(pl.col("adversary") == name).sort("bin_low")
        middle = (rows["bin_low"] + rows["bin_high"]) / 2
        label = f"retained by {layout.shorten(context.model_title(name))}"
        axes.plot(middle, rows["share"], gid="histogram", label=label, **look.line(linewidth=1.1))
    for axis in (axes.xaxis, axes.yaxis):
        layout.percent(axis)
    axes.set_xlabel("Agreement with the gold label (% of annotators)")
    axes.set_ylabel("Examples (%)")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))


def _n(means: pl.DataFrame) -> str:
    if not len(means):
        return ""
    overall = means.filter(pl.col("gold_label").is_null())
    counts = {s: overall.filter(pl.col("subset") == s)["n_examples"] for s in ("full_set", "retained")}
    full, kept = frames.count_range(counts["full_set"]), frames.count_range(counts["retained"])
    return f" (n = {full} with annotator data; retained {kept})"


def _legend() -> list[Line2D | Patch]:
    dots = [
        Line2D(
            [],
            [],
            color=colour,
            marker=marker,
            linewidth=1.1,
            label=subset,
            markerfacecolor=colour if fill == "full" else "white",
        )
        for subset, (colour, marker, fill) in _LOOKS.items()
    ]
    return [
        *dots,
        Line2D([], [], color="black", linewidth=0.9, linestyle=(0, (3, 2)), label="full set (grey: interval)"),
    ]
