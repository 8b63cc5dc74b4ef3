"""Look of every figure: sizes, fonts, colours, markers.

Conventions
-----------
Sizes are inches, font sizes and line widths points. Colours are Okabe and Ito's, maps of the
viridis family; colour never stands alone, each series has its own marker or line style too.
Nothing here touches pyplot or the user's settings: `styled` sets the parameters for one call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import matplotlib
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

SINGLE_COLUMN_IN = 3.4
DOUBLE_COLUMN_IN = 7.0
SMALLEST_PT = 7.0
FONT_FAMILY = "DejaVu Sans"
DRAWING_DPI = 100

BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
)
# Okabe and Ito's yellow is left out: it is too pale for lines on white.
COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h")
MARKER_SCALE = {"P": 1.25, "X": 1.25, "p": 1.15, "h": 1.15, "^": 1.15, "v": 1.15, "<": 1.15, ">": 1.15}
LineStyle = str | tuple[float, tuple[float, ...]]
LINE_STYLES: tuple[LineStyle, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
BAND = "#DEDEDE"
MUTED = "#5A5A5A"
SEQUENTIAL_MAP = "cividis_r"

RC: dict[Any, Any] = {
    "font.family": FONT_FAMILY,
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#EBEBEB",
    "grid.linewidth": 0.6,
    "axes.linewidth": 0.7,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.5,
    "hatch.linewidth": 0.6,
    "figure.dpi": DRAWING_DPI,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    "path.simplify": False,
    "text.parse_math": False,
}

P = ParamSpec("P")
R = TypeVar("R")


def styled(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function under these parameters, whatever the process has set."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        with matplotlib.rc_context():
            matplotlib.rcdefaults()
            matplotlib.rcParams.update(RC)
            return function(*args, **kwargs)

    return wrapper


def new_figure(height: float, width: float = DOUBLE_COLUMN_IN) -> Figure:
    """Empty figure of this size (inches) that arranges its parts by itself."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def ink_on(share: float) -> str:
    """Black or white, whichever is read on the heat maps' colour at this share (0-1) of its range."""
    red, green, blue, _ = colormaps[SEQUENTIAL_MAP](share)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.45 else "white"


@dataclass(frozen=True)
class SeriesStyle:
    """Colour, marker and line style of one series."""

    colour: str
    marker: str
    line_style: LineStyle

    @property
    def marker_size(self) -> float:
        return float(RC["lines.markersize"]) * MARKER_SCALE.get(self.marker, 1.0)

    def line(self, **changes: Any) -> dict[str, Any]:
        """Keywords of a line with markers."""
        return {
            "color": self.colour,
            "marker": self.marker,
            "markersize": self.marker_size,
            "markeredgewidth": 0,
            "linestyle": self.line_style,
            **changes,
        }


def series_styles(names: Iterable[str]) -> dict[str, SeriesStyle]:
    """One style per name, in order; 77 pairs of colour and marker before one repeats."""
    return {
        name: SeriesStyle(
            COLOURS[i % len(COLOURS)],
            MARKERS[i % len(MARKERS)],
            LINE_STYLES[i // len(COLOURS) % len(LINE_STYLES)],
        )
        for i, name in enumerate(names)
    }
