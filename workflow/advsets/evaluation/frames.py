"""Rows to frames with the dtypes of a declared table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from advsets.io import check_frame, polars_dtype
from advsets.tables import TABLES


def table_frame(name: str, rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Frame of table `name`, NaN as null, sorted by key and checked."""
    table = TABLES[name]
    schema = {c.name: polars_dtype(c) for c in table.columns}
    values = {key: [row[key] for row in rows] for key in schema} if (rows := list(rows)) else {}
    frame = pl.DataFrame(values, schema=schema, strict=False).with_columns(pl.col(pl.Float64).fill_nan(None))
    return check_frame(frame, table).sort(list(table.key))
