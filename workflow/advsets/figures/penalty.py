"""Residual log-odds of accuracy by relation of adversary and evaluated model."""

from __future__ import annotations

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from advsets.figures import frames, layout, style
from advsets.figures.context import FigureContext

_RELATIONS = {
    "self": ("own adversary", style.VERMILLION, "o"),
    "same_family": ("same family", style.PURPLE, "s"),
    "other": ("other models", style.BLUE, "^"),
}
_GOLDEN = 0.6180339887498949


@style.styled
def draw(tables: frames.Tables, context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Draw one panel per data set: a dot per cell of the matrix, mean and interval per relation."""
    data = shown(tables)
    names = frames.all_datasets(data, context)
    parts = [data.filter(pl.col("dataset") == name) for name in names]
    heights = [0.42 * max(part["relation"].n_unique(), 1) + 0.75 for part in parts]
    figure = style.new_figure(sum(heights) + 0.35)
    for name, part, block in zip(names, parts, layout.blocks(figure, heights), strict=True):
        _panel(block.subplots(), part)
        layout.heading(block, context.dataset_title(name) + _interval(tables["penalty"], name))
    figure.legend(handles=_legend(), loc="outside lower right", ncols=2)
    return figure, data


def shown(tables: frames.Tables) -> pl.DataFrame:
    """Rows of the figure: `kind` `cell` (one per adversary and model) and `mean` (one per relation)."""
    keys = ["dataset", "relation"]
    cells = tables["penalty_cells"].filter(pl.col("residual_log_odds").is_not_null())
    mean = cells.group_by(keys).agg(pl.len().alias("n_cells"), pl.col("residual_log_odds").mean())
    fitted = tables["penalty"].select(*keys, "penalty_log_odds", low="penalty_low", high="penalty_high")
    mean = mean.join(fitted, on=keys, how="left").with_columns(
        pl.lit("mean").alias("kind"),
        pl.coalesce("penalty_log_odds", "residual_log_odds").alias("residual_log_odds"),
        pl.col("n_cells").cast(pl.Int64),
    )
    columns = [
        "dataset",
        "relation",
        "kind",
        "adversary",
        "evaluated_model",
        "n_cells",
        "residual_log_odds",
        "low",
        "high",
    ]
    together = pl.concat([cells.with_columns(kind=pl.lit("cell")), mean], how="diagonal").select(columns)
    order = pl.Enum(list(_RELATIONS))
    return together.sort("dataset", pl.col("relation").cast(order), "kind", "adversary", "evaluated_model")


def _panel(axes: Axes, part: pl.DataFrame) -> None:
    relations = [name for name in _RELATIONS if (part["relation"] == name).any()]
    if not relations:
        layout.say(axes, "No residuals: every filtered subset is empty or the matrix is too small.")
        return
    labels = []
    for row, relation in enumerate(relations):
        title, colour, marker = _RELATIONS[relation]
        rows = part.filter(pl.col("relation") == relation)
        values = sorted(rows.filter(pl.col("kind") == "cell")["residual_log_odds"])
        heights = [row + 0.5 * ((i * _GOLDEN) % 1 - 0.5) for i in range(len(values))]
        axes.plot(
            values,
            heights,
            marker,
            color=colour,
            alpha=0.55,
            markersize=3.5,
            markeredgewidth=0,
            gid=f"cells_{relation}",
        )
        _mean(axes, rows.filter(pl.col("kind") == "mean"), row, relation)
        labels.append(f"{title}\n({len(values)} cell{'s' if len(values) != 1 else ''})")
    axes.axvline(0, color=style.MUTED, linewidth=0.9, linestyle=(0, (3, 2)))
    axes.set_yticks(range(len(relations)), labels)
    axes.set_ylim(len(relations) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("Residual of accuracy (log-odds); left of 0: worse than expected")


def _mean(axes: Axes, rows: pl.DataFrame, row: int, relation: str) -> None:
    mean, low, high = rows.select("residual_log_odds", "low", "high").row(0)
    if low is not None and high is not None:
        axes.plot([low, high], [row, row], color="black", linewidth=1.4, gid=f"interval_{relation}", zorder=3)
    axes.plot(
        [mean], [row], "D", color="black", markersize=5.5, markeredgecolor="white", gid=f"mean_{relation}", zorder=4
    )


def _interval(penalty: pl.DataFrame, dataset: str) -> str:
    over = penalty.filter((pl.col("dataset") == dataset) & pl.col("penalty_low").is_not_null())[
        "interval_over"
    ].unique()
    return f" (interval over {', '.join(sorted(over))})" if len(over) else ""


def _legend() -> list[Line2D]:
    return [
        Line2D(
            [],
            [],
            color=style.MUTED,
            marker="o",
            linestyle="none",
            markersize=3.5,
            label="one adversary, one evaluated model",
        ),
        Line2D([], [], color="black", marker="D", markersize=5.5, markeredgecolor="white", label="mean and interval"),
    ]
