"""SQuAD 1.1: its JSON in and out, and the same as rows (as the Hugging Face hub has it).

Conventions
-----------
JSON is `{data: [{title, paragraphs: [{context, qas: [{id, question, answers: [{text,
answer_start}]}]}]}]}`; keys beyond these are passed over. A title that is missing, null or empty is
none. Rows have columns id, context, question, answers (`{text: [...], answer_start: [...]}` or a
list of such pairs) and perhaps title. Files are UTF-8, with or without a byte-order mark, also .gz.
Places (`answer_start`) count Unicode code points; source: Rajpurkar et al. 2016.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from json import JSONDecodeError
from pathlib import Path
from typing import Any

import polars as pl

from advsets.datasets.questions.records import NOT_KNOWN, Frames, QuestionRecord, frames, shown, text_of
from advsets.datasets.raw import RawTable
from advsets.datasets.saved import read_saved
from advsets.datasets.tabular import is_table, read_rows, read_text
from advsets.errors import UserError, allowed, reason
from advsets.io import check_file, parse_json, write_text

COLUMNS = ["id", "title", "context", "question", "answers"]
"""Columns of the form in rows."""
_OPTIONAL = ("title",)


def read_questions(path: Path, split: str) -> Frames:
    """Tables `questions` and `answer_mismatches` of a file or a saved `datasets` folder.

    Parameters
    ----------
    path : Path
        `.json` is SQuAD's JSON; `.jsonl` and `.parquet` (each also .gz) and folders hold rows.
    split : str
        `train` or `evaluation`, for the column `split`.

    Raises
    ------
    UserError
        In one line, naming file and question, for whatever is not as the format says. An answer
        that is not at its place is no error: it stands in `answer_mismatches`.
    """
    if path.is_dir():
        return from_rows(read_saved(path, split, COLUMNS), split)
    check_file(path, "a file of questions")
    if path.name.lower().removesuffix(".gz").endswith(".json"):
        return frames(_document(_parsed(path), str(path)), split, str(path))
    if not is_table(path.name):
        raise UserError(
            f"{path}: found a file that ends in {path.suffix!r}; allowed: .json (SQuAD 1.1), or rows as .jsonl or"
            " .parquet, each also with .gz; rename or convert it"
        )
    return from_rows(read_rows(path, COLUMNS), split)


def read_counted(path: Path, split: str) -> tuple[Frames, dict[str, int]]:
    """As `read_questions`; no question is left out."""
    return read_questions(path, split), {}


def from_rows(table: RawTable, split: str) -> Frames:
    """Tables `questions` and `answer_mismatches` of rows; errors as of `read_questions`."""
    for name in COLUMNS:
        if name not in table.columns and name not in _OPTIONAL:
            raise UserError(
                f"{table.where}: column {name!r} is missing; found: {allowed(table.found, 30)}; allowed: the columns of"
                f" SQuAD 1.1, {allowed(COLUMNS)}; rename or add it"
            )
    return frames(_rows(table), split, table.where)


def write_squad(questions: pl.DataFrame, path: Path) -> None:
    """Write a `questions` table as SQuAD 1.1 JSON, with `example_id` as id, in the order of its rows.

    Reading it back gives the table again, but for `split` and `source_id`.

    Raises
    ------
    UserError
        If the place of an answer is not known: the format has no way to say so.
    """
    articles: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in questions.iter_rows(named=True):
        if NOT_KNOWN in row["answer_starts"]:
            answer = row["answers"][row["answer_starts"].index(NOT_KNOWN)]
            raise UserError(
                f"{path}: question {row['example_id']!r}: the place of answer {answer[:40]!r} in its passage is not"
                " known; allowed: answers with a place; leave the question or the answer out"
            )
        pairs = zip(row["answers"], row["answer_starts"], strict=True)
        answers = [{"text": text, "answer_start": start} for text, start in pairs]
        title = "" if row["document_id"] == row["passage_id"] else row["document_id"]
        entry = {"id": row["example_id"], "question": row["question"], "answers": answers}
        articles.setdefault(title, {}).setdefault(row["context"], []).append(entry)
    data = [
        {"title": title, "paragraphs": [{"context": context, "qas": qas} for context, qas in paragraphs.items()]}
        for title, paragraphs in articles.items()
    ]
    write_text(path, json.dumps({"version": "1.1", "data": data}, ensure_ascii=False) + "\n")


def _parsed(path: Path) -> Any:
    text = read_text(path)
    try:
        return parse_json(text)
    except JSONDecodeError as error:
        why = f"{error.msg} at line {error.lineno}, column {error.colno}"
    except ValueError as error:
        why = reason(error)
    raise UserError(f"{path}: not valid JSON ({why}); mend it, or fetch it again")


def _document(document: Any, where: str) -> Iterator[QuestionRecord]:
    for a, article in _entries(document, "data", where, "article"):
        title = article.get("title")
        title = None if title is None else text_of(title, a, "title")
        for p, paragraph in _entries(article, "paragraphs", a, "paragraph"):
            context = text_of(_key(paragraph, "context", p), p, "context")
            for q, entry in _entries(paragraph, "qas", p, "question"):
                yield _record(entry, q, title, context)


def _entries(holder: Any, key: str, where: str, unit: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Objects of the list under `key`, each with its place."""
    entries = _key(holder, key, where)
    if not isinstance(entries, list):
        raise UserError(f"{where}: {key}: found {shown(entries)}; allowed: a list; mend the file")
    for number, entry in enumerate(entries, start=1):
        place = f"{where}, {unit} {number}"
        yield place, _object(entry, place)


