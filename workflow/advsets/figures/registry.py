"""Draw a figure by name, and save it.

A figure is one row of `config/figures.yaml` and one module of the same name in this package
with `draw(tables, context) -> (figure, data)`; `data` is what the figure shows, row by row.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from advsets.errors import UserError
from advsets.figures.context import FigureContext
from advsets.figures.style import styled
from advsets.io import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(name: str, tables: Mapping[str, pl.DataFrame], context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Figure `name` and the rows it shows.

    Raises
    ------
    UserError
        If there is no such figure.
    """
    module = f"{__package__}.{name}"
    if not name.isidentifier() or find_spec(module) is None or not hasattr(importlib.import_module(module), "draw"):
        raise UserError(
            f"config/figures.yaml: figure {name!r} has no module; allowed: the name of a file in advsets/figures"
            f" with a function `draw`; add {name}.py there or remove the row"
        )
    figure, data = importlib.import_module(module).draw(tables, context)
    return figure, data


@styled
def save(figure: Figure, data: pl.DataFrame, stem: str | Path) -> list[Path]:
    """Write `stem`.pdf, .png and .csv atomically; equal figures give equal bytes."""
    paths = [Path(f"{stem}.{kind}") for kind in ("pdf", "png", "csv")]
    with atomic_path(paths[0]) as temporary:
        figure.savefig(temporary, format="pdf", metadata={"Creator": "advsets", "CreationDate": None})
    with atomic_path(paths[1]) as temporary:
        figure.savefig(temporary, format="png", metadata={"Software": "advsets"})
    with atomic_path(paths[2]) as temporary:
        data.write_csv(temporary)
    return paths
