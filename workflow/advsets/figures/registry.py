"""Figures by name: which tables each needs, how it is drawn, how it is saved.

A figure is one row of `config/figures.yaml` and one module of the same name in this package
with `draw(tables, context) -> (figure, data)`; `data` is what the figure shows, row by row.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from advsets.errors import UserError, allowed
from advsets.figures.context import FigureContext
from advsets.figures.style import styled
from advsets.io import atomic_path
from advsets.tables import TABLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILTER_TABLES = ("rounds", "round_scores", "retained")
"""Tables of one filter run each; `inputs.filter_table` puts them together."""
EVALUATION_TABLES = tuple(
    name for name, table in TABLES.items() if any(column.name == "dataset" for column in table.columns)
)
"""Tables of one data set each; `inputs.evaluation_table` puts them together."""
_KEYS = ("tables", "caption", "category")


@dataclass(frozen=True)
class FigureRow:
    """One figure: the tables it needs, its caption template (file name) and heading in the report."""

    name: str
    tables: tuple[str, ...]
    caption: str
    category: str

    @property
    def evaluation_tables(self) -> list[str]:
        return [name for name in self.tables if name in EVALUATION_TABLES]

    @property
    def filter_tables(self) -> list[str]:
        return [name for name in self.tables if name in FILTER_TABLES]


def load_registry(path: str | Path) -> dict[str, FigureRow]:
    """Rows of a figures file, by name.

    Raises
    ------
    UserError
        If a key is missing or unknown, a table does not exist, or a figure has no module.
    """
    import yaml

    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not valid YAML ({error}); mend the file") from None
    if not isinstance(content, dict) or not content:
        raise UserError(f"{path}: no figures found; allowed: one key per figure with {allowed(_KEYS)}; add a row")
    return {str(name): _row(str(name), row, path) for name, row in content.items()}


def _row(name: str, row: object, path: str | Path) -> FigureRow:
    if not isinstance(row, dict) or set(row) != set(_KEYS):
        found = allowed(row) if isinstance(row, dict) else repr(row)
        raise UserError(f"{path}: figure {name!r} has keys {found}; allowed: exactly {allowed(_KEYS)}; mend the row")
    tables = row["tables"] if isinstance(row["tables"], list) else [row["tables"]]
    known = (*EVALUATION_TABLES, *FILTER_TABLES)
    for table in tables:
        if table not in known:
            raise UserError(
                f"{path}: figure {name!r} asks for table {table!r}; allowed: {allowed(known, 20)}; mend `tables`"
            )
    if not name.isidentifier() or find_spec(f"{__package__}.{name}") is None:
        raise UserError(
            f"{path}: figure {name!r} has no module; allowed: the name of a file in advsets/figures with a"
            f" function `draw`; add {name}.py or remove the row"
        )
    return FigureRow(name, tuple(tables), str(row["caption"]), str(row["category"]))


def draw(name: str, tables: Mapping[str, pl.DataFrame], context: FigureContext) -> tuple[Figure, pl.DataFrame]:
    """Figure `name` and the rows it shows."""
    figure, data = importlib.import_module(f"{__package__}.{name}").draw(tables, context)
    return figure, data


@styled
def save(figure: Figure, data: pl.DataFrame, stem: str | Path) -> list[Path]:
    """Write `stem`.pdf, .png and .csv atomically; equal figures give equal bytes."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # arranged once, alike in both formats
    paths = [Path(f"{stem}.{kind}") for kind in ("pdf", "png", "csv")]
    with atomic_path(paths[0]) as temporary:
        figure.savefig(temporary, format="pdf", metadata={"Creator": "advsets", "CreationDate": None})
    with atomic_path(paths[1]) as temporary:
        figure.savefig(temporary, format="png", metadata={"Software": "advsets"})
    with atomic_path(paths[2]) as temporary:
        data.write_csv(temporary)
    return paths
