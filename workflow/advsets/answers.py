r"""Scores of an answer against gold answers, by the official rules of SQuAD 1.1.

Conventions
-----------
An answer is normalised in this order: lower case; the 32 ASCII punctuation characters are taken
out; the words a, an and the become a space; white space (any of Unicode) is squeezed. Its tokens
are what white space then separates. So punctuation outside ASCII (quotes, dashes, ¿) stays, and a
word ends where `\b` of Python's regular expressions says: "a–b" and a decomposed "á" lose their "a".

With several gold answers each score is the largest over them, as in the official script.

An answer of articles and punctuation alone ("A", "the", "...") normalises to nothing. Two such
answers match exactly (nothing equals nothing) but share no token, and F1 without a shared token
is 0: "A" against "A", "the" against "a" and "" against "" all have exact match 1 and F1 0. So
exact match can exceed F1. (SQuAD 2.0 changed that: there F1 is 1.)

A score is of an answer that was given. That a question without any counts as wrong, also where
the gold answer normalises to nothing, is for the caller to see to.

Source: Rajpurkar et al. 2016, section 6.1, and evaluate-v1.1.py of the SQuAD web site.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


def normalise_answer(text: str) -> str:
    """Lower-case text without ASCII punctuation and articles, with single spaces."""
    return " ".join(answer_tokens(text))


def answer_tokens(text: str) -> list[str]:
    """Tokens of an answer after normalisation; empty for articles and punctuation alone."""
    return _ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def exact_match(prediction: str, gold: Sequence[str]) -> bool:
    """Whether the answer equals one of the gold answers after normalisation.

    Raises
    ------
    TypeError, ValueError
        If `gold` is a single string, or empty.
    """
    given = answer_tokens(prediction)
    return any(given == answer_tokens(answer) for answer in _checked(gold))


def f1(prediction: str, gold: Sequence[str]) -> float:
    """Harmonic mean of token precision and recall, 0 to 1, the largest over the gold answers.

    A token counts as often as it stands in both (multiset overlap). Errors as of `exact_match`.
    """
    return max(2 * common / total if common else 0.0 for common, total in _overlaps(prediction, gold))


def is_beaten(prediction: str, gold: Sequence[str]) -> bool:
    """Whether the answer's F1 is at most 0.4, decided in integers; errors as of `exact_match`.

    F1 = 2 c / (p + g) of c common, p predicted and g gold tokens is at most 2/5 where 5 c <= p + g.
    That is the bound below which a model in the loop counts as beaten (Bartolo et al. 2020).
    """
    return all(5 * common <= total for common, total in _overlaps(prediction, gold))


def _overlaps(prediction: str, gold: Sequence[str]) -> Iterable[tuple[int, int]]:
    """Common tokens, and predicted plus gold tokens, for each gold answer."""
    given = Counter(answer_tokens(prediction))
    for answer in _checked(gold):
        wanted = Counter(answer_tokens(answer))
        yield (given & wanted).total(), given.total() + wanted.total()


def _checked(gold: Sequence[str]) -> Sequence[str]:
    if isinstance(gold, str):
        raise TypeError(f"gold answers {gold!r} are one string; allowed: a list of strings")
    if not len(gold):
        raise ValueError("no gold answer; allowed: one or more")
    return gold
