"""Reads a file of predictions that others made: CSV, TSV, JSON, JSONL or Parquet, each also as .gz.

Conventions
-----------
Without an id column the file is one JSON object, whose keys are the ids. Its values are labels or
answers, or records that hold the named columns. A key that stands twice is refused, where JSON
would let the last one win.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from advsets.datasets.columns import column_texts
from advsets.datasets.raw import RawTable
from advsets.datasets.tabular import is_table, read_json, read_rows
from advsets.errors import UserError, allowed
from advsets.io import check_file

KEYS = "keys of the JSON object"
VALUES = "values of the JSON object"


def read_file(path: Path, columns: Mapping[str, Any]) -> RawTable:
    """Table with the named columns; with `KEYS` (and `VALUES`, if they are no records) where `columns.id` is null.

    Parameters
    ----------
    columns : mapping
        Ours (`id`, `predicted_label`, `probabilities`, `answer`) to the file's; null where it has none.

    Raises
    ------
    UserError
        If the file cannot be read as what its name says, holds no rows, or lacks a column.
    """
    check_file(path, "a file of predictions")
    wanted = [name for spec in columns.values() for name in ([spec] if isinstance(spec, str) else spec or [])]
    table = _object(path, wanted) if columns["id"] is None else read_rows(path, wanted)
    if table.n_rows == 0:
        raise UserError(f"{path}: holds no predictions; allowed: one row per example; write the file again")
    for name in wanted:
        if name not in table.columns:
            raise UserError(
                f"{path}: column {name!r} is missing; found: {allowed(table.found, 30) or 'none'}; name one of these,"
                " or add the column"
            )
    return table


def unique_ids(table: RawTable, name: str | None) -> list[str]:
    """Ids of all rows as text; one that is missing or stands twice raises `UserError`."""
    ids = column_texts(table, name or KEYS, "id")
    first: dict[str, int] = {}
    for i, key in enumerate(ids):
        if not key:
            raise UserError(
                f"{table.at(i)}: the id is missing; allowed: an id in every row; fill it, or remove the row"
            )
        if key in first:
            raise UserError(
                f"{table.at(i)}: id {key!r} stands in {table.unit} {table.numbers[first[key]]} too; allowed: one"
                " prediction per example; remove one of them"
            )
        first[key] = i
    return list(first)


def _object(path: Path, wanted: Iterable[str]) -> RawTable:
    name = path.name.lower().removesuffix(".gz")
    if is_table(path.name) and not name.endswith(".json"):
        raise UserError(f"{path}: no id column is named; allowed: null for a JSON object alone; name the column of ids")
    value = read_json(path)
    if not isinstance(value, dict):
        raise UserError(
            f"{path}: found a JSON {type(value).__name__} and no id column is named; allowed: an object of id to"
            " prediction, or rows with a column of ids; name that column"
        )
    columns: dict[str, list[Any]] = {KEYS: list(value)}
    numbers = range(1, len(value) + 1)
    if not any(isinstance(record, dict) for record in value.values()):
        return RawTable(str(path), {**columns, VALUES: list(value.values())}, numbers, [KEYS, VALUES], "entry")
    for number, record in zip(numbers, value.values(), strict=True):
        if not isinstance(record, dict):
            raise UserError(
                f"{path}, entry {number}: found a {type(record).__name__} where others are records; allowed: the same"
                " for all ids; mend the entry"
            )
    found = list(dict.fromkeys(key for record in value.values() for key in record))
    columns |= {key: [record.get(key) for record in value.values()] for key in wanted if key in found}
    return RawTable(str(path), columns, numbers, found, "entry")
