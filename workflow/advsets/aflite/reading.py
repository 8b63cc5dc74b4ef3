"""Read embeddings from Parquet into one float32 matrix, a batch of rows at a time.

Conventions
-----------
Accepted are the tables `embeddings` and `candidate_embeddings` and users' own files:
`example_id` and `label` as strings or integers, `embedding` as a list (fixed size or not) of
float16, float32 or float64, `candidates` as a list of such vectors, optional `group_id`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from advsets.aflite.rawsplit import RawSplit, canonical_order, check_labels, spans
from advsets.errors import UserError, allowed
from advsets.io import arrow_file, parquet_schema

BATCH_VALUES = 2**18
"""Vector elements read at a time: decoding a batch takes about ten times its size."""
BUFFER_BYTES = 2**20
NAME_TYPES = "string or integer"
VECTOR_TYPES = "a list of float16, float32 or float64"


def read_split(path: Path) -> RawSplit:
    """Read and check one Parquet file of embeddings.

    Peak memory is the matrix and one batch: there is no copy of the whole in another type.

    Raises
    ------
    UserError
        Naming file and column or row, if anything in it cannot be used.
    """
    where = str(path)
    schema = parquet_schema(path)
    vectors = _vector_column(where, schema)
    names = ["example_id", "label", *(["group_id"] if "group_id" in schema.names else [])]
    with arrow_file(path) as source:
        file = pq.ParquetFile(source, buffer_size=BUFFER_BYTES, pre_buffer=False)
        small = file.read(columns=names)
        ids = _strings(where, "example_id", small)
        order = canonical_order(where, ids)
        sorted_ids = [str(ids[i]) for i in order]
        labels = check_labels(where, sorted_ids, _pick(_strings(where, "label", small), order))
        groups = _pick(_strings(where, "group_id", small), order) if "group_id" in names else None
        if vectors == "embedding":
            x, offsets = _read_vectors(where, file, order, ids), None
        else:
            x, offsets = _read_candidates(where, file, order, ids)
    raw = RawSplit(where, order, sorted_ids, labels, groups, x, offsets)
    raw.check()
    pa.default_memory_pool().release_unused()
    return raw


def _vector_column(where: str, schema: pa.Schema) -> str:
    for name in ("example_id", "label"):
        if name not in schema.names:
            raise _missing(where, repr(name), schema)
    found = [name for name in ("embedding", "candidates") if name in schema.names]
    if not found:
        raise _missing(where, "'embedding' (or 'candidates' for multiple choice)", schema)
    if len(found) == 2:
        raise UserError(
            f"{where}: it has both an 'embedding' and a 'candidates' column; allowed: 'embedding' for classification,"
            " 'candidates' for multiple choice; drop one of them"
        )
    vector = schema.field(found[0]).type
    if found[0] == "candidates":
        vector = vector.value_type if _is_list(vector) else pa.null()
    if not _is_list(vector) or not pa.types.is_floating(vector.value_type):
        wanted = VECTOR_TYPES if found[0] == "embedding" else f"a list of vectors, each {VECTOR_TYPES}"
        raise UserError(
            f"{where}: column {found[0]!r} is {schema.field(found[0]).type}; allowed: {wanted}; convert the column"
        )
    return found[0]


def _missing(where: str, column: str, schema: pa.Schema) -> UserError:
    return UserError(
        f"{where}: column {column} is missing; found: {allowed(schema.names)}; allowed: example_id, label,"
        " embedding (or candidates) and optionally group_id; add or rename the column"
    )


def _is_list(dtype: pa.DataType) -> bool:
    return pa.types.is_list(dtype) or pa.types.is_large_list(dtype) or pa.types.is_fixed_size_list(dtype)


def _strings(where: str, name: str, table: pa.Table) -> list[str | None]:
    """Values of a string or integer column as strings, nulls as None."""
    column, dtype = table[name], table[name].type
    if pa.types.is_dictionary(dtype):
        column, dtype = column.cast(dtype.value_type), dtype.value_type
    if pa.types.is_integer(dtype):
        return [None if value is None else str(value) for value in column.to_pylist()]
    if pa.types.is_string(dtype) or pa.types.is_large_string(dtype) or pa.types.is_null(dtype):
        return column.to_pylist()
    raise UserError(f"{where}: column {name!r} is {dtype}; allowed: {NAME_TYPES}; convert the column")


def _pick(values: list[str | None], order: NDArray[np.int64]) -> list[str | None]:
    return [values[i] for i in order]


def _batches(file: pq.ParquetFile, column: str) -> Iterator[tuple[int, pa.Array]]:
    """First row and values of each batch, in file order."""
    first, meta = 0, file.metadata
    groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
    chunks = [group.column(i) for group in groups for i in range(group.num_columns)]
    n_values = sum(chunk.num_values for chunk in chunks if chunk.path_in_schema.split(".")[0] == column)
    n_rows = max(1, BATCH_VALUES * meta.num_rows // max(1, n_values))
    for batch in file.iter_batches(batch_size=n_rows, columns=[column], use_threads=False):
        yield first, batch.column(0)
        first += len(batch)


def _read_vectors(
    where: str, file: pq.ParquetFile, order: NDArray[np.int64], ids: list[str | None]
) -> NDArray[np.float32]:
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    x: NDArray[np.float32] | None = None
    for first, column in _batches(file, "embedding"):
        lengths = _lengths(where, column, ids[first : first + len(column)])
        width = int(lengths[0]) if x is None else x.shape[1]
        if (lengths != width).any():
            row = first + int(np.argmax(lengths != width))
            raise _ragged(where, str(ids[row]), int(lengths[row - first]), width)
        if x is None:
            x = np.empty((len(order), width), dtype=np.float32)
        x[place[first : first + len(column)]] = _values(column).reshape(len(column), width)
    assert x is not None
    return x


def _read_candidates(
    where: str, file: pq.ParquetFile, order: NDArray[np.int64], ids: list[str | None]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    counts = np.empty_like(order)
    width: int | None = None
    for first, column in _batches(file, "candidates"):
        counts[first : first + len(column)] = _lengths(where, column, ids[first : first + len(column)])
        owners = np.repeat(np.arange(first, first + len(column)), counts[first : first + len(column)])
        lengths = _lengths(where, column.flatten(), [ids[i] for i in owners])
        if len(lengths) == 0:
            continue
        width = int(lengths[0]) if width is None else width
        if (lengths != width).any():
            bad = int(np.argmax(lengths != width))
            raise _ragged(where, str(ids[owners[bad]]), int(lengths[bad]), width)
    offsets = np.concatenate([[0], np.cumsum(counts[order])])
    starts = np.empty_like(order)
    starts[order] = offsets[:-1]
    x = np.empty((int(offsets[-1]), width or 0), dtype=np.float32)
    for first, column in _batches(file, "candidates"):
        rows = spans(starts[first : first + len(column)], counts[first : first + len(column)])
        x[rows] = _values(column.flatten()).reshape(len(rows), x.shape[1])
    return x, offsets


def _lengths(where: str, column: pa.Array, ids: list[str | None]) -> NDArray[np.int64]:
    """Elements per list; a null list raises `UserError`."""
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise UserError(f"{where}: example {ids[row]!r} has no vector; allowed: one in every row; embed it or drop it")
    if pa.types.is_fixed_size_list(column.type):
        return np.full(len(column), column.type.list_size, dtype=np.int64)
    return np.diff(np.from_dlpack(column.offsets)).astype(np.int64)


def _values(column: pa.Array) -> NDArray[np.floating]:
    """Elements of all lists, one after the other; null elements become nan and fail the check for finite values."""
    values = column.flatten()
    if values.null_count:
        values = pc.fill_null(values, float("nan"))
    with np.errstate(over="ignore"):
        return np.from_dlpack(values).astype(np.float32, copy=False)


def _ragged(where: str, example_id: str, found: int, wanted: int) -> UserError:
    return UserError(
        f"{where}: example {example_id!r} has a vector of {found} elements, the first example one of {wanted};"
        " allowed: one length throughout; embed all rows with one model"
    )
