"""NaturalQuestions: the questions that one short answer within a long one, no table, answers.

Conventions
-----------
JSONL, one question a line, UTF-8, also .gz, in the simplified form (`document_text`, tokens parted
by single blanks) or the original one (`document_tokens`, with `html_token`), which the evaluation
questions come in. Of a line are read `example_id`, `question_text`, `document_title` or
`document_url`, and `annotations`, each with `long_answer`, `short_answers` (ranges of tokens, the
end left out) and `yes_no_answer`. Lines are read one by one, as the files are large.

Bartolo et al. (2020), section 4.4, take every long answer that is no table as a passage, remove HTML
tags, and take the short answer as the span. What that means is said here:

- The first annotation decides (training questions have one, evaluation questions five): its long
  answer is the passage. Later annotations with this long answer add their short answers as gold
  answers by the same rules; `questions.majority_answer` keeps one.
- A long answer is a table if any tag of a table (table, tr, td, th, caption) is in it.
- There is one short answer, within the long one; answers of several spans, and yes and no, are none.
- The passage is what is left of the long answer without tags, tokens parted by single blanks (so also
  before punctuation, as the source has it). A short answer is cut from this text, so it stands at its
  place exactly; tags within it are gone as well.
- The document is the page's title, by which a later state of the page is the same document.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from advsets.datasets.questions.records import QuestionRecord, shown, text_of
from advsets.datasets.questions.selection import Selected, member, members, selected
from advsets.datasets.tabular import json_lines
from advsets.errors import UserError

FORM = "NaturalQuestions"
NO_ANNOTATION, NO_LONG, TABLE = "no annotation", "no long answer", "long answer is a table"
YES_OR_NO, NO_SHORT, SEVERAL = "answer is yes or no", "no short answer", "answer is several spans"
OUTSIDE, MARKUP = "short answer outside the long one", "short answer of tags alone"

_TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9]*)[^<>]*>")
_TABLE_TAGS = frozenset(("table", "tr", "td", "th", "caption"))
Range = tuple[int, int]
"""First token and the one behind the last."""


def read_counted(path: Path, split: str) -> Selected:
    """Tables of a NaturalQuestions file, and how many questions were left out, by reason.

    Parameters
    ----------
    path : Path
        JSONL file, also .gz.
    split : str
        `train` or `evaluation`, for the column `split`.

    Raises
    ------
    UserError
        In one line, naming file and line, for whatever is not as the format says.
    """
    lines = ((entry, f"{path}, line {number}") for number, entry in json_lines(path))
    return selected((_question(entry, where) for entry, where in lines), split, str(path))


@dataclass(frozen=True)
class _Page:
    """Tokens of a page; `tags` has the tag's name in lower case where a token is one, else an empty text."""

    tokens: list[str]
    tags: list[str]

    def passage(self, span: Range) -> tuple[str, dict[int, Range]]:
        """Text of a range without tags, and where in it each of its tokens stands."""
        places: dict[int, Range] = {}
        parts, at = [], 0
        for i in range(*span):
            text = "" if self.tags[i] else self.tokens[i].strip()
            if text:
                parts.append(text)
                places[i] = (at, at + len(text))
                at += len(text) + 1
        return " ".join(parts), places


def _question(entry: Any, where: str) -> QuestionRecord | str:
    example_id = _id(entry, where)
    where = f"{where} (id {example_id!r})"
    page = _page(entry, where)
    annotations = members(entry, "annotations", where, FORM)
    if not annotations:
        return NO_ANNOTATION
    spans = [_spans(annotation, page, where) for annotation in annotations]
    if isinstance(spans[0], str):
        return spans[0]
    long = spans[0][0]
    context, places = page.passage(long)
    cuts = [_cut(pair[1], places) for pair in spans if not isinstance(pair, str) and pair[0] == long]
    if cuts[0] is None:
        return MARKUP
    ends = [cut for cut in cuts if cut is not None]
    question = text_of(member(entry, "question_text", where, FORM), where, "question_text")
    answers, starts = tuple(context[start:end] for start, end in ends), tuple(start for start, _ in ends)
    return QuestionRecord(where, example_id, _document(entry, where), context, question, answers, starts)


def _spans(annotation: Any, page: _Page, where: str) -> tuple[Range, Range] | str:
    """Long and short answer of an annotation, or why it is not used."""
    long = _range(member(annotation, "long_answer", where, FORM), page, where, "long_answer")
    if long is None:
        return NO_LONG
    if not _TABLE_TAGS.isdisjoint(page.tags[slice(*long)]):
        return TABLE
    given = members(annotation, "short_answers", where, FORM)
    short = [span for one in given if (span := _range(one, page, where, "short_answers")) is not None]
    if not short:
        return NO_SHORT if annotation.get("yes_no_answer", "NONE") == "NONE" else YES_OR_NO
    if len(short) > 1:
        return SEVERAL
    return (long, short[0]) if long[0] <= short[0][0] and short[0][1] <= long[1] else OUTSIDE


def _range(given: Any, page: _Page, where: str, name: str) -> Range | None:
    """Range of tokens; None where the source has none, which it says by -1."""
    start, end = (member(given, key, f"{where}, {name}", FORM) for key in ("start_token", "end_token"))
    if any(isinstance(value, bool) or not isinstance(value, int) for value in (start, end)):
        raise UserError(f"{where}, {name}: found {shown(given)}; allowed: start_token and end_token as whole numbers")
    if start == end == -1:
        return None
    if not 0 <= start < end <= len(page.tokens):
        raise UserError(
            f"{where}, {name}: found tokens {start} to {end}; allowed: a range within the {len(page.tokens)} tokens of"
            " the document; mend the line"
        )
    return start, end


def _cut(short: Range, places: dict[int, Range]) -> Range | None:
    """Where in the passage the short answer is; None: it holds tags alone."""
    inside = [places[i] for i in range(*short) if i in places]
    return (inside[0][0], inside[-1][1]) if inside else None


def _page(entry: Any, where: str) -> _Page:
    if "document_text" in entry:
        tokens = text_of(entry["document_text"], where, "document_text").split(" ")
        matches = [_TAG.fullmatch(token) for token in tokens]
        return _Page(tokens, [match.group(1).lower() if match else "" for match in matches])
    given = members(entry, "document_tokens", where, FORM)
    tokens = [text_of(member(one, "token", where, FORM), where, "token") for one in given]
    return _Page(
        tokens, [_name(t) if member(o, "html_token", where, FORM) else "" for o, t in zip(given, tokens, strict=True)]
    )


def _name(tag: str) -> str:
    match = _TAG.fullmatch(tag)
    return match.group(1).lower() if match else "?"


def _id(entry: Any, where: str) -> str:
    value = member(entry, "example_id", where, FORM)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return text_of(value, where, "example_id")


def _document(entry: dict[str, Any], where: str) -> str | None:
    """Title of the page, from its address where it is not given; the address where that holds none."""
    if entry.get("document_title"):
        return text_of(entry["document_title"], where, "document_title")
    if entry.get("document_url") is None:
        return None
    url = unescape(text_of(entry["document_url"], where, "document_url"))
    titles = parse_qs(urlsplit(url).query).get("title")
    return titles[0].replace("_", " ") if titles else url
