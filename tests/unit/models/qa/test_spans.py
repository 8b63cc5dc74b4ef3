from __future__ import annotations

import numpy as np
import pytest

from advsets.models.batching import Tokenised
from advsets.models.qa.spans import best_answers, mark_gold
from advsets.models.qa.windows import Windows, WindowSettings


def _windows(*questions):
    """Windows of questions, each a list of windows, each a list of (place, begin, end); place -1: outside."""
    flat = [token for question in questions for window in question for token in window]
    lengths = [len(window) for question in questions for window in question]
    places, begins, ends = (np.array(column, np.int32) for column in zip(*flat, strict=True))
    data = Tokenised(
        [f"q{k}" for k in range(len(questions))],
        np.cumsum([0, *map(len, questions)]),
        np.cumsum([0, *lengths]),
        np.zeros(len(flat), np.int32),
        None,
        0,
        0,
        0,
    )
    return Windows(data, places, begins, ends, ends > begins, 0)


def _settings(most=3, n=4):
    return WindowSettings(window_stride=1, max_answer_tokens=most, n_best=n)


OUTSIDE = (-1, 0, 0)


def _random_question(rng):
    """Windows over a passage whose tokens sometimes overlap or show nothing."""
    tokens, stop = [], 0
    for place in range(int(rng.integers(1, 12))):
        begin = stop + int(rng.integers(0, 3)) if place == 0 or rng.random() < 0.8 else tokens[-1][1]
        end = max(begin + int(rng.integers(0, 3)), tokens[-1][2] if tokens and tokens[-1][1] == begin else 0)
        tokens.append((place, begin, end))
        stop = max(stop, end)
    room, shared = int(rng.integers(1, 8)), int(rng.integers(0, 4))
    step = max(1, room - shared)
    return [[OUTSIDE, *tokens[k : k + room], OUTSIDE] for k in range(0, max(1, len(tokens) - room + step), step)]


def _brute_force(question, scores, most, n):
    """The same by trying every pair of tokens."""
    best, start = {}, 0
    for window in question:
        for i, (place, begin, _) in enumerate(window):
            for j in range(i, min(i + most, len(window))):
                end = window[j][2]
                ok = place >= 0 <= window[j][0] and window[i][2] > begin and end > window[j][1]
                if ok:
                    value = float(scores[start + i, 0]) + float(scores[start + j, 1])
                    best[begin, end] = max(value, best.get((begin, end), -np.inf))
        start += len(window)
    return sorted(best.items(), key=lambda item: (-item[1], item[0]))[:n]


@pytest.mark.parametrize("coarse", [False, True])
def test_answers_are_those_of_trying_every_pair(coarse):
    rng = np.random.default_rng(3)
    for _ in range(150):
        question = _random_question(rng)
        scores = rng.normal(size=(sum(map(len, question)), 2))
        scores = np.round(scores) if coarse else scores  # many ties
        most, n = int(rng.integers(1, 5)), int(rng.integers(1, 6))
        found = best_answers(_windows(question), 0, scores, _settings(most, n))
        assert [((a.begin, a.end), a.logit) for a in found] == _brute_force(question, scores, most, n)


def test_tokens_outside_the_passage_never_count():
    windows = _windows([[OUTSIDE, (0, 0, 3), (1, 4, 6), OUTSIDE]])
    scores = np.array([[99.0, 99.0], [1.0, 0.0], [0.0, 1.0], [99.0, 99.0]])
    assert [a[:2] for a in best_answers(windows, 0, scores, _settings())] == [(0, 6), (0, 3), (4, 6)]


def test_equal_scores_go_to_the_earlier_begin_then_the_shorter():
    windows = _windows([[(0, 0, 1), (1, 2, 3), (2, 4, 5)]])
    found = best_answers(windows, 0, np.zeros((3, 2)), _settings(most=2, n=9))
    assert [a[:2] for a in found] == [(0, 1), (0, 3), (2, 3), (2, 5), (4, 5)]


def test_places_in_two_windows_count_once_with_the_higher_score():
    windows = _windows([[(0, 0, 1), (1, 2, 3)], [(1, 2, 3), (2, 4, 5)]])
    scores = np.array([[0, 0], [1, 1], [4, 4], [0, 0]], float)
    found = best_answers(windows, 0, scores, _settings(most=1, n=9))
    assert [tuple(a) for a in found] == [(2, 3, 8.0), (0, 1, 0.0), (4, 5, 0.0)]


def test_many_tokens_at_one_place_do_not_crowd_out_other_answers():
    tokens = [(k, 0, 1) for k in range(30)] + [(30, 2, 3)]
    scores = np.concatenate([np.ones((30, 2)), np.zeros((1, 2))])
    found = best_answers(_windows([tokens]), 0, scores, _settings(most=1, n=2))
    assert [tuple(a) for a in found] == [(0, 1, 2.0), (2, 3, 0.0)]


def test_gold_is_marked_in_every_window_that_holds_it_whole():
    question = [[OUTSIDE, (0, 0, 3), (1, 4, 6), (2, 7, 9)], [OUTSIDE, (1, 4, 6), (2, 7, 9), (3, 10, 12)]]
    gold = mark_gold(_windows(question, question, question), [(4, 9), (0, 6), (0, 12)])
    assert gold.held.tolist() == [True, True, False]
    assert np.flatnonzero(gold.begins).tolist() == [2, 5, 8 + 1]
    assert np.flatnonzero(gold.ends).tolist() == [3, 6, 8 + 2]


def test_gold_inside_a_token_takes_the_token_and_unknown_gold_is_not_held():
    question = [[OUTSIDE, (0, 0, 3), (1, 4, 9)]]
    gold = mark_gold(_windows(question, question, question), [(5, 7), None, (3, 4)])
    assert gold.held.tolist() == [True, False, False]  # the last is the space between
    assert np.flatnonzero(gold.begins).tolist() == np.flatnonzero(gold.ends).tolist() == [2]


def test_gold_keeps_to_the_tokens_at_its_very_edges():
    """An empty-looking piece before a letter stands at that letter's place; a letter may be several tokens."""
    question = [[(0, 0, 1), (1, 0, 3), (2, 3, 4), (3, 3, 4), (4, 4, 6)]]
    gold = mark_gold(_windows(question, question), [(0, 1), (3, 4)])
    assert np.flatnonzero(gold.begins).tolist() == [0, 5 + 2]
    assert np.flatnonzero(gold.ends).tolist() == [0, 5 + 3]
