"""Gold answers as tokens, and the best answers of a question by the scores of its tokens.

Conventions
-----------
An answer is a pair of places in the passage, `begin` and `end` in code points. Scores have shape
(n_tokens, 2): of an answer that begins, and of one that ends, at a token. All windows of a
question are read together: a place that several windows give counts with its highest score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advsets.models.qa.windows import Windows, WindowSettings


class Answer(NamedTuple):
    """An answer's place in the passage, and the sum of its two scores."""

    begin: int
    end: int
    logit: float


@dataclass(frozen=True)
class Gold:
    """Tokens at which gold answers begin and end, shape (n_tokens,), and questions that have any, (n_questions,)."""

    begins: NDArray[np.bool_]
    ends: NDArray[np.bool_]
    held: NDArray[np.bool_]


def mark_gold(windows: Windows, answers: list[tuple[int, int] | None]) -> Gold:
    """Tokens of the gold answers, in the windows that hold an answer whole.

    Parameters
    ----------
    answers : list
        Begin and end of the answer of each question, None where they are not known.

    Returns
    -------
    Gold
        `held` is false for a question whose answer is not known, is of no token, or is whole in
        no window.
    """
    n_tokens = len(windows.places)
    gold = Gold(np.zeros(n_tokens, bool), np.zeros(n_tokens, bool), np.zeros(len(answers), bool))
    for row, answer in enumerate(answers):
        bounds = windows.bounds(row)
        tokens = None if answer is None else _tokens_of(windows, bounds, *answer)
        if tokens is None:
            continue
        for start, stop in bounds:
            places = windows.places[start:stop]
            if tokens[0] in places and tokens[1] in places:
                gold.begins[start:stop] |= places == tokens[0]
                gold.ends[start:stop] |= places == tokens[1]
                gold.held[row] = True
    return gold


def _tokens_of(windows: Windows, bounds: list[tuple[int, int]], begin: int, end: int) -> tuple[int, int] | None:
    """First and last token of the passage that an answer touches; among several, one at its very edge.

    Tokens may overlap: a character of several bytes is several tokens at one place.
    """
    span = slice(bounds[0][0], bounds[-1][1])
    touched = windows.answerable[span] & (windows.begins[span] < end) & (windows.ends[span] > begin)
    places, kept = np.unique(windows.places[span][touched], return_index=True)
    if len(places) == 0:
        return None
    begins, ends = windows.begins[span][touched][kept], windows.ends[span][touched][kept]
    at_begin, at_end = np.flatnonzero(begins == begin), np.flatnonzero(ends == end)
    first = at_begin[0] if len(at_begin) else 0
    last = at_end[-1] if len(at_end) and at_end[-1] >= first else len(places) - 1
    return int(places[first]), int(places[last])


def best_answers(windows: Windows, row: int, scores: NDArray[np.floating], settings: WindowSettings) -> list[Answer]:
    """Best `n_best` answers of question `row`, best first; equal ones by earlier begin, then the shorter.

    Parameters
    ----------
    scores : array of shape (n_tokens_of_question, 2)
        Finite.
    """
    bounds = windows.bounds(row)
    base, parts = bounds[0][0], []
    for start, stop in bounds:
        window = scores[start - base : stop - base].astype(np.float64)
        parts.append(_candidates(windows, slice(start, stop), window, settings.max_answer_tokens))
    begins, ends, logits = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    most = 4 * settings.n_best
    if len(logits) > most:  # sorting few of them is enough, unless too many of those stand at one place
        kept = np.flatnonzero(logits >= np.partition(logits, -most)[-most])
        found = _distinct(begins[kept], ends[kept], logits[kept], settings.n_best)
        if len(found) == settings.n_best:
            return found
    return _distinct(begins, ends, logits, settings.n_best)


def _candidates(
    windows: Windows, tokens: slice, scores: NDArray[np.float64], most: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """Begin, end and score of every answer of at most `most` tokens in one window."""
    allowed = np.where(windows.answerable[tokens, None], scores, -np.inf)
    longest = min(most, len(allowed))
    ends = np.concatenate([allowed[:, 1], np.full(longest - 1, -np.inf)])
    table = allowed[:, 0, None] + np.lib.stride_tricks.sliding_window_view(ends, longest)
    first, further = np.nonzero(table > -np.inf)
    begin, end = windows.begins[tokens][first], windows.ends[tokens][first + further]
    return begin, end, table[first, further]


def _distinct(begins: NDArray[np.int32], ends: NDArray[np.int32], logits: NDArray[np.float64], n: int) -> list[Answer]:
    """Best `n` answers at different places."""
    found: dict[tuple[int, int], Answer] = {}
    for k in np.lexsort((ends, begins, -logits)):
        place = int(begins[k]), int(ends[k])
        if place not in found:
            found[place] = Answer(*place, float(logits[k]))
            if len(found) == n:
                break
    return list(found.values())
