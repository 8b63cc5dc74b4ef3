"""Blocks of the figure of adversarial collections: what stands in each, how wide and high it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from advsets.collected import IMPORTED
from advsets.figures import collected
from advsets.figures.collected_notes import Notes
from advsets.figures.context import FigureContext

_MOST_IN_A_ROW = 4
_FACET_IN, _COLUMN_IN, _POINT_IN = 1.35, 0.62, 0.085
_AXES_IN, _LINE_IN = 1.75, 0.13
AROUND_IN = 0.7


@dataclass(frozen=True)
class Block:
    """One training set of a collection: models with a score on the standard set, and models without."""

    collection: str
    training_set: str
    measure: str
    sets: list[str]
    standard: str | None
    placed: pl.DataFrame
    unplaced: pl.DataFrame

    @property
    def chunks(self) -> list[list[str]]:
        """Sets of each row of panels: rows of equal length but for the last."""
        rows = -(-len(self.sets) // _MOST_IN_A_ROW) or 1
        size = -(-len(self.sets) // rows) or 1
        return [self.sets[i : i + size] for i in range(0, len(self.sets), size)] or [[]]

    @property
    def widths(self) -> list[float]:
        """Inches that the panels of a row take at least: one per set, then that of models without standard score."""
        columns = len(self.chunks[0])
        models = self.unplaced["evaluated_model"].n_unique()
        facets = [_FACET_IN] * columns if len(self.placed) else []
        return facets + ([max(_COLUMN_IN, _POINT_IN * (models + 1)) * columns] if models else [])


@dataclass(frozen=True)
class Texts:
    """Texts of a block's panels, broken into lines that fit the width of the figure."""

    facets: dict[str, str]
    unplaced: str
    columns: dict[str, str]

    @classmethod
    def of(cls, block: Block, notes: Notes, width: float) -> Texts:
        inches = [(width - AROUND_IN) * part / sum(block.widths) for part in block.widths]
        own = (block.collection, block.training_set)
        facets = {
            name: notes.facet(*own, name, block.measure, block.standard, inches[0])
            for name in (block.sets if len(block.placed) else [])
        }
        if not len(block.unplaced):
            return cls(facets, "", {})
        column = inches[-1] / len(block.chunks[0])
        columns = {name: notes.column(block.unplaced, name, block.measure, column, not facets) for name in block.sets}
        return cls(facets, notes.unplaced(block.unplaced, block.measure, inches[-1]), columns)

    def height(self, block: Block) -> float:
        """Inches of the block."""
        if not block.widths:
            return 0.9
        lines = [_lines(self.facets.values()) + max(_lines(self.columns.values()), 2) for _ in block.chunks]
        lines[0] += max(_lines([self.unplaced]) - _lines(self.facets.values()), 0)
        return 0.42 + sum(_AXES_IN + _LINE_IN * n for n in lines)


def drawn_points(data: pl.DataFrame) -> pl.DataFrame:
    """The rows that are points of the figure."""
    return data.filter((pl.col("kind") == "mean") & pl.col("drawn"))


def blocks_of(data: pl.DataFrame, collection: str, context: FigureContext) -> list[Block]:
    """One block per training set of the collection; imported models stand in the first."""
    rows = data.filter(pl.col("collection") == collection)
    points = drawn_points(rows)
    trained = context.order_training_sets(collection, set(points["training_set"]) - {IMPORTED})
    made = []
    for i, training_set in enumerate(trained or [IMPORTED]):
        own = points.filter(pl.col("training_set").is_in([training_set, *([IMPORTED] if i == 0 else [])]))
        made.append(
            Block(
                collection,
                training_set,
                collected.drawn_measure(rows["measure"]),
                context.order_sets(collection, own["dataset"]),
                next(iter(rows["standard_dataset"].drop_nulls()), None),
                own.filter(pl.col("standard_score").is_not_null()),
                own.filter(pl.col("standard_score").is_null()),
            )
        )
    return made


def _lines(texts: Iterable[str]) -> int:
    return max((text.count("\n") + 1 for text in texts if text), default=0)
