"""DROP: the questions that a span of the passage answers.

Conventions
-----------
JSON is `{section: {passage, wiki_url, qa_pairs: [{query_id, question, answer: {number, date: {day,
month, year}, spans: [...]}}]}}`, UTF-8, also .gz; keys beyond these are passed over. The document
of a passage is its `wiki_url`.

Bartolo et al. (2020), section 4.4, take of DROP the questions that fit SQuAD: the answer is a span
of the passage, and there is one candidate answer alone. What that means is said here:

- The answer is that of `answer`. `validated_answers`, which other people gave to the evaluation
  questions, are not read: a question has one gold answer, as those that it is compared with.
- It holds one span, and neither a number nor a date: several spans are several candidates.
- The passage holds the span word for word, in the same case, and not amid a longer word; white
  space around the span does not count. DROP does not say where, so the first such place is taken,
  which may be another than was meant; scores of answers do not hang on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from advsets.datasets.questions.records import QuestionRecord, shown, text_of
from advsets.datasets.questions.selection import Selected, member, members, selected
from advsets.datasets.tabular import read_json
from advsets.errors import UserError
from advsets.io import check_file

FORM = "DROP"
NUMBER, DATE, SEVERAL = "answer is a number", "answer is a date", "answer is several spans"
NO_ANSWER, ELSEWHERE = "no answer", "answer is no span of the passage"


def read_counted(path: Path, split: str) -> Selected:
    """Tables of a DROP file, and how many questions were left out, by reason.

    Parameters
    ----------
    path : Path
        JSON file, also .gz.
    split : str
        `train` or `evaluation`, for the column `split`.

    Raises
    ------
    UserError
        In one line, naming file and question, for whatever is not as the format says.
    """
    check_file(path, "a file of DROP's questions")
    return selected(_questions(read_json(path), str(path)), split, str(path))


def _questions(document: Any, where: str) -> Iterator[QuestionRecord | str]:
    if not isinstance(document, dict):
        raise UserError(
            f"{where}: found {shown(document)}; allowed: an object of sections; give the file in the format of {FORM}"
        )
    for section, content in document.items():
        place = f"{where}, section {section!r}"
        passage = text_of(member(content, "passage", place, FORM), place, "passage")
        url = content.get("wiki_url")
        document_id = None if url is None else text_of(url, place, "wiki_url")
        for number, pair in enumerate(members(content, "qa_pairs", place, FORM), start=1):
            yield _question(pair, f"{place}, question {number}", document_id, passage)


def _question(pair: Any, where: str, document_id: str | None, passage: str) -> QuestionRecord | str:
    example_id = text_of(member(pair, "query_id", where, FORM), where, "query_id")
    where = f"{where} (id {example_id!r})"
    question = text_of(member(pair, "question", where, FORM), where, "question")
    answer = member(pair, "answer", where, FORM)
    spans = [text_of(span, where, "spans").strip() for span in members(answer, "spans", where, FORM)]
    if member(answer, "number", where, FORM) not in ("", None):
        return NUMBER
    if any(_date(answer, where).values()):
        return DATE
    if len(spans) != 1 or not spans[0]:
        return SEVERAL if len(spans) > 1 else NO_ANSWER
    start = _place(passage, spans[0])
    if start is None:
        return ELSEWHERE
    return QuestionRecord(where, example_id, document_id, passage, question, (spans[0],), (start,))


def _date(answer: dict[str, Any], where: str) -> dict[str, Any]:
    date = member(answer, "date", where, FORM)
    if not isinstance(date, dict):
        raise UserError(f"{where}: date: found {shown(date)}; allowed: an object of day, month and year; mend the file")
    return date


def _place(passage: str, span: str) -> int | None:
    """First place of the span that is not amid a word; None: there is none."""
    start = passage.find(span)
    while start >= 0:
        end = start + len(span)
        amid = (span[0].isalnum() and passage[start - 1 : start].isalnum()) or (
            span[-1].isalnum() and passage[end : end + 1].isalnum()
        )
        if not amid:
            return start
        start = passage.find(span, start + 1)
    return None
