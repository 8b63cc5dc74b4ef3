"""Reads a user's predictions: CSV, TSV, JSON, JSONL or Parquet, text formats also as .gz.

Conventions
-----------
Ids and labels are compared as strings; a whole number written as 1.0 is 1. JSON is a list of
records or one object of id to label. A null or empty label is a missing prediction.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from advsets.errors import UserError, allowed, describe_os_error

ID_COLUMN = "example_id"
LABEL_COLUMNS = ("predicted_label", "prediction")


def _json(data: bytes) -> pl.DataFrame:
    value = json.loads(data)
    if isinstance(value, dict):
        return pl.DataFrame({ID_COLUMN: list(value), LABEL_COLUMNS[0]: [_text(v) for v in value.values()]})
    if not (isinstance(value, list) and all(isinstance(record, dict) for record in value)):
        raise ValueError("neither a list of records nor an object of id to label")
    return _records(value)


def _jsonl(data: bytes) -> pl.DataFrame:
    records = [json.loads(line) for line in data.splitlines() if line.strip()]
    if not all(isinstance(record, dict) for record in records):
        raise ValueError("a line is not an object")
    return _records(records)


def _records(records: list[dict[str, Any]]) -> pl.DataFrame:
    names = list(dict.fromkeys(name for record in records for name in record))
    return pl.DataFrame({name: pl.Series([_text(r.get(name)) for r in records], dtype=pl.String) for name in names})


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(int(value))
    return None if value is None else str(value)


def _separated(separator: str) -> Callable[[bytes], pl.DataFrame]:
    return lambda data: pl.read_csv(io.BytesIO(data), separator=separator, infer_schema=False)


READERS: dict[str, Callable[[bytes], pl.DataFrame]] = {
    ".csv": _separated(","),
    ".tsv": _separated("\t"),
    ".json": _json,
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".parquet": lambda data: pl.read_parquet(io.BytesIO(data)),
}


def read_predictions(path: Path) -> pl.DataFrame:
    """Columns `example_id` and `predicted_label` (null: no prediction), both strings.

    Raises
    ------
    UserError
        If the file cannot be read as what its name says, lacks a column, has no rows, or
        repeats an id.
    """
    frame = _read(path)
    label_column = next((name for name in LABEL_COLUMNS if name in frame.columns), None)
    if ID_COLUMN not in frame.columns or label_column is None:
        wanted = ID_COLUMN if ID_COLUMN not in frame.columns else LABEL_COLUMNS[0]
        raise UserError(
            f"{path}: column {wanted!r} is missing; found: {allowed(frame.columns) or 'none'};"
            f" allowed: {ID_COLUMN} and {' or '.join(LABEL_COLUMNS)}; rename or add the column"
        )
    frame = frame.select(
        _as_text(frame, ID_COLUMN).alias(ID_COLUMN), _as_text(frame, label_column).alias(LABEL_COLUMNS[0])
    )
    if frame.is_empty():
        raise UserError(f"{path}: no predictions; allowed: one row per example; write the file again")
    _check_ids(frame, path)
    return frame


def _read(path: Path) -> pl.DataFrame:
    suffixes = [s.lower() for s in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    kind = (suffixes[:-1] if packed else suffixes)[-1:]
    if not kind or kind[0] not in READERS:
        raise UserError(f"{path}: unknown kind of file; allowed: {allowed(READERS)}, or .gz of these; convert it")
    if not path.is_file():
        raise UserError(f"{path}: no such file; give the path of a predictions file")
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UserError(describe_os_error(error)) from None
    try:
        data = gzip.decompress(raw) if packed else raw
        return READERS[kind[0]](data)
    except (pl.exceptions.PolarsError, ValueError, OSError, EOFError, zlib.error, RecursionError) as error:
        reason = str(error).split("\n")[0][:200]
        raise UserError(f"{path}: not readable as {path.suffix} ({reason}); write the file again") from None


def _as_text(frame: pl.DataFrame, name: str) -> pl.Series:
    """Column as stripped strings; whole floats as integers, empty strings as null."""
    column = frame[name]
    if column.dtype == pl.Boolean:
        column = column.cast(pl.Int8)
    text = column.cast(pl.String).str.strip_chars()
    return text.str.replace(r"^(-?\d+)\.0+$", "$1").replace("", None)


def _check_ids(frame: pl.DataFrame, path: Path) -> None:
    ids = frame[ID_COLUMN]
    if ids.null_count():
        row = int(ids.is_null().arg_max() or 0)
        raise UserError(f"{path}: row {row + 1}: no example_id; allowed: an id in every row; mend or remove the row")
    repeated = ids.filter(ids.is_duplicated()).unique().sort()
    if len(repeated):
        raise UserError(
            f"{path}: {len(repeated)} repeated example_id: {allowed(repeated.to_list(), 5)};"
            " allowed: one prediction per example; remove the others"
        )
