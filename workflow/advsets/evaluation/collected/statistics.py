"""Tables `question_statistics`, `question_overlap` and `question_kinds`: what the questions of a set look like.

Conventions
-----------
Words, shared n-grams and kinds are those of `words` and `kinds`. Every question of a split counts
once, whatever passages share it. Standard deviations are of the sample (n - 1). Rows are put in
order of their ids first, so sums do not depend on the order of the table. Source of the
measures: Bartolo et al. (2020), tables 3 and 4 and figure 4; what it calls a word it does not say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from advsets.evaluation.collected.kinds import ANSWER_TYPES, QUESTION_WORDS, answer_type, question_word
from advsets.evaluation.collected.words import longest_shared_runs, words
from advsets.evaluation.frames import table_frame
from advsets.io import read_table, write_table

_KINDS = {"question_word": QUESTION_WORDS, "answer_type": ANSWER_TYPES}


def question_tables(
    collection: str, dataset: str, train: pl.DataFrame, evaluation: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """Statistics of one data set's questions, by split.

    Parameters
    ----------
    collection, dataset : str
        Names for the tables.
    train, evaluation : pl.DataFrame
        Tables `questions`; either may be empty.

    Returns
    -------
    dict of str to pl.DataFrame
        Tables `question_statistics`, `question_overlap` (every length from 0 to the longest, also
        those without questions) and `question_kinds` (every kind, also those without questions).
        A split without questions has no rows.
    """
    measured = _measured(pl.concat([train, evaluation]))
    rows: dict[str, list[dict[str, Any]]] = {
        "question_statistics": [],
        "question_overlap": [],
        "question_kinds": [],
    }
    for (split,), part in measured.group_by("split", maintain_order=True):
        names = {"collection": collection, "dataset": dataset, "split": split}
        rows["question_statistics"].append({**names, **_summary(part)})
        rows["question_overlap"] += [{**names, **row} for row in _overlaps(part)]
        rows["question_kinds"] += [{**names, **row} for row in _kinds(part)]
    return {name: table_frame(name, found) for name, found in rows.items()}


def write_statistics(
    collection: str, datasets: Sequence[str], train: Sequence[Path], evaluation: Sequence[Path], out: Mapping[str, Path]
) -> None:
    """Write the three tables of one collection.

    Parameters
    ----------
    datasets : sequence of str
        Data sets with questions; none: empty tables.
    train, evaluation : sequences of Path
        Tables `questions`, in the order of `datasets`.
    out : mapping of table name to Path
    """
    made = [
        question_tables(collection, dataset, *(read_table(path, "questions") for path in pair))
        for dataset, *pair in zip(datasets, train, evaluation, strict=True)
    ]
    for name, path in out.items():
        write_table(pl.concat([table_frame(name, []), *(tables[name] for tables in made)]), path, name)


def _measured(questions: pl.DataFrame) -> pl.DataFrame:
    """Measures of every question, in order of the ids."""
    questions = questions.sort("split", "example_id")
    asked, answers = questions["question"].to_list(), questions["answers"].to_list()
    return questions.select("split", "document_id", "passage_id").with_columns(
        pl.Series("question_words", [len(words(text)) for text in asked], pl.Int64),
        pl.Series("answer_words", [_mean_length(gold) for gold in answers], pl.Float64),
        pl.Series("overlap", longest_shared_runs(questions["context"].to_list(), asked), pl.Int64),
        pl.Series("question_word", [question_word(text) for text in asked], pl.String),
        pl.Series("answer_type", [answer_type(gold[0] if gold else None) for gold in answers], pl.String),
    )


def _mean_length(answers: Sequence[str]) -> float | None:
    return sum(len(words(text)) for text in answers) / len(answers) if answers else None


def _summary(part: pl.DataFrame) -> dict[str, Any]:
    row: dict[str, Any] = {
        "n_documents": part["document_id"].n_unique(),
        "n_passages": part["passage_id"].n_unique(),
        "n_questions": len(part),
    }
    for measure in ("question_words", "answer_words", "overlap"):
        row |= {f"{measure}_mean": part[measure].mean(), f"{measure}_sd": part[measure].std()}
    return row


def _overlaps(part: pl.DataFrame) -> list[dict[str, Any]]:
    counts = dict(part["overlap"].value_counts().iter_rows())
    return [
        {"overlap": n, "n_questions": counts.get(n, 0), "share": counts.get(n, 0) / len(part)}
        for n in range(max(counts) + 1)
    ]


def _kinds(part: pl.DataFrame) -> list[dict[str, Any]]:
    return [
        {"aspect": aspect, "kind": kind, "n_questions": n, "share": n / len(part)}
        for aspect, kinds in _KINDS.items()
        for kind in kinds
        for n in [(part[aspect] == kind).sum()]
    ]
