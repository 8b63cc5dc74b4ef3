"""Read and write tables: checked against `advsets.tables`, sorted by key, renamed into place."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advsets.errors import UserError, allowed
from advsets.tables import TABLES, Column, Table

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa


# Fixed, or polars would choose it by the number of threads and so change the bytes of the file.
_ROWS_PER_GROUP = 131_072
_OS_ERROR = re.compile(r"\(os error (\d+)\)")


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Temporary path beside `path`, renamed into place on success and removed on failure.

    Raises
    ------
    OSError
        If the disk fails, naming `path`: also where a writer in Rust (polars, safetensors)
        hides it in an error of its own, or the system names the temporary file.
    """
    target = Path(path)
    prefix = f".{target.name}.{socket.gethostname()}-{os.getpid()}-"
    temporary = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_orphans(target)
        descriptor, name = tempfile.mkstemp(prefix=prefix, suffix=".part", dir=target.parent)
        os.close(descriptor)
        temporary = Path(name)
        temporary.chmod(0o666 & ~_umask())
        yield temporary
        os.replace(temporary, target)
    except Exception as error:
        code, named = _os_error_code(error), getattr(error, "filename", None)
        if code is None or not (named is None or Path(os.fsdecode(named)).name.startswith(prefix)):
            raise
        raise OSError(code, os.strerror(code), str(target)) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _remove_orphans(target: Path) -> None:
    """Remove temporary files of `target` whose process on this host was killed."""
    start = f".{target.name}.{socket.gethostname()}-"
    for path in target.parent.iterdir():
        if path.name.startswith(start) and path.name.endswith(".part"):
            owner = path.name[len(start) :].split("-")[0]
            if owner.isdigit() and not Path(f"/proc/{owner}").exists() and Path("/proc/self").exists():
                path.unlink(missing_ok=True)


def _os_error_code(error: Exception) -> int | None:
    if isinstance(error, OSError) and error.errno:
        return error.errno
    found = _OS_ERROR.search(str(error))
    return int(found.group(1)) if found else None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write UTF-8 text atomically; bytes of file names that are no UTF-8 become escapes (\\udc..)."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write JSON atomically, with sorted keys and two spaces of indent."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


class RepeatedKeyError(ValueError):
    """A key stands twice in an object: one of its values would be lost."""

    def __init__(self, key: str) -> None:
        super().__init__(f"key {key!r} stands twice in an object")
        self.key = key


def parse_json(text: str) -> Any:
    """Value of JSON text; ValueError for whatever is wrong with it, also for brackets nested too deep.

    Raises
    ------
    RepeatedKeyError
        If a key stands twice in an object, where JSON readers keep the last value and say nothing.
    """
    try:
        return json.loads(text, object_pairs_hook=object_of)
    except RecursionError:
        raise ValueError("brackets are nested too deep") from None


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Pairs as a mapping; `RepeatedKeyError` if a key stands twice."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise RepeatedKeyError(next(name for name, n in Counter(name for name, _ in pairs).items() if n > 1))
    return made


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read JSON; a file that holds none raises `UserError` with the line and column."""
    try:
        return parse_json(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
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
    with atomic_path(path) as temporary, temporary.open("wb") as handle:
        checked.write_parquet(handle, compression="zstd", statistics=True, row_group_size=_ROWS_PER_GROUP)


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


def _dtype_matches(dtype: object, wanted: str) -> bool:
    import polars as pl

    if wanted == "vector":
        return isinstance(dtype, (pl.Array, pl.List)) and dtype.inner in (pl.Float32(), pl.Float16())
    if wanted == "list<vector>":
        return isinstance(dtype, (pl.Array, pl.List)) and _dtype_matches(dtype.inner, "vector")
    return bool(dtype == polars_dtype(Column("", wanted, "")))


def read_table(path: str | os.PathLike[str], name: str, columns: list[str] | None = None) -> pl.DataFrame:
    """Read a Parquet table and check that the declared columns are there, with their dtypes.

    Raises
    ------
    UserError
        If the file is missing or not Parquet, or a column is missing or of another dtype.
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
    try:
        with Path(path).open("rb") as handle:
            frame = pl.read_parquet(handle, columns=wanted)
    except pl.exceptions.ComputeError as error:
        raise UserError(f"{path}: not a readable Parquet file ({error}); write it again") from None
    for column in table.columns:
        if column.name in wanted and not _dtype_matches(frame.schema[column.name], column.dtype):
            found = frame.schema[column.name]
            raise UserError(f"{path}: column {column.name!r} is {found}; allowed: {column.dtype}; convert the column")
    return frame.select(wanted)


def parquet_schema(path: str | os.PathLike[str]) -> pa.Schema:
    """Schema of a Parquet file; a missing or broken file raises `UserError`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_file(path, "a Parquet file")
    try:
        with arrow_file(path) as file:
            return pq.read_schema(file)
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from None
        reason = str(error).split(". ")[0].rstrip(".\n")
        raise UserError(f"{path}: not a readable Parquet file ({reason}); write it again") from None


def check_file(path: str | os.PathLike[str], wanted: str) -> None:
    """Raise `UserError` if `path` is no file; `wanted` says what it should be."""
    if Path(path).is_dir():
        raise UserError(f"{path}: it is a folder; give the path of {wanted}")
    if not Path(path).exists():
        raise UserError(f"{path}: no such file; give the path of {wanted}")
    if not Path(path).is_file():
        raise UserError(f"{path}: it is a pipe or device, not a file; give the path of {wanted}")


def local_path(text: str, where: str) -> Path:
    """Absolute path with environment variables and `~` expanded; an unset variable raises `UserError`."""
    expanded = os.path.expandvars(text)
    unset = re.findall(r"\$\{?(\w+)\}?", expanded)
    if unset:
        raise UserError(
            f"{where}: {text}: the environment variable {unset[0]} is not set; set it to the folder of the data"
        )
    return Path(expanded).expanduser().absolute()


def readable(path: str | os.PathLike[str]) -> str:
    """Name of a file as text for tables and records: read as UTF-8 in any locale, other bytes as escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def arrow_file(path: str | os.PathLike[str], mode: str = "rb") -> pa.NativeFile:
    """Open a file for pyarrow, which by itself takes only names that are UTF-8."""
    import pyarrow as pa

    return pa.OSFile(os.fsencode(path), mode)
