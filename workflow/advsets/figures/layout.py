"""Arrange facets and labels so that nothing overlaps.

Conventions
-----------
One block (subfigure) per data set, from top to bottom. Gaps between labels are in points,
1/72 inch, so label placement holds at any scale of the axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure, SubFigure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import TextToPath
from matplotlib.ticker import FuncFormatter

from advsets.figures import style

LABEL_GAP_PT = 10.5
_HEADING_PT = 8.5
LONGEST_NAME = 30
POINT_PX = style.DRAWING_DPI / 72


def blocks(figure: Figure | SubFigure, heights: Sequence[float]) -> list[SubFigure]:
    """One subfigure per part, stacked, with these relative heights."""
    if not heights:
        return []
    made = figure.subfigures(len(heights), 1, height_ratios=list(heights), squeeze=False)
    return list(made[:, 0])


def shorten(title: str, longest: int = LONGEST_NAME) -> str:
    """Title of at most `longest` characters: the middle is left out, as both ends tell models apart."""
    if len(title) <= longest:
        return title
    head = (longest - 1) // 2
    return f"{title[:head]}…{title[len(title) - (longest - 1 - head) :]}"


@cache
def text_width(text: str, size: float) -> float:
    """Points that a line of text takes in the figures' font, at `size` points."""
    font = FontProperties(family=style.FONT_FAMILY, size=size)
    width, _, _ = TextToPath().get_text_width_height_descent(text, font, ismath=False)
    return float(width)


def letters_in(text: str, width: float, size: float) -> int:
    """How many letters like those of `text` fit in a line of `width` points, one at least."""
    taken = text_width(text, size)
    return max(1, int(width * len(text) / taken)) if taken else max(1, len(text))


