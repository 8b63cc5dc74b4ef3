"""One question as a file holds it, and the tables of many, with every answer checked at its place.

Conventions
-----------
Places count Unicode code points from 0, as Python does, in the text as it stands: nothing is
normalised, so a combining mark, an emoji's modifier or a wide space counts by itself.
An answer that is not at the place its source gives is moved to the only place that holds it, or
keeps no place; it is gold all the same. Which questions can train is not decided here.
A passage is known by a hash of its text after case folding and squeezing white space, as equal
texts are elsewhere; so a copy that was only set differently is the same passage.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import polars as pl

from advsets.datasets.duplicates import text_key
from advsets.errors import UserError
from advsets.io import polars_dtype
from advsets.tables import TABLES

NOT_KNOWN = -1
MOVED, KEPT, DROPPED = "moved", "kept_without_offset", "dropped"
_LARGEST = 2**63 - 1

Frames = tuple[pl.DataFrame, pl.DataFrame]
"""Tables `questions` and `answer_mismatches`."""
Counted = list[tuple[str, str, int, bool]]
"""Lines of table `dropped`."""


@dataclass(frozen=True)
class QuestionRecord:
    """A question with its passage and gold answers, in the order of the source.

    `place` names file and question for messages. `document_id` is None where the source has
    none. `answer_starts` are places as the source gives them, `NOT_KNOWN` where it gives none.
    """

    place: str
    example_id: str
    document_id: str | None
    context: str
    question: str
    answers: tuple[str, ...]
    answer_starts: tuple[int, ...]


def passage_id(context: str) -> str:
    """Hash of a passage's text, 16 hexadecimal digits."""
    return text_key([context])


def text_of(value: object, where: str, name: str) -> str:
    """`value` if it is Unicode text, else `UserError`."""
    if not isinstance(value, str):
        raise UserError(f"{where}: {name}: found {shown(value)}; allowed: a text; mend the file")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise UserError(
            f"{where}: {name}: holds half of a surrogate pair (\\ud800 to \\udfff); mend the text"
        ) from None
    return value


def shown(value: object) -> str:
    """What was found, for messages: its kind and how it begins."""
    return "nothing (null)" if value is None else f"a {type(value).__name__}, {str(value)[:40]!r}"


def frames(records: Iterable[QuestionRecord], split: str, where: str) -> Frames:
    """Tables `questions` and `answer_mismatches` of one file.

    Parameters
    ----------
    split : str
        `train` or `evaluation`: what stands as split in both tables.
    where : str
        The file, for messages.

    Raises
    ------
    UserError
        In one line with the place, if there are no questions, an id stands twice or is empty, a
        context, question or answer is empty, or a question has no answer.
    """
    rows: list[dict[str, Any]] = []
    mismatches: dict[tuple[str, str, int], dict[str, Any]] = {}
    places: dict[str, str] = {}
    for record in records:
        _check(record, places)
        places[record.example_id] = record.place
        starts = []
        for answer, start in zip(record.answers, record.answer_starts, strict=True):
            found, outcome = _look_up(record.context, answer, start)
            starts.append(found)
            if outcome is not None:
                mismatches[record.example_id, answer, start] = {
                    "split": split,
                    "example_id": record.example_id,
                    "answer": answer,
                    "answer_start": start,
                    "found": record.context[start : start + len(answer)],
                    "outcome": outcome,
                }
        rows.append(_row(record, split, starts))
    if not rows:
        raise UserError(f"{where}: holds no questions; allowed: one or more; give another file")
    return _frame("questions", rows), _frame("answer_mismatches", list(mismatches.values()))


def _row(record: QuestionRecord, split: str, starts: list[int]) -> dict[str, Any]:
    passage = passage_id(record.context)
    return {
        "example_id": record.example_id,
        "source_id": record.example_id,
        "split": split,
        "document_id": record.document_id or passage,
        "passage_id": passage,
        "context": record.context,
        "question": record.question,
        "answers": list(record.answers),
        "answer_starts": starts,
    }


def _frame(name: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={c.name: polars_dtype(c) for c in TABLES[name].columns})


def _check(record: QuestionRecord, places: dict[str, str]) -> None:
    where = record.place
    if not record.example_id:
        raise UserError(f"{where}: the id is empty; allowed: a text that no other question has; fill it")
    if record.example_id in places:
        raise UserError(
            f"{where}: id {record.example_id!r} stands twice (also {places[record.example_id]}); allowed: each id once;"
            " mend one of them"
        )
    for name, text in (("context", record.context), ("question", record.question)):
        if not text.strip():
            raise UserError(f"{where}: the {name} is empty; fill it, or remove the question")
    if not record.answers:
        raise UserError(
            f"{where}: there is no answer; allowed: one or more (questions without answers are no part of the task);"
            " add one, or remove the question"
        )
    for number, (answer, start) in enumerate(zip(record.answers, record.answer_starts, strict=True), start=1):
        if not answer.strip():
            raise UserError(f"{where}: answer {number} is empty; fill it, or remove it")
        if start > _LARGEST:
            raise UserError(f"{where}: answer {number} starts at {start}; allowed: a place in the context; mend it")


def _look_up(context: str, answer: str, start: int) -> tuple[int, str | None]:
    """Where the answer is, and what became of a place that does not hold it (None: it does, or is not known)."""
    if start == NOT_KNOWN or context.startswith(answer, start):
        return start, None
    first = context.find(answer)
    if first >= 0 and context.find(answer, first + 1) < 0:
        return first, MOVED
    return NOT_KNOWN, KEPT