def _key(holder: Any, key: str, where: str) -> Any:
    if key not in _object(holder, where):
        found = allowed(sorted(holder)) or "nothing"
        raise UserError(f"{where}: key {key!r} is missing; found: {found}; give the file in the format of SQuAD 1.1")
    return holder[key]


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{where}: found {shown(value)}; allowed: an object; give the file in the format of SQuAD 1.1")
    return value


def _record(entry: dict[str, Any], where: str, title: str | None, context: str) -> QuestionRecord:
    example_id = text_of(_key(entry, "id", where), where, "id")
    where = f"{where} (id {example_id!r})"
    texts, starts = _answers(_key(entry, "answers", where), where)
    question = text_of(_key(entry, "question", where), where, "question")
    return QuestionRecord(where, example_id, title, context, question, texts, starts)


def _answers(given: Any, where: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Answers and their places, from a list of objects or an object of lists."""
    if isinstance(given, dict):
        texts, starts = (_key(given, key, f"{where}, answers") for key in ("text", "answer_start"))
        if not (isinstance(texts, list) and isinstance(starts, list) and len(texts) == len(starts)):
            raise UserError(
                f"{where}, answers: found {shown(texts)} and {shown(starts)}; allowed: two lists of one length, texts"
                " and places; mend them"
            )
        pairs = list(zip(texts, starts, strict=True))
    elif isinstance(given, list):
        pairs = [
            (_key(answer, "text", f"{where}, answer {n}"), _key(answer, "answer_start", f"{where}, answer {n}"))
            for n, answer in enumerate(given, start=1)
        ]
    else:
        raise UserError(f"{where}: answers: found {shown(given)}; allowed: a list of text and answer_start; mend it")
    places = [f"{where}, answer {n}" for n in range(1, len(pairs) + 1)]
    return (
        tuple(text_of(text, at, "text") for (text, _), at in zip(pairs, places, strict=True)),
        tuple(_start(start, at) for (_, start), at in zip(pairs, places, strict=True)),
    )


def _start(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UserError(
            f"{where}: answer_start: found {shown(value)}; allowed: a whole number from 0, the place of the answer in"
            " the context; mend it"
        )
    return value


def _rows(table: RawTable) -> Iterator[QuestionRecord]:
    titles = table.columns.get("title", [None] * table.n_rows)
    for i, (key, title, answers) in enumerate(zip(table.columns["id"], titles, table.columns["answers"], strict=True)):
        where = table.at(i)
        context = text_of(table.columns["context"][i], where, "context")
        entry = {"id": key, "question": table.columns["question"][i], "answers": answers}
        yield _record(entry, where, None if title is None else text_of(title, where, "title"), context)
