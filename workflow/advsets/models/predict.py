"""Predictions of a fine-tuned model: probabilities by label name, or per candidate.

Conventions
-----------
Probabilities stand in the data set's `label_order`, whatever the order of the network's
outputs, and sum to 1 (float64 softmax). Ties go to the label that comes first.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from advsets.errors import UserError
from advsets.models.batching import Batch
from advsets.models.checkpoint import Checkpoint, load_checkpoint, output_order
from advsets.models.classifier import check_length
from advsets.models.inference import lists_of, run_sharded
from advsets.models.precision import prepare_device
from advsets.models.settings import EmbedSettings
from advsets.registry import MULTIPLE_CHOICE

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from torch import Tensor


def predict(
    checkpoint: Path,
    examples: pl.DataFrame,
    out: Path,
    settings: EmbedSettings,
    *,
    device: str,
    label_order: tuple[str, ...] | None = None,
) -> None:
    """Write table `predictions`.

    Parameters
    ----------
    checkpoint : Path
        Folder that `fine_tune` wrote, or a sequence classification checkpoint made elsewhere
        whose configuration names its outputs.
    examples : DataFrame
        Table `examples`, any order.
    out : Path
        Parquet file; unfinished work waits beside it in a hidden folder.
    label_order : tuple of str, optional
        The data set's; by default what the checkpoint was fine-tuned with.

    Raises
    ------
    UserError
        If the outputs' names are not those of the data set, the checkpoint is not whole, or
        values are not finite (the ids are named).
    """
    target = prepare_device(device)
    loaded = load_checkpoint(checkpoint, target)
    check_length(loaded.classifier, settings.max_length, str(checkpoint))
    names = None if loaded.task == MULTIPLE_CHOICE else _label_order(loaded, label_order)
    order = [0] if names is None else output_order(loaded, names)

    def compute(batch: Batch) -> Tensor:
        return loaded.classifier.scores(batch.inputs)[:, order]

    def to_arrow(shard: pl.DataFrame, values: NDArray[np.float32], counts: NDArray[np.int64]) -> pa.Table:
        return _table(shard, values, counts, names)

    run_sharded(loaded, examples, out, settings, device=target, table="predictions", compute=compute, to_arrow=to_arrow)


def _label_order(loaded: Checkpoint, label_order: tuple[str, ...] | None) -> tuple[str, ...]:
    names = label_order or loaded.description["label_order"]
    if not names:
        raise UserError(
            f"{loaded.folder}: the checkpoint was not fine-tuned here, so its label order is unknown;"
            " give the data set's label_order"
        )
    return tuple(names)


def softmax(scores: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Softmax over runs of `counts` scores, shape (n_scores,)."""
    starts = np.cumsum(counts) - counts
    shifted = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), counts))
    return shifted / np.repeat(np.add.reduceat(shifted, starts), counts)


def _table(
    shard: pl.DataFrame, values: NDArray[np.float32], counts: NDArray[np.int64], names: tuple[str, ...] | None
) -> pa.Table:
    import pyarrow as pa

    if names is not None:
        counts = np.full(shard.height, len(names))
    flat = values.astype(np.float64).reshape(-1)
    probabilities = softmax(flat, counts) if len(flat) else flat
    stops = np.cumsum(counts)
    best = [int(probabilities[stop - n : stop].argmax()) for stop, n in zip(stops, counts, strict=True)]
    return pa.table(
        {
            "example_id": shard["example_id"].to_arrow().cast(pa.string()),
            "predicted_label": pa.array([str(k) if names is None else names[k] for k in best], pa.string()),
            "probabilities": lists_of(pa.array(probabilities), counts),
        }
    )
