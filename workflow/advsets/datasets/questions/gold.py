"""Which gold answers a question keeps, and which questions can train."""

from __future__ import annotations

from collections import Counter

import polars as pl

from advsets.answers import normalise_answer
from advsets.datasets.questions.records import NOT_KNOWN


def with_majority_answers(questions: pl.DataFrame) -> pl.DataFrame:
    """`questions` with the answer that most annotators gave as the only one, the first among equals.

    Answers are counted as their text after the official normalisation; of those alike, the first
    whose place is known stands for them.
    """
    chosen = [_majority(row["answers"], row["answer_starts"]) for row in questions.iter_rows(named=True)]
    return questions.with_columns(
        pl.Series("answers", [[text] for text, _ in chosen], dtype=pl.List(pl.String)),
        pl.Series("answer_starts", [[start] for _, start in chosen], dtype=pl.List(pl.Int64)),
    )


def _majority(answers: list[str], starts: list[int]) -> tuple[str, int]:
    keys = [normalise_answer(answer) for answer in answers]
    # Counter lists equal counts in the order of their first appearance
    key = Counter(keys).most_common(1)[0][0]
    alike = [(a, s) for a, s, k in zip(answers, starts, keys, strict=True) if k == key]
    return next((pair for pair in alike if pair[1] != NOT_KNOWN), alike[0])


def has_place() -> pl.Expr:
    """Whether the place of any answer of a question is known, so that a model can learn from it."""
    return pl.col("answer_starts").list.max() != NOT_KNOWN
