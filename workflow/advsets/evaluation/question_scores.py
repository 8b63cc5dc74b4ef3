"""Scores anybody's answers to the questions of a SQuAD 1.1 file: exact match and F1, as the official script.

Conventions
-----------
Answers are joined by id. A question without an answer (not in the file, or null) counts as wrong
and is counted, also where its gold answers normalise to nothing. Ids that the gold file does not
have are reported and left out. Both scores are means over all questions, 0 to 100.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any, TextIO

import polars as pl

from advsets.answers import exact_match, f1
from advsets.datasets import tabular
from advsets.datasets.questions.records import text_of
from advsets.datasets.squad import read_questions
from advsets.errors import UserError, allowed
from advsets.evaluation.frames import table_frame
from advsets.io import atomic_path, check_file, read_json, write_json
from advsets.tables import TABLES

_COLUMNS = TABLES["answer_scores"].column_names


def score_questions(gold: Path, predictions: Path, out: Path | None, stream: TextIO | None = None) -> pl.DataFrame:
    """Table `answer_scores` of a file of answers; its means are printed.

    Parameters
    ----------
    gold : Path
        Questions in the format of SQuAD 1.1, or as rows (`advsets.datasets.squad`).
    predictions : Path
        JSON object of id to answer.
    out : Path or None
        CSV or JSON file to write the scores of each question to.
    stream : text stream, optional
        Where the means are printed; standard output by default.

    Raises
    ------
    UserError
        If a file is not as it should be, or no id of `predictions` is in `gold`.
    """
    if out is not None:
        _check_out(out)
    questions, mismatches = read_questions(gold, "evaluation")
    answers = read_answers(predictions)
    unknown = sorted(set(answers) - set(questions["example_id"]))
    if len(unknown) == len(answers):
        raise UserError(
            f"{predictions}: none of the {len(answers)} ids is in {gold}{_example(unknown)}; allowed: ids such as"
            f" {questions['example_id'][0]!r}; check that the two files belong together"
        )
    scores = answer_scores(questions, answers)
    if out is not None:
        _write(scores, out)
    print(_as_text(scores, unknown, mismatches.height), end="", file=stream or sys.stdout)
    return scores


def answer_scores(questions: pl.DataFrame, answers: dict[str, str | None]) -> pl.DataFrame:
    """Table `answer_scores`: one row per question, sorted by id.

    Parameters
    ----------
    questions : DataFrame
        `example_id` and `answers` (gold) are enough.
    answers : mapping of id to str or None
        Ids that no question has are passed over; None is a missing answer.
    """
    return table_frame(
        "answer_scores", (_row(q, answers.get(q["example_id"])) for q in questions.iter_rows(named=True))
    )


def read_answers(path: Path) -> dict[str, str | None]:
    """Answer by id from a JSON object, also .gz; null is a missing answer.

    Raises
    ------
    UserError
        If the file is no such object, an id stands twice, or an answer is no text.
    """
    check_file(path, "a JSON object of id to answer")
    found = tabular.read_json(path)
    if not isinstance(found, dict):
        raise UserError(f"{path}: found a {type(found).__name__}; allowed: an object of id to answer; convert the file")
    for key, answer in found.items():
        if answer is not None:
            text_of(answer, f"{path}, id {key!r}", "answer")
    return found


def _row(question: dict[str, Any], answer: str | None) -> dict[str, Any]:
    gold = question["answers"]
    return {
        "example_id": question["example_id"],
        "n_answers": len(gold),
        "predicted_answer": answer,
        "exact_match": 0 if answer is None else int(exact_match(answer, gold)),
        "f1": 0.0 if answer is None else f1(answer, gold),
    }


def _example(ids: list[str]) -> str:
    return f", e.g. {ids[0]!r}" if ids else ""


def _check_out(out: Path) -> None:
    """Raise `UserError` for a file that cannot hold scores, or holds something else."""
    if out.suffix not in (".csv", ".json"):
        raise UserError(f"{out}: unknown kind of file; allowed: .csv, .json; change the name")
    if out.exists() and not _is_scores(out):
        raise UserError(
            f"{out}: something else than scores stands there; allowed: a new file, or scores written before; choose"
            " another --out"
        )


def _is_scores(path: Path) -> bool:
    if not path.is_file():
        return False  # a pipe would be waited for without end
    try:
        if path.suffix == ".json":
            rows = read_json(path)
            return isinstance(rows, list) and bool(rows) and all(set(row) == set(_COLUMNS) for row in rows)
        with path.open(encoding="utf-8", newline="") as handle:
            return next(csv.reader(handle), []) == _COLUMNS
    except (UserError, OSError, ValueError, TypeError, csv.Error):
        return False


def _write(scores: pl.DataFrame, out: Path) -> None:
    if out.suffix == ".json":
        return write_json(out, scores.to_dicts())
    with atomic_path(out) as temporary, temporary.open("wb") as handle:
        scores.write_csv(handle)
    return None


def _as_text(scores: pl.DataFrame, unknown: list[str], n_mismatches: int) -> str:
    n = scores.height
    n_missing = scores["predicted_answer"].null_count()
    lines = [
        f"questions            {n}",
        f"exact match          {100 * int(scores['exact_match'].sum()) / n:.2f}",
        f"F1                   {100 * float(scores['f1'].sum()) / n:.2f}",
        f"missing predictions  {n_missing}" + (" (counted as wrong)" if n_missing else ""),
        f"unknown ids          {len(unknown)}" + (f" (left out: {allowed(unknown, 5)})" if unknown else ""),
    ]
    if n_mismatches:
        lines.append(f"gold answers that are not at their place in the passage (scored all the same)  {n_mismatches}")
    return "\n".join(lines) + "\n"
