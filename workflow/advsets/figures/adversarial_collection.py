"""Score on sets that people wrote against a model: against the standard set, and of published predictions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from advsets.figures import collected, collected_points, frames, layout, style
from advsets.figures.collected_blocks import AROUND_IN, Block, Texts, blocks_of, drawn_points
from advsets.figures.collected_notes import Notes
from advsets.figures.context import FigureContext

_LABEL_IN = 2.3


@style.styled
def draw(tables: frames.Tables, context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Draw one block per collection and training set, published predictions in the first of a collection."""
    data = collected_points.shown(tables, context)
    blocks = [block for name in collected.collections(data, context) for block in blocks_of(data, name, context)]
    if not blocks:
        return layout.nothing("This run has no collection of adversarial sets."), data
    notes, points = Notes(tables, context), drawn_points(data)
    looks = frames.looks(points["evaluated_model"].unique(), context)
    width = max(style.DOUBLE_COLUMN_IN, AROUND_IN + max(sum(block.widths) for block in blocks))
    texts = [Texts.of(block, notes, width) for block in blocks]
    heights = [text.height(block) for text, block in zip(texts, blocks, strict=True)]
    legend = collected_points.legend(points, looks, context)
    columns = int(width / _LABEL_IN)
    figure = style.new_figure(sum(heights) + 0.165 * -(-len(legend) // columns) + 0.15, width)
    for block, text, part in zip(blocks, texts, layout.blocks(figure, heights), strict=True):
        layout.heading(part, notes.heading(block.collection, block.training_set, block.measure))
        _draw_block(part, block, text, looks, notes, context)
    if legend:
        figure.legend(handles=legend, loc="outside lower left", ncols=columns)
    return figure, data


def _draw_block(
    part: SubFigure,
    block: Block,
    texts: Texts,
    looks: dict[str, style.SeriesStyle],
    notes: Notes,
    context: FigureContext,
) -> None:
    if not block.widths:
        layout.say(part.subplots(), "No model was scored on an adversarial set of this collection.")
        return
    grid = part.subplots(len(block.chunks), len(block.widths), sharey=True, width_ratios=block.widths, squeeze=False)
    levels = notes.levels(block.collection, block.measure)
    models = context.order_models(block.unplaced["evaluated_model"])
    for line, sets in zip(grid, block.chunks, strict=True):
        facets = line[: len(block.chunks[0])] if texts.facets else line[:0]
        for axes, dataset in zip(facets, sets, strict=False):
            _facet(axes, block.placed.filter(pl.col("dataset") == dataset), looks, levels.get(dataset, (None, None)))
            _title(axes, texts.facets[dataset])
        for axes in facets[len(sets) :]:
            axes.set_axis_off()
        if len(facets):
            _label_below(facets[: len(sets)], notes.standard(block.standard, block.measure))
        if models:
            _columns(line[-1], block, sets, models, looks, levels)
            line[-1].set_xticks(range(len(sets)), [texts.columns[s] for s in sets], fontsize=style.SMALLEST_PT)
        line[0].set_ylabel(f"{collected.MEASURES[block.measure]} on the\nadversarial set (%)")
    if models:
        _title(grid[0][-1], texts.unplaced)
    _limits(grid.flat, block, levels.values())


def _facet(
    axes: Axes, rows: pl.DataFrame, looks: dict[str, style.SeriesStyle], levels: tuple[float | None, float | None]
) -> None:
    """Score on one set against the score on the standard set."""
    axes.set_gid("facet")
    for level, look in zip(levels, collected_points.LEVELS, strict=True):
        if level is not None:
            axes.axhline(level, gid=look.gid, **look.line)
    axes.plot([0, 1], [0, 1], gid="diagonal", **collected_points.DIAGONAL)
    for row in rows.iter_rows(named=True):
        collected_points.point(axes, row["standard_score"], row, looks[row["evaluated_model"]])
    layout.percent(axes.xaxis)
    layout.percent(axes.yaxis)


def _columns(
    axes: Axes,
    block: Block,
    sets: Sequence[str],
    models: list[str],
    looks: dict[str, style.SeriesStyle],
    levels: dict[str, tuple[float | None, float | None]],
) -> None:
    """Panel of models without a score on the standard set: a column per set, a place in it per model."""
    axes.set_gid("columns")
    for column, dataset in enumerate(sets):
        for level, look in zip(levels.get(dataset, (None, None)), collected_points.LEVELS, strict=True):
            if level is not None:
                axes.hlines([level], column - 0.45, column + 0.45, gid=look.gid, **look.line)
        for row in block.unplaced.filter(pl.col("dataset") == dataset).iter_rows(named=True):
            place = column + 0.84 * (models.index(row["evaluated_model"]) + 0.5) / len(models) - 0.42
            collected_points.point(axes, place, row, looks[row["evaluated_model"]])
    for edge in range(1, len(sets)):
        axes.axvline(edge - 0.5, color=style.BAND, linewidth=0.8)
    axes.grid(axis="x", visible=False)
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.5, len(block.chunks[0]) - 0.5)
    layout.percent(axes.yaxis)


def _title(axes: Axes, text: str) -> None:
    axes.set_title(text, fontsize=style.SMALLEST_PT, fontweight="normal", linespacing=1.25)


def _label_below(facets: Sequence[Axes], text: str) -> None:
    """Label the x axis of a row of facets once, below their middle."""
    middle = facets[(len(facets) - 1) // 2]
    middle.set_xlabel(text)
    if len(facets) % 2 == 0:
        middle.xaxis.label.set_x(1.1)


def _limits(panels: Iterable[Axes], block: Block, levels: Iterable[tuple[float | None, float | None]]) -> None:
    """Equal limits of all panels of a block: those of the points, their intervals and the levels."""
    y = _known(pl.concat([block.placed, block.unplaced]), "mean_score")
    low, high = _padded([*y, *(level for pair in levels for level in pair if level is not None)])
    left, right = _padded(_known(block.placed, "standard_score"))
    for axes in panels:
        axes.set_ylim(low, high)
        if axes.get_gid() == "facet":
            axes.set_xlim(left, right)


def _known(rows: pl.DataFrame, measure: str) -> list[float]:
    return [value for end in ("", "_low", "_high") for value in rows[f"{measure}{end}"].drop_nulls()]


def _padded(values: list[float]) -> tuple[float, float]:
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    pad = 0.08 * (high - low) or 0.02
    return low - pad, high + pad
