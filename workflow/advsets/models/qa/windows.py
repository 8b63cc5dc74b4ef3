"""Questions and their passages as windows of tokens, each token with its place in the passage.

Conventions
-----------
An example is a question, its sequences are the windows of its passage: the question, then as many
of the passage's tokens as fit. Two neighbouring windows share `window_stride` tokens of the
passage, at most half of what fits. A question longer than half of `max_length` loses its end.
Places are Unicode code points into the passage, from `begin` to before `end`. A token's place is
without white space around it, and never parts a letter from the marks that follow it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from advsets.errors import UserError
from advsets.models import ranks
from advsets.models.batching import Tokenised, require_unique

if TYPE_CHECKING:
    import polars as pl

_TOKENISE_ROWS = 1000

_HANGUL_PARTS = frozenset(map(chr, (*range(0x1160, 0x1200), *range(0xD7B0, 0xD7FC))))
"""Vowels and finals of a decomposed syllable: letters to Unicode, one character to tokenizers that compose."""


@dataclass(frozen=True)
class WindowSettings:
    """How passages are cut and answers are read off.

    `window_stride` is the number of tokens that two windows share, `max_answer_tokens` the most of
    an answer, `n_best` the answers kept of a question.
    """

    window_stride: int
    max_answer_tokens: int
    n_best: int


@dataclass(frozen=True)
class Windows:
    """Windows of a set of questions, and what is known of each token, all of shape (n_tokens,).

    `places` counts the passage's tokens from 0 in every question (-1: no token of the passage);
    `begins` and `ends` are where a token stands in the passage; `answerable` are the tokens at
    which an answer may begin or end: those of the passage with something to see.
    """

    data: Tokenised
    places: NDArray[np.int32]
    begins: NDArray[np.int32]
    ends: NDArray[np.int32]
    answerable: NDArray[np.bool_]
    n_cut: int

    def bounds(self, row: int) -> list[tuple[int, int]]:
        """Where the tokens of each window of question `row` begin and end in the flat arrays."""
        sequences = range(int(self.data.offsets[row]), int(self.data.offsets[row + 1]))
        return [(int(self.data.starts[s]), int(self.data.starts[s + 1])) for s in sequences]


@dataclass(frozen=True)
class _Window:
    """Tokens of one window, their types, and which tokens of the passage they are."""

    ids: NDArray[np.int32]
    types: NDArray[np.int32]
    places: NDArray[np.int32]


def cut_windows(
    questions: pl.DataFrame, tokenizer: Any, max_length: int, settings: WindowSettings, where: str
) -> Windows:
    """Windows of `questions` in the order of `example_id`.

    Parameters
    ----------
    questions : DataFrame
        Table `questions`, or its columns example_id, question and context.
    max_length : int
        Tokens of a window, those of the question and special ones included.
    where : str
        What the messages name.

    Raises
    ------
    UserError
        If ids repeat, the tokenizer does not tell where its tokens stand, or `max_length` leaves
        no room for a passage.
    """
    if not tokenizer.is_fast:
        raise UserError(
            f"{where}: {type(tokenizer).__name__} does not tell where in a text its tokens stand; allowed: models"
            " with a tokenizer.json or files that convert to one; choose another model"
        )
    questions = questions.select("example_id", "question", "context").sort("example_id")
    ids = questions["example_id"].to_list()
    require_unique(ids, "questions")
    counts, windows, begins, ends, n_cut = [], [], [], [], 0
    for example_id, encoding, context in _encoded(questions, tokenizer):
        cut, was_cut = _cut(encoding, max_length, settings.window_stride)
        if not cut:
            raise UserError(
                f"{where}: max_length {max_length} leaves no room for the passage of {example_id!r}; raise max_length"
            )
        stands = np.array(_places(encoding, context), np.int32).reshape(-1, 2)
        stands = np.concatenate([stands, np.zeros((1, 2), np.int32)])  # for tokens at place -1
        windows += cut
        counts.append(len(cut))
        begins += [stands[window.places, 0] for window in cut]
        ends += [stands[window.places, 1] for window in cut]
        n_cut += was_cut
    has_types = "token_type_ids" in tokenizer.model_input_names
    begin, end = _joined(begins), _joined(ends)
    return Windows(
        Tokenised(
            ids,
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            np.concatenate([[0], np.cumsum([len(window.ids) for window in windows])]).astype(np.int64),
            _joined([window.ids for window in windows]),
            _joined([window.types for window in windows]) if has_types else None,
            tokenizer.pad_token_id or 0,
            tokenizer.pad_token_type_id,
            n_cut,
        ),
        _joined([window.places for window in windows]),
        begin,
        end,
        end > begin,
        n_cut,
    )


def report_windows(windows: Windows, max_length: int, what: str) -> None:
    """Say on stderr how many windows there are, and how many questions lost tokens."""
    n, n_windows = len(windows.data.example_ids), int(windows.data.offsets[-1])
    ranks.tell(
        f"{what}: {n} questions in {n_windows} windows of up to {max_length} tokens;"
        f" {windows.n_cut} questions lost their end"
    )


def _encoded(questions: pl.DataFrame, tokenizer: Any) -> Iterator[tuple[str, Any, str]]:
    """Id, tokens of question and passage, whole, and passage of each question."""
    for part in questions.iter_slices(_TOKENISE_ROWS):
        texts, contexts = part["question"].to_list(), part["context"].to_list()
        encoded = tokenizer(texts, text_pair=contexts, return_attention_mask=False, verbose=False)
        yield from zip(part["example_id"].to_list(), encoded.encodings, contexts, strict=True)


def _cut(encoding: Any, max_length: int, window_stride: int) -> tuple[list[_Window], bool]:
    """Windows of one question (none: `max_length` leaves no room), and whether the question lost its end."""
    owners = np.array([-1 if k is None else k for k in encoding.sequence_ids])
    asked, passage = np.flatnonzero(owners == 0), np.flatnonzero(owners == 1)
    kept = np.ones(len(owners), bool)
    kept[asked[max_length // 2 :]] = False
    first, last = (passage[0], passage[-1]) if len(passage) else (len(owners), len(owners))
    head, tail = np.flatnonzero(kept[:first]), np.arange(last + 1, len(owners))
    room = max_length - len(head) - len(tail)
    if room < 1:
        return [], False
    ids, types = np.array(encoding.ids, np.int32), np.array(encoding.type_ids, np.int32)
    step = room - min(window_stride, room // 2)
    windows = []
    for start in range(0, max(1, len(passage) - room + step), step):
        taken = np.concatenate([head, passage[start : start + room], tail]).astype(np.int64)
        places = np.where(owners[taken] == 1, taken - first, -1)
        windows.append(_Window(ids[taken], types[taken], places.astype(np.int32)))
    return windows, bool(len(asked) > max_length // 2)


def _places(encoding: Any, context: str) -> list[tuple[int, int]]:
    """Where each token of the passage stands; `begin` equals `end` where there is nothing to see."""
    pairs = zip(encoding.offsets, encoding.sequence_ids, strict=True)
    plain = context.isascii()
    return [_place(context, begin, end, plain) for (begin, end), owner in pairs if owner == 1]


def _place(context: str, begin: int, end: int, plain: bool) -> tuple[int, int]:
    while begin < end and context[begin].isspace():
        begin += 1
    while begin < end and context[end - 1].isspace():
        end -= 1
    if begin == end or plain:
        return begin, end
    while begin > 0 and _is_mark(context[begin]) and not context[begin - 1].isspace():
        begin -= 1
    while end < len(context) and _is_mark(context[end]):
        end += 1
    return begin, end


def _is_mark(character: str) -> bool:
    """Whether a character belongs to the letter before it: accents apart, vowel signs, parts of a Hangul syllable."""
    return unicodedata.category(character).startswith("M") or character in _HANGUL_PARTS


def _joined(parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    return np.concatenate(parts) if parts else np.zeros(0, np.int32)
