"""Questions of a source that is used in part: those that are kept, and why the others are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from advsets.datasets.questions.records import Frames, QuestionRecord, frames, shown
from advsets.errors import UserError, allowed

Selected = tuple[Frames, dict[str, int]]
"""Tables `questions` and `answer_mismatches`, and how many questions were left out, by reason."""


def selected(questions: Iterable[QuestionRecord | str], split: str, where: str) -> Selected:
    """Tables of the questions that are kept, and counts of the others.

    Parameters
    ----------
    questions : iterable of QuestionRecord or str
        A question, or the reason why one is left out.
    split, where : str
        As of `records.frames`.

    Raises
    ------
    UserError
        As of `records.frames`; also where every question is left out, with the reasons.
    """
    left_out: Counter[str] = Counter()
    tables = frames(_kept(questions, left_out, where), split, where)
    return tables, dict(sorted(left_out.items()))


def _kept(questions: Iterable[QuestionRecord | str], left_out: Counter[str], where: str) -> Iterator[QuestionRecord]:
    n_kept = 0
    for question in questions:
        if isinstance(question, str):
            left_out[question] += 1
        else:
            n_kept += 1
            yield question
    if left_out and not n_kept:
        reasons = ", ".join(f"{n}: {reason}" for reason, n in sorted(left_out.items()))
        raise UserError(
            f"{where}: none of {left_out.total()} questions can be used ({reasons}); give a file with others"
        )


def member(holder: Any, key: str, where: str, form: str) -> Any:
    """Value of an object's key; `form` names the format for messages."""
    if not isinstance(holder, dict):
        raise UserError(f"{where}: found {shown(holder)}; allowed: an object; give the file in the format of {form}")
    if key not in holder:
        found = allowed(sorted(holder)) or "nothing"
        raise UserError(f"{where}: key {key!r} is missing; found: {found}; give the file in the format of {form}")
    return holder[key]


def members(holder: Any, key: str, where: str, form: str) -> list[Any]:
    """The list under an object's key."""
    found = member(holder, key, where, form)
    if not isinstance(found, list):
        raise UserError(f"{where}: {key}: found {shown(found)}; allowed: a list; mend the file")
    return found