def spread(positions: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions moved as little as possible (least squares) to lie `gap` apart, order kept.

    Where they fit they stay within [low, high].
    """
    if not positions:
        return []
    order = sorted(range(len(positions)), key=lambda i: (positions[i], i))
    pools: list[tuple[float, int]] = []
    for place, i in enumerate(order):
        mean, count = positions[i] - place * gap, 1
        while pools and pools[-1][0] > mean:
            other, n = pools.pop()
            mean, count = (mean * count + other * n) / (count + n), count + n
        pools.append((mean, count))
    flat = [mean for mean, count in pools for _ in range(count)]
    top = max(high - (len(flat) - 1) * gap, low)
    placed = [min(max(value, low), top) + place * gap for place, value in enumerate(flat)]
    return [placed[order.index(i)] for i in range(len(order))]


def name_height(names: Iterable[str]) -> float:
    """Height (inches) that upright names above axes take."""
    return 0.25 + 0.06 * max((len(shorten(name)) for name in names), default=0)


def settle(figure: Figure) -> None:
    """Arrange what the figure holds so far, so that sizes of axes are known."""
    figure.draw_without_rendering()


def name_above(axes: Axes, places: Mapping[str, float]) -> None:
    """Write a name above each x position, upright, with a thin line where it had to move aside.

    `settle` must have arranged the figure's other parts: their layout gives the width.
    """
    width = axes.bbox.width / POINT_PX
    low, high = axes.get_xlim()
    points = [(x - low) / (high - low) * width for x in places.values()]
    for name, x, at, to in zip(
        places, places.values(), points, spread(points, LABEL_GAP_PT, 4, width - 4), strict=True
    ):
        axes.annotate(
            shorten(name),
            xy=(x, 1),
            xycoords=axes.get_xaxis_transform(),
            xytext=(to - at, 9),
            textcoords="offset points",
            rotation=90,
            ha="center",
            va="bottom",
            fontsize=style.SMALLEST_PT,
            arrowprops=_leader((0.5, 0)),
            annotation_clip=False,
        )


def name_beside(axes: Axes, names: Sequence[str], heights: Sequence[float], x: float, right: bool) -> None:
    """Write names left or right of the points (x, height), moved apart where they would overlap.

    `settle` must have arranged the figure's other parts: their layout gives the height.
    """
    tall = axes.bbox.height / POINT_PX
    bottom, top = axes.get_ylim()
    points = [(y - bottom) / (top - bottom) * tall for y in heights]
    for name, y, at, to in zip(names, heights, points, spread(points, LABEL_GAP_PT, 4, tall - 4), strict=True):
        axes.annotate(
            name,
            xy=(x, y),
            xytext=(13 if right else -13, to - at),
            textcoords="offset points",
            ha="left" if right else "right",
            va="center",
            fontsize=style.SMALLEST_PT,
            arrowprops=_leader((0, 0.5) if right else (1, 0.5)),
            annotation_clip=False,
        )


def percent(axis: Axis) -> None:
    """Write shares (0-1) along an axis as percentages, with no more decimals than they need."""
    axis.set_major_formatter(FuncFormatter(lambda share, _: f"{round(100 * share, 6):g}".replace("-", "−")))


def heading(block: SubFigure, text: str) -> None:
    """Title of a data set's block, in smaller letters where it would not fit its width, then shortened."""
    title = block.suptitle(text, fontsize=_HEADING_PT, fontweight="bold", x=0.01, ha="left")
    share = 0.98 * block.bbox.width / title.get_window_extent().width
    if share < 1:
        title.set_fontsize(max(style.SMALLEST_PT, _HEADING_PT * share))
    longest = max(map(len, text.split("\n")))
    while longest > LONGEST_NAME and title.get_window_extent().width > 0.98 * block.bbox.width:
        longest = max(LONGEST_NAME, int(0.95 * longest))
        title.set_text("\n".join(shorten(line, longest) for line in text.split("\n")))


def ring(axes: Axes, places: Sequence[tuple[float, float]], colour: str) -> None:
    """Circle the points of a model on the subsets of its own adversary."""
    x, y = [place[0] for place in places], [place[1] for place in places]
    axes.scatter(
        x, y, s=95, facecolor="none", edgecolor=colour, linewidth=1.4, zorder=5, gid="own_adversary", clip_on=False
    )


def seed_points(axes: Axes, x: Sequence[float], y: Sequence[float], colour: str) -> None:
    """Small dots of single adversary seeds beside the line of their mean."""
    if x:
        axes.scatter(x, y, s=7, color=colour, alpha=0.6, linewidth=0, zorder=2, gid="adversary_seed")


def mark_empty(axes: Axes, x: float) -> None:
    """Write at x that the subset has no examples."""
    axes.text(
        x,
        0.02,
        "empty subset",
        rotation=90,
        ha="center",
        va="bottom",
        fontsize=style.SMALLEST_PT,
        color=style.MUTED,
        transform=axes.get_xaxis_transform(),
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        zorder=5,
        gid="empty",
    )


def say(axes: Axes, message: str) -> None:
    """Fill axes with one plain sentence instead of data."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, message, ha="center", va="center", transform=axes.transAxes, color=style.MUTED, wrap=True)


def nothing(message: str) -> Figure:
    """Figure that says in one sentence why it shows no data."""
    figure = style.new_figure(1.0)
    say(figure.subplots(), message)
    return figure


def _leader(where: tuple[float, float]) -> dict[str, Any]:
    return {"arrowstyle": "-", "lw": 0.5, "color": style.MUTED, "shrinkA": 0, "shrinkB": 1, "relpos": where}


def strength_axis(axes: Axes, places: dict[str, float], is_strength: bool) -> None:
    """Label the x axis on which adversaries stand at `places`, by strength or, if it is unknown, in order."""
    if is_strength:
        percent(axes.xaxis)
        axes.set_xlabel("Adversary strength: its accuracy on the full set (%)")
    else:
        axes.set_xticks(list(places.values()))
        axes.set_xlabel("Adversary (strength unknown: none was evaluated)")


@dataclass(frozen=True)
class PointLook:
    """Colour, marker and filling of points with intervals, and what the legend says of them."""

    label: str
    colour: str
    marker: str
    filled: bool = True

    @property
    def face(self) -> str:
        return self.colour if self.filled else "white"

    def handle(self) -> Line2D:
        """Entry of a legend."""
        return Line2D(
            [], [], color=self.colour, marker=self.marker, markerfacecolor=self.face, linewidth=1.1, label=self.label
        )


def bounded_points(
    axes: Axes, at: Sequence[float], rows: pl.DataFrame, measure: str, look: PointLook, gid: str
) -> None:
    """Points of column `measure` at heights `at`, with `<measure>_low` and `_high` as a horizontal line.

    Null values are left out; without bounds, or where these are null, there is no line.
    """
    names = (measure, f"{measure}_low", f"{measure}_high")
    columns = [rows[name if name in rows.columns else measure].to_list() for name in names]
    known = [
        (y, value, value if low is None else low, value if high is None else high)
        for y, value, low, high in zip(at, *columns, strict=True)
        if value is not None
    ]
    if known:
        y, points, left, right = map(list, zip(*known, strict=True))
        axes.hlines(y, left, right, color=look.colour, linewidth=1.1, zorder=2)
        axes.plot(
            points, y, look.marker, color=look.colour, markerfacecolor=look.face, markersize=4.2, gid=gid, zorder=3
        )


def named_rows(axes: Axes, names: Sequence[str]) -> None:
    """Rows from top to bottom with these names, without ticks."""
    axes.set_yticks(range(len(names)), [shorten(name) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
