"""Findings of the paper, and whether they hold here, as a table."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from advsets.figures import frames, layout, style
from advsets.figures.context import FigureContext

_LINE_IN = 0.135
_GAP_IN = 0.11
_VERDICTS = {
    "holds": (style.GREEN, "o", "full"),
    "does not hold": (style.VERMILLION, "s", "none"),
    "undecided": (style.MUTED, "D", "none"),
}


@dataclass(frozen=True)
class _Line:
    """One finding, its texts wrapped for their columns."""

    letter: str
    statement: str
    verdict: str
    number: str
    measure: str

    @property
    def height(self) -> float:
        """Inches."""
        return _LINE_IN * max(t.count("\n") + 1 for t in (self.statement, self.number, self.measure)) + _GAP_IN


_COLUMNS = {
    "letter": (0.0, ""),
    "statement": (0.03, "Finding"),
    "verdict": (0.4, "Here"),
    "number": (0.575, "Value [interval]"),
    "measure": (0.745, "Measure"),
}


@style.styled
def draw(tables: frames.Tables, context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Write one table per data set."""
    data = tables["findings"].sort("dataset", "finding")
    names = frames.datasets(data, context)
    lines = {name: _lines(data.filter(pl.col("dataset") == name)) for name in names}
    heights = [sum(line.height for line in rows) + 0.62 for rows in lines.values()]
    figure = style.new_figure(max(sum(heights), 1.0))
    for (name, rows), block in zip(lines.items(), layout.blocks(figure, heights), strict=True):
        layout.heading(block, context.dataset_title(name))
        _table(block.subplots(), rows)
    return figure, data


def _lines(data: pl.DataFrame) -> list[_Line]:
    columns = ["finding", "statement", "verdict", "value", "low", "high", "measure"]
    return [
        _Line(letter, _wrap(statement, 42), _wrap(verdict, 14), number_text(value, low, high), _wrap(measure, 28))
        for letter, statement, verdict, value, low, high, measure in data.select(columns).iter_rows()
    ]


def _wrap(text: str, width: int) -> str:
    return textwrap.fill(text, width, break_on_hyphens=False)


def number_text(value: float | None, low: float | None, high: float | None) -> str:
    """Value with its interval, three significant digits."""
    if value is None or math.isnan(value):
        return "not measured"
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return _digits(value)
    return f"{_digits(value)}\n[{_digits(low)}, {_digits(high)}]"


def _digits(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")


def _table(axes: Axes, rows: Sequence[_Line]) -> None:
    total = sum(line.height for line in rows) + 0.25
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(total, 0)
    for x, title in _COLUMNS.values():
        axes.text(x, 0.02, title, fontsize=7.5, va="top", color=style.MUTED)
    y = 0.25
    for line in rows:
        axes.axhline(y - _GAP_IN / 2, color="#CFCFCF", linewidth=0.6)
        colour, marker, fill = _VERDICTS.get(line.verdict.replace("\n", " "), (style.MUTED, "D", "none"))
        for name, (x, _) in _COLUMNS.items():
            if name == "verdict":
                axes.plot(
                    [x + 0.008],
                    [y + 0.055],
                    marker,
                    color=colour,
                    fillstyle=fill,
                    markersize=5,
                    gid="verdict",
                    clip_on=False,
                )
            bold = "bold" if name in ("letter", "verdict") else "normal"
            axes.text(
                x + 0.025 * (name == "verdict"),
                y,
                getattr(line, name),
                fontsize=7.5,
                va="top",
                fontweight=bold,
                linespacing=1.15,
            )
        y += line.height
