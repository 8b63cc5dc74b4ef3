"""Which rows of a table a step may use, and what a table holds."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from advsets.io import parquet_schema, read_table


def training_rows(train: Path, role: str, evaluated_model_train: str) -> pl.DataFrame:
    """Rows that fine-tune a model in `role`: the adversary's part, or what the configuration gives."""
    frame = read_table(train, "examples")
    part = "adversary" if role == "adversary" else evaluated_model_train
    return frame if part == "full" else frame.filter(pl.col("train_role") == part)


def rows_to_embed(examples: Path, split: str) -> pl.DataFrame:
    """Rows that AFLite sees: the training rows kept for filtering, or the whole evaluation set."""
    frame = read_table(examples, "examples")
    return frame.filter(pl.col("train_role") == "filtering") if split == "train" else frame


def holds_questions(path: Path) -> bool:
    """Whether a Parquet file is a table `questions` rather than `examples`."""
    return "question" in parquet_schema(path).names


def questions_to_score(questions: Path) -> pl.DataFrame:
    """Evaluation questions less those that choose checkpoints."""
    return read_table(questions, "questions").filter(pl.col("split") != "validation")
