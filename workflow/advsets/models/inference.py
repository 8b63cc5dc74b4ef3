"""Run a checkpoint over many examples: shard by shard, interruptible, results in the order of ids.

Conventions
-----------
A shard is `SHARD_ROWS` examples in the order of `example_id`; batches are made within a shard.
Finished shards wait in a hidden folder beside the output, named by a hash of everything that
decides the result (so never by batch size or device); the next attempt takes them from there.
Ranks take turns with the shards, and the first joins them: the file is the same for any number.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from advsets.io import atomic_path, check_frame
from advsets.models import ranks
from advsets.models.batching import Batch, Tokenised, collate, inference_batches, report_truncated, tokenise
from advsets.models.checkpoint import Checkpoint
from advsets.models.precision import device_errors, finite, half_dtype
from advsets.models.settings import EmbedSettings
from advsets.tables import TABLES

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

SHARD_ROWS = 4096
_LINES = 20


def run_sharded(
    checkpoint: Checkpoint,
    examples: pl.DataFrame,
    out: Path,
    settings: EmbedSettings,
    *,
    device: torch.device,
    table: str,
    compute: Callable[[Batch], Tensor],
    to_arrow: Callable[[pl.DataFrame, NDArray[np.float32], NDArray[np.int64]], pa.Table],
) -> None:
    """Compute one row per sequence of `examples` and write them as table `table`.

    Parameters
    ----------
    compute : callable
        Batch to a tensor of shape (n_sequences, n_values).
    to_arrow : callable
        Examples of a shard, values (n_sequences, n_values) and sequences per example to rows.

    Raises
    ------
    UserError
        If ids repeat or values are not finite.
    """
    examples = examples.sort("example_id")
    data = tokenise(examples, checkpoint.tokenizer, checkpoint.task, settings.max_length)
    report_truncated(data, settings.max_length, table)

    def make(rows: NDArray[np.int64]) -> pa.Table:
        values = _values(checkpoint, data, rows, settings, device, compute)
        return to_arrow(examples.slice(rows[0] if len(rows) else 0, len(rows)), values, data.counts[rows])

    in_shards(examples.height, out, table, _key(checkpoint, examples, data, settings, table), make)


def in_shards(n_rows: int, out: Path, table: str, key: str, make: Callable[[NDArray[np.int64]], pa.Table]) -> None:
    """Write table `table` of `n_rows` examples, made a shard at a time.

    Parameters
    ----------
    key : str
        Hash of everything that decides the result, for file names.
    make : callable
        Positions of a shard's examples, shape (n_examples,), to their rows.
    """
    parts = out.parent / f".{out.name}.{key}.parts"
    for stale in out.parent.glob(f".{out.name}.*.parts"):
        if stale != parts:
            shutil.rmtree(stale, ignore_errors=True)
    parts.mkdir(parents=True, exist_ok=True)
    began, paths = time.perf_counter(), []
    starts = range(0, max(1, n_rows), SHARD_ROWS)
    for number, start in enumerate(starts):
        rows = np.arange(start, min(start + SHARD_ROWS, n_rows))
        path = parts / f"{number:06d}.parquet"
        paths.append(path)
        if number % ranks.n_ranks() == ranks.rank() and not path.is_file():
            with device_errors("tokens_per_batch"):
                shard = make(rows)
            _write_shard(shard, path, table)
            _report(number + 1, len(starts), int(rows[-1]) + 1 if len(rows) else 0, began, table)
    ranks.wait_for_all()
    if not ranks.is_first():
        return
    _join(paths, out)
    shutil.rmtree(parts)


def _key(checkpoint: Checkpoint, examples: pl.DataFrame, data: Tokenised, settings: EmbedSettings, table: str) -> str:
    digest = hashlib.sha256()
    digest.update(f"{checkpoint.content_key} {settings.dtype} {settings.max_length} {table} {SHARD_ROWS}".encode())
    for column in ("example_id", "label", "group_id"):
        digest.update(repr(examples[column].to_list()).encode())
    digest.update(data.tokens.tobytes() + data.starts.tobytes() + data.offsets.tobytes())
    return digest.hexdigest()[:16]


@torch.inference_mode()
def _values(
    checkpoint: Checkpoint,
    data: Tokenised,
    rows: NDArray[np.int64],
    settings: EmbedSettings,
    device: torch.device,
    compute: Callable[[Batch], Tensor],
) -> NDArray[np.float32]:
    """Values of the sequences of `rows`, in their order, shape (n_sequences, n_values)."""
    dtype = half_dtype(checkpoint.description["precision"], device, training=False)
    offsets = data.offsets[rows[0] : rows[-1] + 2] - data.offsets[rows[0]] if len(rows) else np.zeros(1, np.int64)
    values: NDArray[np.float32] | None = None
    for batch_rows in inference_batches(data, rows, settings.tokens_per_batch):
        batch = collate(data, batch_rows, device)
        owners = [data.example_ids[r] for r in batch_rows for _ in range(int(data.counts[r]))]
        result = finite(_bound(compute, batch), owners, dtype, device).cpu().numpy()
        if values is None:
            values = np.empty((int(offsets[-1]), result.shape[1]), np.float32)
        first = batch_rows - rows[0]
        values[np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in first])] = result
    return np.empty((0, checkpoint.classifier.n_features), np.float32) if values is None else values


def _bound(compute: Callable[[Batch], Tensor], batch: Batch) -> Callable[[], Tensor]:
    return lambda: compute(batch)


def _write_shard(shard: pa.Table, path: Path, table: str) -> None:
    import polars as pl
    import pyarrow.parquet as pq

    frame = pl.from_arrow(shard)
    if not isinstance(frame, pl.DataFrame):
        raise TypeError(f"table {table}: a shard is no table")
    check_frame(frame, TABLES[table])
    with atomic_path(path) as temporary:
        pq.write_table(shard, temporary, compression="zstd")


def _join(paths: list[Path], out: Path) -> None:
    """One Parquet file of all shards, a row group each, without holding more than one in memory."""
    import pyarrow.parquet as pq

    with atomic_path(out) as temporary, contextlib.ExitStack() as stack:
        writer: Any = None
        for path in paths:
            shard = pq.read_table(path)
            if writer is None:
                writer = stack.enter_context(pq.ParquetWriter(temporary, shard.schema, compression="zstd"))
            writer.write_table(shard)


def _report(n_shards_done: int, n_shards: int, n_done: int, began: float, what: str) -> None:
    every = max(1, n_shards // _LINES)
    if n_shards_done % every == 0 or n_shards_done == n_shards:
        rate = n_done / max(time.perf_counter() - began, 1e-9)
        ranks.tell(f"{what}: {n_done} examples, {rate:.0f} examples/s")


def lists_of(values: pa.Array, counts: NDArray[np.int64]) -> pa.Array:
    """List array with `counts` values per example."""
    import pyarrow as pa

    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values)
