"""Questions that the figures of collections ask of their tables: which collections, which measure, how numbers read."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from advsets.figures.context import FigureContext
from advsets.tables import TABLES

MEASURES = {"accuracy": "Accuracy", "f1": "F1", "exact_match": "Exact match"}
"""Titles; the first of them that a collection has is drawn."""


def collections(frame: pl.DataFrame, context: FigureContext) -> list[str]:
    """Collections of the run, those without rows in the table included."""
    return context.order_collections([*context.collections, *frame["collection"]])


def drawn_measure(measures: Iterable[str]) -> str:
    """`accuracy`, or `f1` of questions; rows of another measure stand in the data alone."""
    present = set(measures)
    return next((name for name in MEASURES if name in present), "accuracy")


def underlined(cross_training: pl.DataFrame) -> pl.DataFrame:
    """Rows in order; the best of several training sets is `underlined`, of one alone there is nothing to choose."""
    several = pl.col("training_set").n_unique().over("collection", "evaluated_model") > 1
    return cross_training.sort(TABLES["cross_training"].key).with_columns(underlined=pl.col("best") & several)


def number(value: float, digits: int = 2) -> str:
    """Fixed number of digits, with a minus sign that is as wide as a plus."""
    text = f"{value:.{digits}f}"
    return (text.lstrip("-") if float(text) == 0 else text).replace("-", "−")


def with_interval(value: float, low: float | None, high: float | None) -> str:
    """ "0.67 [0.33, 1.00]", or the value alone where a bound is not known."""
    if low is None or high is None:
        return number(value)
    return f"{number(value)} [{number(low)}, {number(high)}]"


def share(value: float) -> str:
    """Percentage of a share (0-1), without its sign."""
    return number(100 * value, 1)
