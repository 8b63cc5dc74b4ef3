"""Answers of a fine-tuned reader: the best places of each question's passage.

Conventions
-----------
An answer is the passage's text from `answer_start` on, character by character. Scores are the sum
of two logits, comparable among the answers of a question. Windows are batched by their length
within a shard of questions, so that neither the size of batches nor the rows' order decides.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from advsets.models import inference
from advsets.models.batching import Tokenised, cells, collate, inference_batches, require_unique
from advsets.models.checkpoint import Checkpoint
from advsets.models.classifier import check_length
from advsets.models.inference import in_shards
from advsets.models.precision import finite, half_dtype, prepare_device
from advsets.models.qa.reader import load_reader
from advsets.models.qa.spans import Answer, best_answers
from advsets.models.qa.windows import Windows, WindowSettings, cut_windows, report_windows
from advsets.models.settings import EmbedSettings

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa


def predict_questions(
    checkpoint: Path,
    questions: pl.DataFrame,
    out: Path,
    settings: EmbedSettings,
    windows: WindowSettings,
    *,
    device: str,
) -> None:
    """Write table `answer_predictions`.

    Parameters
    ----------
    checkpoint : Path
        Folder that `fine_tune_questions` wrote.
    questions : DataFrame
        Table `questions`, any order; all rows are answered.
    out : Path
        Parquet file; unfinished work waits beside it in a hidden folder.
    settings : EmbedSettings
        `max_length` counts the tokens of the question and of its window.

    Raises
    ------
    UserError
        As `cut_windows`; if the checkpoint is of another task or not whole, or values are not
        finite (the ids are named).
    """
    target = prepare_device(device)
    loaded = load_reader(checkpoint, target)
    check_length(loaded.classifier, settings.max_length, str(checkpoint))
    questions = questions.select("example_id", "question", "context").sort("example_id")
    require_unique(questions["example_id"].to_list(), "questions")

    def make(rows: NDArray[np.int64]) -> pa.Table:
        shard = questions.slice(rows[0] if len(rows) else 0, len(rows))
        cut = cut_windows(shard, loaded.tokenizer, settings.max_length, windows, str(checkpoint))
        report_windows(cut, settings.max_length, "answer_predictions")
        scores = _scores(loaded, cut, settings.tokens_per_batch, target)
        return _table(shard, _answers(cut, scores, windows))

    key = _key(loaded, questions, settings, windows)
    in_shards(questions.height, out, "answer_predictions", key, make)


def _key(checkpoint: Checkpoint, questions: pl.DataFrame, settings: EmbedSettings, windows: WindowSettings) -> str:
    digest = hashlib.sha256()
    digest.update(f"{checkpoint.content_key} {settings.max_length} {asdict(windows)} {inference.SHARD_ROWS}".encode())
    for column in questions.columns:
        digest.update(repr(questions[column].to_list()).encode())
    return digest.hexdigest()[:16]


@torch.inference_mode()
def _scores(
    checkpoint: Checkpoint, windows: Windows, tokens_per_batch: int, device: torch.device
) -> NDArray[np.float32]:
    """Scores of all tokens, shape (n_tokens, 2)."""
    dtype = half_dtype(checkpoint.description["precision"], device, training=False)
    data = _each_window_by_itself(windows.data)
    scores = np.empty((len(data.tokens), 2), np.float32)
    for rows in inference_batches(data, np.arange(len(data.example_ids)), tokens_per_batch):
        inputs = collate(data, rows, device).inputs
        owners = [data.example_ids[r] for r in rows]
        real, flat = cells(data, rows)
        scores[flat] = _finite_scores(checkpoint, inputs, owners, dtype, device)[real]
    return scores


def _finite_scores(
    checkpoint: Checkpoint,
    inputs: dict[str, torch.Tensor],
    owners: list[str],
    dtype: torch.dtype | None,
    device: torch.device,
) -> NDArray[np.float32]:
    return finite(lambda: checkpoint.classifier.scores(inputs), owners, dtype, device).cpu().numpy()


def _each_window_by_itself(data: Tokenised) -> Tokenised:
    """The same windows, each an example that has the id of its question."""
    owners = np.repeat(np.arange(len(data.example_ids)), data.counts)
    return replace(
        data, example_ids=[data.example_ids[k] for k in owners], offsets=np.arange(len(owners) + 1, dtype=np.int64)
    )


def _answers(windows: Windows, scores: NDArray[np.float32], settings: WindowSettings) -> list[list[Answer]]:
    """Best answers of each question."""
    found = []
    for row in range(len(windows.data.example_ids)):
        bounds = windows.bounds(row)
        found.append(best_answers(windows, row, scores[bounds[0][0] : bounds[-1][1]], settings))
    return found


def _table(shard: pl.DataFrame, answers: list[list[Answer]]) -> pa.Table:
    import pyarrow as pa

    contexts = shard["context"].to_list()
    texts = [[c[a.begin : a.end] for a in best] for c, best in zip(contexts, answers, strict=True)]
    return pa.table(
        {
            "example_id": pa.array(shard["example_id"].to_list(), pa.string()),
            "predicted_answer": pa.array([best[0] if best else "" for best in texts], pa.string()),
            "answer_start": pa.array([best[0].begin if best else -1 for best in answers], pa.int64()),
            "logit": pa.array([best[0].logit if best else None for best in answers], pa.float64()),
            "best_answers": pa.array(texts, pa.list_(pa.string())),
            "best_logits": pa.array([[a.logit for a in best] for best in answers], pa.list_(pa.float64())),
        }
    )
