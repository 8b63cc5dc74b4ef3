from __future__ import annotations

import unicodedata

import numpy as np
import pytest

from advsets.errors import UserError
from advsets.models.backbone import load_tokenizer
from advsets.models.qa.spans import best_answers, mark_gold
from advsets.models.qa.windows import WindowSettings, cut_windows

KINDS = ("bert", "roberta", "albert", "bart", "electra", "deberta", "deberta-v2")
PLAIN = "Then the old captain found a lovely garden behind the harbour, and we sang. " * 6
ODD = [
    "cafe\u0301", "na\u00efve", "\U0001f469\u200d\U0001f680", "\u2764\ufe0f", "\U0001f44d\U0001f3fd", "\ufb01ne",
    "\u65e5\u672c\u8a9e", "\u0130stanbul", "\u03a9mega", "\u00bd", "\u1112\u1161\u11ab",
    "\u0928\u092e\u0938\u094d\u0924\u0947",
    "q\u0323\u0307", "\u0627\u0644\u0633\u0651\u0644\u0627\u0645", "stra\u00dfe", "plain",
]  # fmt: skip
"""Accents apart, joined and varied emoji, ligature, wide letters, jamo, vowel signs, two marks, right to left."""
SPACES = (" ", "\u3000", "\u00a0", "\t", "  ", "\u2003", "\n")


@pytest.fixture
def tokenizer_of(miniature):
    return lambda kind: load_tokenizer(miniature(f"hub:{kind}"))


def _windows(readers, tokenizer, context, *, max_length=40, stride=8, question="who found it", n_best=5):
    table = readers.questions_frame([context], [["x"]], [[-1]], question=[question])
    settings = WindowSettings(window_stride=stride, max_answer_tokens=64, n_best=n_best)
    return cut_windows(table, tokenizer, max_length, settings, "models: mini"), settings


@pytest.mark.parametrize("kind", KINDS)
def test_windows_are_those_that_the_tokenizer_cuts(readers, tokenizer_of, kind):
    tokenizer = tokenizer_of(kind)
    windows, _ = _windows(readers, tokenizer, PLAIN)
    cut = tokenizer(
        "who found it", PLAIN, truncation="only_second", max_length=40, stride=8, return_overflowing_tokens=True
    )
    bounds = windows.bounds(0)
    assert len(bounds) == len(cut.encodings) > 2
    for (start, stop), expected in zip(bounds, cut.encodings, strict=True):
        assert windows.data.tokens[start:stop].tolist() == expected.ids
        if kind != "deberta":  # whose tokenizer gives pieces that overflow other types than whole texts
            assert windows.data.types is None or windows.data.types[start:stop].tolist() == expected.type_ids
        inside = np.array([owner == 1 for owner in expected.sequence_ids])
        assert ((windows.places[start:stop] >= 0) == inside).all()
        for begin, end, (left, right), owner in zip(
            windows.begins[start:stop], windows.ends[start:stop], expected.offsets, expected.sequence_ids, strict=True
        ):
            assert PLAIN[begin:end] == (PLAIN[left:right].strip() if owner == 1 else "")


def test_windows_overlap_by_the_stride_or_by_half_of_what_fits(readers, tokenizer_of):
    for stride, shared in ((8, 8), (500, 16)):  # 40 tokens less 4 of the question and 3 special ones leave 33
        windows, _ = _windows(readers, tokenizer_of("bert"), PLAIN, stride=stride)
        places = [windows.places[a:b][windows.places[a:b] >= 0].tolist() for a, b in windows.bounds(0)]
        assert [len(p) for p in places[:-1]] == [33] * (len(places) - 1)
        for before, after in zip(places, places[1:], strict=False):
            assert before[-shared:] == after[:shared] or len(after) < shared
            assert after[0] == before[-shared]
        assert sorted({p for window in places for p in window}) == list(range(places[-1][-1] + 1))


