"""The official scores of SQuAD 1.1, on cases worked by hand and by properties."""

from __future__ import annotations

import string
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advsets.answers import answer_tokens, exact_match, f1, is_beaten, normalise_answer

WORDS = st.lists(st.sampled_from(["a", "The", "cat", "cat.", "sat", "«cat»", "7", "\u2003", "-"]), max_size=8)
PHRASES = WORDS.map(" ".join)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("The  Broncos!", "broncos"),
        ("Theatre an' anthem", "theatre anthem"),
        ("A.B.C.", "abc"),
        ("a.b", "ab"),
        ("U.S. a-bomb", "us abomb"),
        ("the\u00a0wide\u3000space\u2009here\n", "wide space here"),
        ("“the” – ‘quote’ ¿qué?", "“ ” – ‘quote’ ¿qué"),
        ("a–b", "–b"),
        ("a\u0301", "\u0301"),
        ("á la carte", "á la carte"),
        ("İ", "i\u0307"),
        ("👩\u200d👧 the 👍🏽", "👩\u200d👧 👍🏽"),
        ("AN", ""),
        (string.punctuation, ""),
        ("", ""),
    ],
)
def test_normalisation(text: str, wanted: str) -> None:
    assert normalise_answer(text) == wanted
    assert answer_tokens(text) == wanted.split()


def test_punctuation_goes_before_articles() -> None:
    assert normalise_answer("a.n apple") == "apple"
    assert normalise_answer("th-e") == ""


@pytest.mark.parametrize(("prediction", "gold"), [("A", "A"), ("", ""), ("the", "a"), ("...", "An!")])
def test_nothing_against_nothing_matches_exactly_without_a_shared_token(prediction: str, gold: str) -> None:
    assert exact_match(prediction, [gold])
    assert f1(prediction, [gold]) == 0.0
    assert is_beaten(prediction, [gold])


def test_nothing_against_something() -> None:
    assert not exact_match("", ["cat"]) and f1("", ["cat"]) == 0.0 and f1("cat", ["the"]) == 0.0


def test_overlap_counts_a_token_as_often_as_it_stands_in_both() -> None:
    assert f1("new new york", ["new york york"]) == pytest.approx(2 * 2 / 6)
    assert f1("cat cat cat", ["cat"]) == pytest.approx(0.5)
    assert f1("in 1066", ["the year 1066"]) == pytest.approx(0.5)


def test_best_of_several_gold_answers() -> None:
    gold = ["Denver Broncos", "the Broncos of Denver", "Broncos"]
    assert exact_match("broncos", gold)
    assert f1("Denver", gold) == pytest.approx(2 / 3)
    assert not exact_match("Denver", gold)


@pytest.mark.parametrize(
    ("prediction", "gold", "beaten"),
    [
        ("one two", ["one three four"], True),
        ("one two", ["one three"], False),
        ("one two", ["one three four five"], True),
        ("one", ["one two three four"], True),
        ("one", ["one two three"], False),
        ("one two", ["x", "one two"], False),
        ("b c d e f", ["b c x y z"], True),
        ("b c d e", ["b c x y z"], False),
        ("b b d e", ["b b x y z"], False),
    ],
)
def test_beaten_is_decided_exactly(prediction: str, gold: list[str], beaten: bool) -> None:
    assert is_beaten(prediction, gold) is beaten


@settings(deadline=None, max_examples=60)
@given(PHRASES, st.lists(PHRASES, min_size=1, max_size=3))
def test_scores_agree_with_the_definition(prediction: str, gold: list[str]) -> None:
    exact = []
    for answer in gold:
        left, right = answer_tokens(prediction), answer_tokens(answer)
        common = sum(min(left.count(token), right.count(token)) for token in set(left))
        exact.append(Fraction(2 * common, len(left) + len(right)) if common else Fraction(0))
    assert f1(prediction, gold) == pytest.approx(float(max(exact)), abs=1e-15)
    assert is_beaten(prediction, gold) is (max(exact) <= Fraction(2, 5))
    assert exact_match(prediction, gold) is (normalise_answer(prediction) in map(normalise_answer, gold))


@settings(deadline=None, max_examples=60)
@given(st.text(), st.text())
def test_scores_of_any_unicode(prediction: str, gold: str) -> None:
    assert exact_match(gold, [gold])
    assert f1(gold, [gold]) == (1.0 if answer_tokens(gold) else 0.0)
    assert f1(prediction, [gold]) == f1(gold, [prediction])
    assert not set(normalise_answer(gold)) & set(string.punctuation)


def test_gold_answers_are_a_list_that_holds_some() -> None:
    for score in (exact_match, f1, is_beaten):
        with pytest.raises(TypeError, match="one string"):
            score("a", "abc")
        with pytest.raises(ValueError, match="no gold answer"):
            score("a", [])
