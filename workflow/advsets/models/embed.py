"""Representations of examples under a fine-tuned adversary.

Conventions
-----------
The representation is the last layer's vector that feeds the head: of the first unmasked
token, the mean over unmasked tokens, or the last unmasked token, as the checkpoint says.
Multiple choice: one vector per candidate, of the context with that candidate.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from advsets.errors import UserError, allowed
from advsets.models.batching import Batch
from advsets.models.checkpoint import load_checkpoint
from advsets.models.classifier import check_length
from advsets.models.inference import lists_of, run_sharded
from advsets.models.precision import prepare_device
from advsets.models.settings import EmbedSettings
from advsets.registry import MULTIPLE_CHOICE

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from torch import Tensor

DTYPES = ("float32", "float16")


def embed(checkpoint: Path, examples: pl.DataFrame, out: Path, settings: EmbedSettings, *, device: str) -> None:
    """Write table `embeddings`, or `candidate_embeddings` for multiple choice.

    Parameters
    ----------
    checkpoint : Path
        Folder that `fine_tune` wrote.
    examples : DataFrame
        Table `examples`, any order; the rows are written in the order of `example_id`.
    out : Path
        Parquet file; unfinished work waits beside it in a hidden folder.
    settings : EmbedSettings
        Vectors are stored as `dtype`; batches of other sizes change them by less than 1e-5.

    Raises
    ------
    UserError
        If the checkpoint is not whole, or values are not finite (the ids are named).
    """
    if settings.dtype not in DTYPES:
        raise UserError(f"embed: dtype {settings.dtype!r}; allowed: {allowed(DTYPES)}; correct it")
    target = prepare_device(device)
    loaded = load_checkpoint(checkpoint, target)
    check_length(loaded.classifier, settings.max_length, str(checkpoint))
    choice = loaded.task == MULTIPLE_CHOICE

    def compute(batch: Batch) -> Tensor:
        return loaded.classifier.vectors(batch.inputs)

    def to_arrow(shard: pl.DataFrame, values: NDArray[np.float32], counts: NDArray[np.int64]) -> pa.Table:
        return _table(shard, _stored(values, settings.dtype, shard, counts), counts if choice else None)

    run_sharded(
        loaded,
        examples,
        out,
        settings,
        device=target,
        table="candidate_embeddings" if choice else "embeddings",
        compute=compute,
        to_arrow=to_arrow,
    )


def _stored(
    values: NDArray[np.float32], dtype: str, shard: pl.DataFrame, counts: NDArray[np.int64]
) -> NDArray[np.floating]:
    """Values as `dtype`; raises `UserError` where float16 cannot hold them."""
    with np.errstate(over="ignore"):
        stored = values.astype(dtype)
    bad = ~np.isfinite(stored).all(axis=1)
    if bad.any():
        ids = dict.fromkeys(np.repeat(shard["example_id"].to_numpy(), counts)[bad].tolist())
        raise UserError(f"embed: {dtype} cannot hold the values of example_id {allowed(ids)}; set dtype: float32")
    return stored


def _table(shard: pl.DataFrame, values: NDArray[np.floating], counts: NDArray[np.int64] | None) -> pa.Table:
    import pyarrow as pa

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
    text = {name: shard[name].to_arrow().cast(pa.string()) for name in ("example_id", "label", "group_id")}
    if counts is None:
        return pa.table({**text, "embedding": vectors})
    return pa.table({**text, "candidates": lists_of(vectors, counts)})
