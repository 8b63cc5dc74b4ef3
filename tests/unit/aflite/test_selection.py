"""Who leaves: exact thresholds, the order of ties, whole groups."""

from __future__ import annotations

import numpy as np
import pytest

from advsets.aflite.selection import Units, above_threshold, make_units, take_down_to, take_slice
from advsets.seeding import id_hashes, mix


def units(n_correct, n_held_out, margin=None, groups=None) -> Units:
    n = len(n_correct)
    hashes = id_hashes([f"e{i}" for i in range(n)])
    margins = np.zeros(n) if margin is None else np.array(margin, float)
    names = None if groups is None else id_hashes([f"g{i}" for i in range(max(groups) + 1)])
    held_out = np.broadcast_to(n_held_out, n).astype(np.int64)
    grouping = None if groups is None else np.array(groups)
    return make_units(held_out, np.array(n_correct), margins, hashes, 0, grouping, names)


@pytest.mark.parametrize(
    ("correct", "held_out", "threshold", "more_than", "at_least"),
    [
        (48, 64, 0.75, False, True),
        (49, 64, 0.75, True, True),
        (47, 64, 0.75, False, False),
        (7, 10, 0.7, False, True),  # 0.7 is below 7/10 in binary
        (3, 10, 0.3, False, True),
        (0, 0, 0.75, False, False),
        (64, 64, 1.0, False, True),
    ],
)
def test_the_threshold_is_exact(correct: int, held_out: int, threshold: float, more_than: bool, at_least: bool) -> None:
    one = units([correct], held_out)
    assert above_threshold(one, threshold, "more_than")[0] == more_than
    assert above_threshold(one, threshold, "at_least")[0] == at_least


def test_order_is_predictability_then_margin_then_hash() -> None:
    many = units([9, 10, 10, 10, 10, 3], 10, [9.0, 1.0, 2.0, 1.0, 1.0, 50.0])
    keys = mix(id_hashes([f"e{i}" for i in range(6)]), 0, "tie")
    tied = sorted([1, 3, 4], key=lambda i: keys[i])
    assert many.order().tolist() == [2, *tied, 0, 5]


def test_fractions_with_other_denominators_are_compared_exactly() -> None:
    assert units([2, 62, 61], [3, 93, 92]).order().tolist()[2] == 2  # 2/3 = 62/93 > 61/92


def test_margins_a_rounding_error_apart_are_tied() -> None:
    n = 60
    noise = np.random.default_rng(0).normal(size=n) * 1e-14
    keys = mix(id_hashes([f"e{i}" for i in range(n)]), 0, "tie")
    for centre in (0.0, 1.0, 1.23456750000, 3e-9):
        assert units([5] * n, 5, centre + noise).order().tolist() == np.argsort(keys).tolist()


def test_a_slice_takes_the_first_and_counts_ties_at_the_cut() -> None:
    many = units([10, 10, 9, 10, 9, 9], 10, [3, 2, 9, 1, 8, 7])
    candidates = np.array([True, True, True, True, True, False])
    removed, n_tied = take_slice(many, candidates, 2)
    assert np.flatnonzero(removed).tolist() == [0, 1] and n_tied == 3
    removed, n_tied = take_slice(many, candidates, 4)
    assert np.flatnonzero(removed).tolist() == [0, 1, 2, 3] and n_tied == 2
    removed, n_tied = take_slice(many, candidates, 5)
    assert np.flatnonzero(removed).tolist() == [0, 1, 2, 3, 4] and n_tied == 0
    removed, n_tied = take_slice(many, np.zeros(6, bool), 5)
    assert not removed.any() and n_tied == 0


def test_sixty_percent_tied_at_one_gives_the_same_ids_for_any_order() -> None:
    n = 1000
    rng = np.random.default_rng(1)
    correct = np.where(rng.random(n) < 0.6, 64, rng.integers(30, 64, n))
    hashes = id_hashes([f"e{i}" for i in range(n)])
    chosen = []
    for order in (np.arange(n), rng.permutation(n)):
        some = make_units(np.full(n, 64), correct[order], np.zeros(n), hashes[order], 0)
        removed, n_tied = take_slice(some, above_threshold(some, 0.75, "more_than"), 20)
        assert removed.sum() == 20 and n_tied == (correct == 64).sum()
        chosen.append(set(order[removed]))
    assert chosen[0] == chosen[1]


def test_a_group_leaves_whole_by_the_mean_over_its_rows() -> None:
    # means 0.75, 0.9, 0.8: the row with 10 of 10 stays with its group
    grouped = units([10, 5, 9, 9, 8, 8], 10, groups=[0, 0, 1, 1, 2, 2])
    above = above_threshold(grouped, 0.75, "more_than")
    assert above.tolist() == [False, True, True]
    assert above_threshold(grouped, 0.75, "at_least").tolist() == [True, True, True]
    removed, _ = take_slice(grouped, above, 2)
    assert np.flatnonzero(removed).tolist() == [2, 3]


def test_the_group_that_reaches_the_slice_may_overshoot() -> None:
    grouped = units([10, 10, 10, 9, 9, 9], 10, groups=[0, 0, 1, 2, 2, 2], margin=[3, 3, 2, 1, 1, 1])
    removed, _ = take_slice(grouped, np.ones(3, bool), 4)
    assert removed.sum() == 6
    removed, _ = take_slice(grouped, np.ones(3, bool), 3)
    assert np.flatnonzero(removed).tolist() == [0, 1, 2]


def test_take_down_to_stops_at_the_target_and_skips_groups_that_do_not_fit() -> None:
    rows = units([10, 9, 8, 7], 10)
    assert np.flatnonzero(take_down_to(rows, np.ones(4, bool), 4, 2)).tolist() == [0, 1]
    grouped = units([10, 10, 10, 9, 9, 8], 10, groups=[0, 0, 0, 1, 1, 2])
    assert np.flatnonzero(take_down_to(grouped, np.ones(3, bool), 6, 2)).tolist() == [0, 1, 2, 5]


def test_rows_never_held_out_are_never_taken() -> None:
    some = units([0, 0, 5], [0, 5, 5], [np.nan, -1, 1])
    assert some.order().tolist() == [2, 1]
    assert np.isnan(some.predictability[0])
