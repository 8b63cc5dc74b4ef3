"""Kinds of questions by their question word, and of answers by rules on their form.

Conventions
-----------
Words are those of `words`; the rules are for English and see neither parse nor entities.

Question word: the first question word in the question ("In what year …" is what, "When he
died, who …" is when). `how many` and `how much` are how with that word right behind it.

Answer type, the first that holds of a question's first gold answer:

- `date`: words of dates alone (months, days of the week, numbers of at most four digits,
  ordinals, eras, "century", "early", "of", "to", …), among them a month, a day of the week, a year
  (1000 to 2099, so also a bare number that happens to lie there), a decade (1990s), a century or
  an era.
- `number`: begins with a numeral or number word (after "about", "more than", "the" and their
  like), and at most four of its words are neither.
- `capitalised`: begins every word with a capital or digit, save small words (of, the, and, de, …);
  mostly names, also any answer that opens a sentence and is one word.
- `clause`: holds an auxiliary verb, or opens with to, because, if, when, while or since.
- `phrase`: two words or more; `word`: one.
- `other`: no word at all, or no gold answer.
"""

from __future__ import annotations

import re

from advsets.evaluation.collected.words import words

WHOSE_OR_WHOM = "whose/whom"
QUESTION_WORDS = (
    "what", "who", "when", "where", "why", "which", "how many", "how much", "how", WHOSE_OR_WHOM, "other",
)  # fmt: skip
ANSWER_TYPES = ("date", "number", "capitalised", "clause", "phrase", "word", "other")


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SINGLE = frozenset(("what", "who", "when", "where", "why", "which"))
_MONTHS = _listed(
    "january february march april may june july august september october november december"
    " jan feb apr jun jul aug sep sept oct nov dec"
)
_DAYS = _listed("monday tuesday wednesday thursday friday saturday sunday")
_ERAS = _listed("bc bce ad ce century centuries")
_ORDINALS = _listed(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth"
    " fifteenth sixteenth seventeenth eighteenth nineteenth twentieth thirtieth"
)
_BESIDE_DATES = _listed(
    "the of in on at from to until through and between since by before after around about circa c early mid middle"
    " late end beginning start spring summer autumn fall winter"
)
_NUMBER_WORDS = _listed(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred hundreds thousand thousands"
    " million millions billion billions trillion dozen dozens half twice once"
)
_BEFORE_NUMBERS = _listed(
    "a the about around almost nearly roughly approximately some over under only just up to at least most more less"
    " fewer than between us"
)
_SMALL = _listed("of the a an and or in on at to for from by with de la le les du des von van der den di da del s")
_VERBS = _listed(
    "is are was were be been being has have had do does did can could will would shall should may might must"
)
_OPENERS = _listed("to because if when while since")
_YEAR, _DECADE = re.compile(r"1\d{3}|20\d{2}"), re.compile(r"(?:1\d|20)?\d0s")
_ORDINAL, _SHORT_NUMBER = re.compile(r"\d+(?:st|nd|rd|th)"), re.compile(r"\d{1,4}")
_MOST_BESIDE_NUMBERS = 4


def question_word(question: str) -> str:
    """Kind of a question, one of `QUESTION_WORDS`."""
    found = words(question)
    for word, following in zip(found, [*found[1:], ""], strict=False):
        if word in _SINGLE:
            return word
        if word in ("whose", "whom"):
            return WHOSE_OR_WHOM
        if word == "how":
            return f"how {following}" if following in ("many", "much") else "how"
    return "other"


def answer_type(answer: str | None) -> str:
    """Kind of an answer, one of `ANSWER_TYPES`; None: there is no gold answer."""
    written = words(answer or "", fold=False)
    folded = words(answer or "")
    if not folded:
        return "other"
    if _is_date(folded):
        return "date"
    if _is_number(folded):
        return "number"
    if _is_capitalised(written):
        return "capitalised"
    if folded[0] in _OPENERS or any(word in _VERBS for word in folded):
        return "clause"
    return "phrase" if len(folded) > 1 else "word"


def _is_date(found: list[str]) -> bool:
    anchors = [word for word in found if _is_anchor(word)]
    return bool(anchors) and all(word in anchors or _is_beside_dates(word) for word in found)


def _is_anchor(word: str) -> bool:
    named = word in _MONTHS or word in _DAYS or word in _ERAS
    return named or bool(_YEAR.fullmatch(word) or _DECADE.fullmatch(word))


def _is_beside_dates(word: str) -> bool:
    named = word in _BESIDE_DATES or word in _ORDINALS or word == "twenty"
    return named or bool(_SHORT_NUMBER.fullmatch(word) or _ORDINAL.fullmatch(word))


def _is_number(found: list[str]) -> bool:
    first = next((i for i, word in enumerate(found) if word not in _BEFORE_NUMBERS), len(found))
    beside = [word for word in found if not _is_numeral(word)]
    return first < len(found) and _is_numeral(found[first]) and len(beside) <= _MOST_BESIDE_NUMBERS


def _is_numeral(word: str) -> bool:
    return word in _NUMBER_WORDS or (word[0].isdigit() and not _ORDINAL.fullmatch(word))


def _is_capitalised(written: list[str]) -> bool:
    large = [word for word in written if word not in _SMALL and word.lower() != "the"]
    return any(word[0].isupper() for word in large) and all(word[0].isupper() or word[0].isdigit() for word in large)
