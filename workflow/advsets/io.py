"""Read and write tables: checked against `advsets.tables`, sorted by key, renamed into place."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advsets.errors import UserError, allowed
from advsets.tables import TABLES, Column, Table

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Temporary path beside `path`, renamed into place on success and removed on failure."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    os.close(descriptor)
    temporary = Path(name)
    temporary.chmod(0o666 & ~_umask())
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write UTF-8 text atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write JSON atomically, with sorted keys and two spaces of indent."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read JSON; a file that is none raises `UserError` with the line."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not valid JSON ({error}); mend the file or delete it and run again") from None


def write_table(frame: pl.DataFrame, path: str | os.PathLike[str], name: str) -> None:
    """Check `frame` against table `name`, sort it by key and write it as Parquet.

    Raises
    ------
    ValueError
        If columns, dtypes, nulls or key uniqueness are not as declared: a fault of ours.
    """
    table = TABLES[name]
    checked = check_frame(frame, table).sort(list(table.key))
    with atomic_path(path) as temporary:
        checked.write_parquet(temporary, compression="zstd", statistics=True)


def check_frame(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """`frame` with the declared columns, in order; raises ValueError where it differs."""
    found, wanted = set(frame.columns), set(table.column_names)
    if found != wanted:
        raise ValueError(f"table {table.name}: missing {sorted(wanted - found)}, unknown {sorted(found - wanted)}")
    frame = frame.select(table.column_names)
    for column in table.columns:
        dtype, nulls = frame.schema[column.name], frame[column.name].null_count()
        if not _dtype_matches(dtype, column.dtype):
            raise ValueError(f"table {table.name}: column {column.name} is {dtype}, wanted {column.dtype}")
        if nulls and not column.nullable:
            raise ValueError(f"table {table.name}: column {column.name} has {nulls} nulls")
    if frame.select(table.key).is_duplicated().any():
        raise ValueError(f"table {table.name}: key {table.key} is not unique")
    return frame


def empty_frame(name: str) -> pl.DataFrame:
    """Table `name` with no rows (tables without vector columns)."""
    import polars as pl

    return pl.DataFrame(schema={c.name: polars_dtype(c) for c in TABLES[name].columns})


def polars_dtype(column: Column) -> pl.DataType:
    """Polars dtype of a declared column that is not a vector."""
    import polars as pl

    plain = {"string": pl.String(), "bool": pl.Boolean(), "int64": pl.Int64(), "float64": pl.Float64()}
    if column.dtype.startswith("list<"):
        return pl.List(plain[column.dtype[5:-1]])
    return plain[column.dtype]


def _dtype_matches(dtype: pl.DataType, wanted: str) -> bool:
    import polars as pl

    if wanted == "vector":
        return isinstance(dtype, (pl.Array, pl.List)) and dtype.inner in (pl.Float32(), pl.Float16())
    if wanted == "list<vector>":
        return isinstance(dtype, (pl.Array, pl.List)) and _dtype_matches(dtype.inner, "vector")
    return dtype == polars_dtype(Column("", wanted, ""))


def read_table(path: str | os.PathLike[str], name: str, columns: list[str] | None = None) -> pl.DataFrame:
    """Read a Parquet table and check that the declared columns are there, with their dtypes.

    Raises
    ------
    UserError
        If the file is missing, not Parquet, or lacks a column.
    """
    import polars as pl

    table = TABLES[name]
    wanted = columns or table.column_names
    schema = parquet_schema(path)
    for column in table.columns:
        if column.name not in wanted:
            continue
        if column.name not in schema.names:
            raise UserError(
                f"{path}: column {column.name!r} is missing; found: {allowed(schema.names)};"
                f" allowed: a table with columns {allowed(wanted, 30)}; rename or add the column"
            )
    frame = pl.read_parquet(path, columns=wanted)
    for column in table.columns:
        if column.name in wanted and not _dtype_matches(frame.schema[column.name], column.dtype):
            raise UserError(
                f"{path}: column {column.name!r} is {frame.schema[column.name]}; allowed: {column.dtype}; convert the column"
            )
    return frame.select(wanted)


def parquet_schema(path: str | os.PathLike[str]) -> pa.Schema:
    """Schema of a Parquet file; a missing or broken file raises `UserError`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not Path(path).is_file():
        raise UserError(f"{path}: no such file; give the path of a Parquet file")
    try:
        return pq.read_schema(path)
    except (pa.ArrowInvalid, OSError) as error:
        reason = str(error).split(".")[0]
        raise UserError(f"{path}: not a readable Parquet file ({reason}); write it again") from None
