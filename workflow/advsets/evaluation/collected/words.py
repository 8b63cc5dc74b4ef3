"""Words of a text, and the longest run of words that two texts share.

Conventions
-----------
A word is a longest run of letters, digits and combining marks, after Unicode case folding:
punctuation, symbols, emoji and underscores part words and are none ("Luther's" is luther, s;
"1,500" is 1, 500). Composed and decomposed letters are equal (NFC). Soft hyphens and zero-width
joiners are passed over. A language that writes without spaces has one word per run of letters.
Articles count, as do words on both sides of a full stop.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

_PASSED_OVER = dict.fromkeys((0x00AD, 0x200C, 0x200D))
_PLAIN = re.compile("[A-Za-z0-9]+")


def words(text: str, fold: bool = True) -> list[str]:
    """Words of a text in order; `fold` false keeps their case."""
    if text.isascii():
        return _PLAIN.findall(text.lower() if fold else text)
    text = unicodedata.normalize("NFC", text.translate(_PASSED_OVER))
    if fold:
        text = unicodedata.normalize("NFC", text.casefold())
    return "".join(c if c.isalnum() or unicodedata.category(c)[0] == "M" else " " for c in text).split()


class RunsOfWords:
    """Every run of words of one text, as a suffix automaton.

    Building takes time and space linear in the number of words, a search time linear in those
    of the other text. Source: Blumer et al. (1985), The smallest automaton recognizing the
    subwords of a text.
    """

    def __init__(self, text_words: Iterable[str]) -> None:
        # State 0 is the empty run; a state's link is the longest ending of its runs that is another state.
        self._next: list[dict[str, int]] = [{}]
        self._link = [-1]
        self._length = [0]
        last = 0
        for word in text_words:
            last = self._extend(last, word)

    def _extend(self, last: int, word: str) -> int:
        new = self._add({}, 0, self._length[last] + 1)
        state = last
        while state >= 0 and word not in self._next[state]:
            self._next[state][word] = new
            state = self._link[state]
        if state >= 0:
            self._link[new] = self._ending(state, word)
        return new

    def _ending(self, state: int, word: str) -> int:
        """State of the run of `state` with `word` behind it, split off its class where that has longer runs."""
        target, length = self._next[state][word], self._length[state] + 1
        if self._length[target] == length:
            return target
        copy = self._add(dict(self._next[target]), self._link[target], length)
        self._link[target] = copy
        while state >= 0 and self._next[state].get(word) == target:
            self._next[state][word] = copy
            state = self._link[state]
        return copy

    def _add(self, following: dict[str, int], link: int, length: int) -> int:
        self._next.append(following)
        self._link.append(link)
        self._length.append(length)
        return len(self._next) - 1

    def longest_shared(self, other_words: Iterable[str]) -> int:
        """Length in words of the longest run that the other words have too; 0: not one word."""
        best = length = state = 0
        for word in other_words:
            while state > 0 and word not in self._next[state]:
                state = self._link[state]
                length = self._length[state]
            if word in self._next[state]:
                state, length = self._next[state][word], length + 1
            best = max(best, length)
        return best


def longest_shared_runs(passages: Sequence[str], questions: Sequence[str]) -> list[int]:
    """Longest n-gram (in words) that each question shares with its own passage, in order.

    Parameters
    ----------
    passages, questions : sequences of str
        Of equal length; equal passages are read once.
    """
    of_passage: dict[str, list[int]] = {}
    for i, passage in enumerate(passages):
        of_passage.setdefault(passage, []).append(i)
    lengths = [0] * len(questions)
    for passage, own in of_passage.items():
        runs = RunsOfWords(words(passage))
        for i in own:
            lengths[i] = runs.longest_shared(words(questions[i]))
    return lengths