def test_a_passage_that_just_fits_is_one_window(readers, tokenizer_of):
    tokenizer = tokenizer_of("bert")
    n = len(tokenizer("who found it", PLAIN)["input_ids"])
    for max_length, n_windows in ((n, 1), (n - 1, 2)):
        windows, _ = _windows(readers, tokenizer, PLAIN, max_length=max_length)
        assert windows.data.counts.tolist() == [n_windows]
        assert windows.data.sequence_lengths.max() == max_length


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_question_loses_its_end_and_is_counted(readers, tokenizer_of, kind):
    tokenizer = tokenizer_of(kind)
    windows, _ = _windows(readers, tokenizer, PLAIN, question="who was truly there " * 20)
    assert windows.n_cut == 1
    assert windows.data.sequence_lengths.max() == 40
    whole = tokenizer("who was truly there " * 20, PLAIN)["input_ids"]
    start, stop = windows.bounds(0)[0]
    n_question = int((windows.places[start:stop] >= 0).argmax())
    first = windows.data.tokens[start:stop]
    assert first[:20].tolist() == whole[:20]
    assert 20 <= n_question <= 24
    assert _windows(readers, tokenizer, PLAIN)[0].n_cut == 0


def test_passages_without_a_token_have_one_window_and_no_answer(readers, tokenizer_of):
    for context in ("", "  \u3000 "):
        windows, settings = _windows(readers, tokenizer_of("roberta"), context)
        assert windows.data.counts.tolist() == [1]
        assert not windows.answerable.any()
        scores = np.zeros((len(windows.places), 2))
        assert best_answers(windows, 0, scores, settings) == []


def _passage():
    """Odd words between odd spaces and plain words, and where each begins."""
    text, starts = "", []
    for k, word in enumerate(ODD):
        starts.append(len(text))
        text += word + SPACES[k % len(SPACES)] + "old" + SPACES[(k + 3) % len(SPACES)]
    return text, starts


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_length", [40, 120])
def test_any_word_is_found_at_its_very_place(readers, tokenizer_of, kind, max_length):
    text, starts = _passage()
    for k, (word, start) in enumerate(zip(ODD, starts, strict=True)):
        windows, settings = _windows(readers, tokenizer_of(kind), text, max_length=max_length, stride=17)
        gold = mark_gold(windows, [(start, start + len(word))])
        assert gold.held[0], (k, word)
        scores = np.stack([gold.begins, gold.ends], 1).astype(float)
        best = best_answers(windows, 0, scores, settings)[0]
        assert (best.begin, text[best.begin : best.end], best.logit) == (start, word, 2.0), k


@pytest.mark.parametrize("kind", KINDS)
def test_no_place_has_white_space_around_or_parts_a_letter_from_its_marks(readers, tokenizer_of, kind):
    text, _ = _passage()
    windows, _ = _windows(readers, tokenizer_of(kind), text, max_length=120)
    assert windows.answerable.sum() >= len(ODD)
    for begin, end in zip(windows.begins[windows.answerable], windows.ends[windows.answerable], strict=True):
        assert text[begin:end] == text[begin:end].strip() != ""
        assert not unicodedata.category(text[begin]).startswith("M")
        assert end == len(text) or not unicodedata.category(text[end]).startswith("M")


def test_a_tokenizer_that_does_not_tell_places_is_told(readers):
    from transformers import ByT5Tokenizer

    with pytest.raises(UserError, match="models: mini: ByT5Tokenizer does not tell where .* choose another model"):
        _windows(readers, ByT5Tokenizer(), PLAIN)


def test_no_room_for_the_passage_is_told(readers, tokenizer_of):
    with pytest.raises(UserError, match="max_length 5 leaves no room for the passage of 'q0000'; raise max_length"):
        _windows(readers, tokenizer_of("bert"), PLAIN, max_length=5)


def test_an_id_that_occurs_twice_is_told(readers, tokenizer_of):
    table = readers.questions(2).with_columns(example_id=np.array(["same", "same"]))
    with pytest.raises(UserError, match="questions: example_id 'same' occurs twice"):
        cut_windows(table, tokenizer_of("bert"), 40, readers.WINDOWS, "models: mini")
