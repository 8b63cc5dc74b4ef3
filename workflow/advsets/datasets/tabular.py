"""Read rows from JSONL, JSON, CSV, TSV and Parquet files, each also compressed with gzip.

Conventions
-----------
The suffix decides the format. Text is UTF-8, with or without a byte-order mark; lines end with
LF or CRLF. CSV quotes as usual (a quoted field may hold commas and line ends); in TSV a quote
is a character like any other, and a field holds neither tab nor line end, as in GLUE's files.
Values of CSV and TSV are strings. A row's number is its line (CSV: the line where it starts).
Byte columns of Parquet and saved folders are text where every value is UTF-8, and stay bytes else.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from json import JSONDecodeError
from pathlib import Path
from typing import IO, Any, BinaryIO, TextIO, cast

from advsets.datasets.raw import RawTable
from advsets.errors import UserError, allowed
from advsets.io import parse_json

csv.field_size_limit(2**31 - 1)


def read_rows(path: Path, wanted: Collection[str]) -> RawTable:
    """Table of a file, with the `wanted` columns of those it has.

    Raises
    ------
    UserError
        With file and line, when the file is missing, of an unknown format, or broken.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file; correct the path in `source` of the data set")
    with _readable(path):
        return _format(path)(path, frozenset(wanted))


def read_label_file(path: Path) -> RawTable:
    """One label a line, as column `label`; empty lines at the end do not count."""
    if not path.is_file():
        raise UserError(f"{path}: no such file; correct the path in `source` of the data set")
    with _readable(path), _text(path) as handle:
        labels = [line.strip() for line in handle.read().rstrip().split("\n")]
    return RawTable(str(path), {"label": labels}, range(1, len(labels) + 1), ["label"], "line")


def read_text(path: Path) -> str:
    """Whole text of a file, also of one compressed with gzip; faults as those of `read_rows`."""
    with _readable(path), _text(path) as handle:
        return handle.read()


def read_json(path: Path) -> Any:
    """Value of a JSON file, also of one compressed with gzip; faults as those of `read_rows`."""
    return _parsed(read_text(path), str(path))


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Number and value of each line of a JSONL file, also of one compressed with gzip, one by one.

    Empty lines are passed over; faults are those of `read_rows`.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file; correct the path in `source` of the data set")
    with _readable(path), _text(path) as handle:
        for number, line in enumerate(handle, start=1):
            if line.strip():
                yield number, _parsed(line, f"{path}, line {number}")


def is_table(name: str) -> bool:
    """Whether the name's suffix is one that `read_rows` knows."""
    return _suffix(Path(name)) in _FORMATS


