"""Invented questions, and models in miniature that learn to answer them."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import polars as pl
import pytest

from advsets.models.qa.windows import WindowSettings

NOUNS = ("soup", "play", "chair", "novel", "garden", "song", "lamp", "bridge", "coat", "journey")
FILLERS = ("the", "a", "was", "rather", "truly", "this", "we", "old", "new", "and", "then", "quite")
WINDOWS = WindowSettings(window_stride=4, max_answer_tokens=8, n_best=5)


def questions_frame(contexts: list[str], answers: list[list[str]], starts: list[list[int]], **columns: list):
    """Table `questions`, four questions a passage id; ids sort like the rows."""
    n = len(contexts)
    whole = {
        "example_id": [f"q{i:04d}" for i in range(n)], "source_id": [None] * n, "split": ["train"] * n,
        "document_id": ["d"] * n, "passage_id": [f"p{i // 4:03d}" for i in range(n)], "context": contexts,
        "question": ["then we found what"] * n, "answers": answers, "answer_starts": starts,
    } | columns  # fmt: skip
    kinds = {"source_id": pl.String(), "answer_starts": pl.List(pl.Int64()), "answers": pl.List(pl.String())}
    return pl.DataFrame(whole, schema_overrides=kinds)


def questions(n: int, *, before: int = 0, seed: int = 0, **columns: list) -> pl.DataFrame:
    """Passages with one noun, which is the answer, after at least `before` other words.

    Without `before` they just fit in a window of 32 tokens, so that all its positions are learned.
    """
    contexts, answers, starts = [], [], []
    for i in range(n):
        draw = random.Random(f"{seed} {i}")
        words = draw.choices(FILLERS, k=before + draw.randint(0, 16))
        start = len(" ".join([*words, ""])) if words else 0
        noun = draw.choice(NOUNS)
        contexts.append(" ".join([*words, noun, *draw.choices(FILLERS, k=draw.randint(0, 8))]))
        answers.append([noun])
        starts.append([start])
    return questions_frame(contexts, answers, starts, **columns)


class Readers:
    """What the tests of this folder share, reached through the fixture `readers`."""

    WINDOWS, NOUNS = WINDOWS, NOUNS
    questions, questions_frame = staticmethod(questions), staticmethod(questions_frame)

    def __init__(self, kit) -> None:
        self.kit = kit

    def tune(self, kind: str, train: pl.DataFrame, out: Path, *, seed: int = 0, windows=WINDOWS, row=None, **settings):
        """Checkpoint of a miniature that has learned `train`."""
        from advsets.models.qa.finetune import fine_tune_questions

        fine_tune_questions(
            self.kit.model_row(**(row or {})), self.kit.model_json(kind), "made_up", train,
            dataclasses.replace(self.kit.FINE_TUNE, **settings), windows, seed=seed,
            out=out / "checkpoint", log=out / "training_log.parquet", work=out / "work", device="cpu",
        )  # fmt: skip
        return out / "checkpoint"

    def predict(self, checkpoint: Path, table: pl.DataFrame, out: Path, *, windows=WINDOWS, **settings) -> pl.DataFrame:
        """Table of answers."""
        from advsets.models.qa.predict import predict_questions

        inference = dataclasses.replace(self.kit.INFERENCE, **settings)
        predict_questions(checkpoint, table, out, inference, windows, device="cpu")
        return pl.read_parquet(out)

    @staticmethod
    def score(answers: pl.DataFrame, table: pl.DataFrame) -> float:
        """Share of questions whose answer stands where the gold one does, with its very text."""
        both = answers.join(table, on="example_id", suffix="_gold")
        starts = both["answer_start"] == both["answer_starts"].list.first()
        return float((starts & (both["predicted_answer"] == both["answers"].list.first())).sum() / table.height)


@pytest.fixture(scope="session")
def readers(kit) -> Readers:
    return Readers(kit)


@pytest.fixture(scope="session")
def reader(readers, tmp_path_factory) -> Path:
    """Checkpoint of a BERT miniature that has learned `questions`; do not change it."""
    return readers.tune("bert", readers.questions(120), tmp_path_factory.mktemp("reader"), epochs=6)
