"""Questions that several figures ask of their tables: which data sets, in what order, how strong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from advsets.figures.context import FigureContext
from advsets.figures.style import SeriesStyle, series_styles

Tables = Mapping[str, pl.DataFrame]


def datasets(frame: pl.DataFrame, context: FigureContext) -> list[str]:
    """Data sets of a table in the order of the configuration."""
    return context.order_datasets(frame["dataset"].unique())


def all_datasets(frame: pl.DataFrame, context: FigureContext) -> list[str]:
    """Data sets of the run, those without rows in the table included."""
    return context.order_datasets([*context.dataset_titles, *frame["dataset"]])


def of_dataset(tables: Tables, dataset: str) -> dict[str, pl.DataFrame]:
    """The rows of one data set of every table that tells data sets apart."""
    return {
        name: frame.filter(pl.col("dataset") == dataset) for name, frame in tables.items() if "dataset" in frame.columns
    }


def looks(names: Iterable[str], context: FigureContext) -> dict[str, SeriesStyle]:
    """Style per model, the same in every figure: places are those of the configuration."""
    names = context.order_models(names)
    known = list(context.model_titles)
    styles = series_styles([*known, *(name for name in names if name not in context.model_titles)])
    return {name: styles[name] for name in names}


def strengths(rank_stability: pl.DataFrame) -> dict[str, float | None]:
    """Strength (0-1) per adversary of one data set; None where the model was not evaluated."""
    mean = rank_stability.group_by("adversary").agg(pl.col("adversary_strength").mean())
    return dict(mean.iter_rows())


def weakest_first(strength: Mapping[str, float | None], context: FigureContext) -> list[str]:
    """Adversaries by strength; those of unknown strength come first, ties in configured order."""
    return sorted(context.order_models(strength), key=lambda name: _number(strength[name]))


def x_positions(strength: Mapping[str, float | None], context: FigureContext) -> tuple[dict[str, float], bool]:
    """Place of each adversary on the strength axis, weakest first, and whether it is a strength.

    Adversaries of unknown strength are left out, unless all are: then places are 1, 2, ….
    """
    order = weakest_first(strength, context)
    known = {name: float(value) for name in order if (value := strength[name]) is not None}
    if known:
        return known, True
    return {name: float(i) for i, name in enumerate(order, 1)}, False


def evenly(names: list[str], most: int) -> list[str]:
    """At most `most` (2 or more) of the names: first, last and some evenly between."""
    if len(names) <= most:
        return names
    return [names[round(i * (len(names) - 1) / (most - 1))] for i in range(most)]


def left_out(n_shown: int, n_all: int) -> str:
    """Note for a heading on the adversaries that have no place on the strength axis."""
    return f"; {n_all - n_shown} of {n_all} adversaries not shown: strength unknown" if n_shown < n_all else ""


def sizes(rank_stability: pl.DataFrame) -> str:
    """ "n = 3,187; retained 835–1,574" of one data set; the full set's size follows from shares above 0."""
    kept = rank_stability.filter(pl.col("n_retained") > 0)
    full = (kept["n_retained"] / kept["retained_share"]).round()
    start = f"n = {count_range(full)}; " if len(full) else ""
    return f"{start}retained {count_range(rank_stability['n_retained'])}"


def count_range(counts: Iterable[float]) -> str:
    """ "120" or "120–431", with thousands separated."""
    values = sorted(set(counts))
    if not values:
        return "0"
    ends = [f"{round(v):,}" for v in (values[0], values[-1])]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]}–{ends[1]}"


def _number(value: float | None) -> float:
    return float("-inf") if value is None else value