def _suffix(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _format(path: Path) -> Callable[[Path, frozenset[str]], RawTable]:
    if not is_table(path.name):
        raise UserError(
            f"{path}: found a file that ends in {path.suffix!r}; allowed: {allowed(_FORMATS)}, each also with .gz;"
            " rename or convert it"
        )
    return _FORMATS[_suffix(path)]


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Faults of encoding and compression as one line."""
    try:
        yield
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise UserError(f"{path}: holds the byte 0x{byte:02x}, which is not UTF-8; convert the file to UTF-8") from None
    except gzip.BadGzipFile as error:
        if _starts_as_gzip(path):
            reason = "other bytes follow its end" if str(error).startswith("Not a gzipped file") else str(error)
            raise UserError(f"{path}: the gzip file is damaged ({reason}); make or fetch it again") from None
        raise UserError(
            f"{path}: ends in .gz but is not a gzip file; compress it, or drop the .gz of its name"
        ) from None
    except (EOFError, zlib.error):
        raise UserError(f"{path}: the gzip file is cut off or damaged; make or fetch it again") from None


def _starts_as_gzip(path: Path) -> bool:
    with path.open("rb") as handle:
        return handle.read(2) == b"\x1f\x8b"


def _bytes(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb"))


def _text(path: Path) -> TextIO:
    """Text of a file, split at LF only."""
    return io.TextIOWrapper(cast(IO[bytes], _bytes(path)), encoding="utf-8-sig", newline="\n")


def _jsonl(path: Path, wanted: frozenset[str]) -> RawTable:
    with _text(path) as handle:
        numbered = ((n, line) for n, line in enumerate(handle, start=1) if line.strip())
        return _records(path, ((n, _parsed(line, f"{path}, line {n}")) for n, line in numbered), wanted, "line")


def _json(path: Path, wanted: frozenset[str]) -> RawTable:
    """An array of objects; a file with one object a line is read as JSONL."""
    with _text(path) as handle:
        start = handle.read(4096).lstrip()
        if start.startswith("{"):
            return _jsonl(path, wanted)
        handle.seek(0)
        rows = _parsed(handle.read() or "[]", str(path))
    if not isinstance(rows, list):
        raise UserError(
            f"{path}: found a JSON {type(rows).__name__}; allowed: an array of objects, or one object a line"
        )
    return _records(path, enumerate(rows, start=1), wanted, "row")


def _parsed(text: str, where: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        at = f" at character {error.pos}" if isinstance(error, JSONDecodeError) else ""
        reason = f"{getattr(error, 'msg', None) or error}{at}"
        raise UserError(f"{where}: not valid JSON ({reason}); mend it") from None


def _records(path: Path, rows: Iterator[tuple[int, Any]] | Any, wanted: frozenset[str], unit: str) -> RawTable:
    """Table of objects; a key that some objects lack is null there."""
    columns: dict[str, list[Any]] = {}
    numbers: list[int] = []
    found: dict[str, None] = {}
    for number, record in rows:
        if not isinstance(record, dict):
            raise UserError(
                f"{path}, {unit} {number}: found a {type(record).__name__}; allowed: an object; mend the row"
            )
        found.update(dict.fromkeys(record))
        for name in wanted & record.keys() - columns.keys():
            columns[name] = [None] * len(numbers)
        for name, column in columns.items():
            column.append(record.get(name))
        numbers.append(number)
    return RawTable(str(path), columns, numbers, list(found), unit)


def _csv(path: Path, wanted: frozenset[str]) -> RawTable:
    with io.TextIOWrapper(cast(IO[bytes], _bytes(path)), encoding="utf-8-sig", newline="") as handle:
        reader = csv.reader(handle, strict=True)
        return _delimited(path, _csv_rows(path, reader), wanted)


def _csv_rows(path: Path, reader: Any) -> Iterator[tuple[int, list[str]]]:
    while True:
        start = reader.line_num + 1
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise UserError(f"{path}, line {start}: not valid CSV ({error}); mend the quotes of the row") from None
        if fields is None:
            return
        if fields:
            yield start, fields


def _tsv(path: Path, wanted: frozenset[str]) -> RawTable:
    with _text(path) as handle:
        lines = ((n, line.rstrip("\n").removesuffix("\r")) for n, line in enumerate(handle, start=1))
        return _delimited(path, ((n, line.split("\t")) for n, line in lines if line), wanted)


def _delimited(path: Path, rows: Iterator[tuple[int, list[str]]], wanted: frozenset[str]) -> RawTable:
    """Table whose first row is the header."""
    _, header = next(rows, (0, []))
    if not header:
        raise UserError(f"{path}: the file is empty; give one with a header and rows")
    _refuse_repeats(path, header, wanted)
    positions = {name: header.index(name) for name in header if name in wanted}
    columns: dict[str, list[Any]] = {name: [] for name in positions}
    numbers: list[int] = []
    for number, fields in rows:
        if len(fields) != len(header):
            raise UserError(
                f"{path}, line {number}: found {len(fields)} fields; allowed: {len(header)}, as in the header;"
                " mend the row (a field that holds the delimiter must be quoted in CSV, and cannot stand in TSV)"
            )
        for name, position in positions.items():
            columns[name].append(fields[position])
        numbers.append(number)
    return RawTable(str(path), columns, numbers, header, "line")


def _refuse_repeats(path: Path, header: list[str], wanted: frozenset[str]) -> None:
    twice = sorted({name for name in header if header.count(name) > 1} & wanted)
    if twice:
        raise UserError(f"{path}: column {twice[0]!r} stands twice in the header; rename one of them")


def _parquet(path: Path, wanted: frozenset[str]) -> RawTable:
    import pyarrow as pa
    import pyarrow.parquet as pq

    source: Any = path
    if path.name.lower().endswith(".gz"):
        with _bytes(path) as handle:
            source = io.BytesIO(handle.read())
    try:
        file = pq.ParquetFile(source)
        names = list(file.schema_arrow.names)
        _refuse_repeats(path, names, wanted)
        table = file.read(columns=[n for n in names if n in wanted])
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise UserError(f"{path}: not a readable Parquet file ({str(error).split('.')[0]}); write it again") from None
    return arrow_table(str(path), table, file.metadata.num_rows, names)


def arrow_table(where: str, table: Any, n_rows: int, found: list[str]) -> RawTable:
    """Table of an Arrow table's columns; mappings in map columns become dicts, UTF-8 bytes text."""
    columns = {n: _as_text(table.column(n)) for n in table.column_names}
    return RawTable(where, columns, range(1, n_rows + 1), found)


def _as_text(column: Any) -> list[Any]:
    """Values of an Arrow column; those of a column of bytes as text, if all of them are UTF-8."""
    values: list[Any] = column.to_pylist()
    if "binary" not in str(column.type):
        return values
    try:
        return [_decoded(value) for value in values]
    except UnicodeDecodeError:
        return values


def _decoded(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if isinstance(value, list):
        return [_decoded(entry) for entry in value]
    return {_decoded(k): _decoded(v) for k, v in value.items()} if isinstance(value, dict) else value


_FORMATS: dict[str, Callable[[Path, frozenset[str]], RawTable]] = {
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".json": _json,
    ".csv": _csv,
    ".tsv": _tsv,
    ".parquet": _parquet,
}
