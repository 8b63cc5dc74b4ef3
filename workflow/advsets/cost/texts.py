"""How large the training and evaluation sets of collections are: as prepared, else as the rows of their data sets say.

Conventions
-----------
Sizes are None where neither a prepared table nor a row tells them; nothing is guessed. Before a training
set is put together, rows that it will drop count as well: those whose text stands in an evaluation set, and
those on passages that `passages_of` leaves out.
A passage longer than `max_length` is as many windows as it takes at the mean length, of which each repeats
the question and what it shares with the one before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advsets.collected import evaluation_sets, training_shares
from advsets.cost.sizes import at_most, rows_of, table_of, table_rows
from advsets.registry import EXTRACTIVE_QA

QUESTION_TOKENS = 16
"""Of the questions of SQuAD, special tokens included: ten words, of which some are two tokens."""


@dataclass(frozen=True)
class TextsSize:
    """Rows that are learned or predicted, and tokens of one on average.

    `selection` are rows beside them that choose the checkpoint (0: a share of them does),
    `window_stride` is the number of tokens that two windows of a passage share (None: texts are cut).
    """

    rows: int
    selection: int
    tokens: float
    window_stride: int | None

    def tokens_of(self, max_length: int) -> float:
        """Tokens of one row's inputs, each at most `max_length`."""
        if self.window_stride is None or self.tokens <= max_length:
            return min(self.tokens, max_length)
        question = min(QUESTION_TOKENS, max_length // 2)
        room = max_length - question
        shared = min(self.window_stride, room // 2)
        further = math.ceil((self.tokens - max_length) / (room - shared))
        return self.tokens + further * (shared + question)


def evaluation_size(config: dict[str, Any], name: str, root: Path) -> TextsSize | None:
    """Size of what is predicted of a data set that collections name: evaluation rows that choose no checkpoint."""
    rows = rows_of(config, name, "evaluation", root)
    return _sized(config, rows - _choosing_rows(config, name, root), 0, [name], [1]) if rows else None


def training_size(config: dict[str, Any], collection: str, training_set: str, root: Path) -> TextsSize | None:
    """Size of a training set of a collection."""
    part = config["collections"][collection]
    training = part["training_sets"][training_set]
    names = training["datasets"]
    each = _rows_of_each(config, names, training["max_train"], root)
    made = root / "results" / config["run"] / "collected" / collection / "training" / training_set / "train.parquet"
    rows, selection = table_rows(made), _validation_rows(made)
    if rows is not None and selection is not None:
        return _sized(config, rows - selection, selection, names, each)
    if 0 in each:
        return None
    selection = sum(_choosing_rows(config, name, root) for name in names if name in evaluation_sets(part))
    return _sized(config, sum(each), selection, names, each)


def unsized_parts(config: dict[str, Any], collection: str, training_set: str, root: Path) -> list[str]:
    """Data sets of a training set of which neither a table nor a row tells the training rows."""
    names = config["collections"][collection]["training_sets"][training_set]["datasets"]
    return [name for name in names if not rows_of(config, name, "train", root)]


def _rows_of_each(config: dict[str, Any], names: Sequence[str], max_train: int | None, root: Path) -> list[int]:
    """Training rows by data set, each at most its share of `max_train`; 0 where not known."""
    rows = [rows_of(config, name, "train", root) for name in names]
    if max_train is None:
        return [n or 0 for n in rows]
    return [at_most(n, share) or 0 for n, share in zip(rows, training_shares(max_train, len(names)), strict=True)]


def _choosing_rows(config: dict[str, Any], name: str, root: Path) -> int:
    """Questions of split `validation` among the evaluation questions of a data set."""
    row = config["collected_rows"]["datasets"][name]
    if row["task"] != EXTRACTIVE_QA:
        return 0
    made = _validation_rows(table_of(config, name, "evaluation", root))
    if made is not None:
        return made
    return (rows_of(config, name, "evaluation", root) or 0) // 2 if row["questions"]["halves_by_document"] else 0


def _sized(
    config: dict[str, Any], rows: int, selection: int, names: Sequence[str], weights: Sequence[int]
) -> TextsSize:
    """Size with the mean length over data sets, each as often as it has rows, or alike where one does not tell."""
    tokens = [config["cost_hints"]["datasets"][name]["tokens"] or config["cost"]["tokens"] for name in names]
    weights = weights if all(weights) else [1] * len(names)
    mean = sum(t * w for t, w in zip(tokens, weights, strict=True)) / sum(weights)
    is_question = config["collected_rows"]["datasets"][names[0]]["task"] == EXTRACTIVE_QA
    return TextsSize(rows, selection, mean, config["question_answering"]["window_stride"] if is_question else None)


def _validation_rows(path: Path) -> int | None:
    """Rows of split `validation` in a table, None if it is not there or cannot be read."""
    if not path.is_file():
        return None
    import pyarrow.parquet as pq
    from pyarrow import ArrowException

    try:
        with pq.ParquetFile(path) as file:
            return int(file.read(columns=["split"])["split"].to_pylist().count("validation"))
    except (ArrowException, OSError, KeyError):
        return None
