"""Draws depend on the unit alone, keep units whole, and hit the sizes they promise."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from advsets.datasets.splitting import evaluation_mask, subsample_mask, train_roles

UNITS = pl.Series([f"u{i}" for i in range(4000)])


def test_shares_are_close_to_what_was_asked() -> None:
    assert abs(evaluation_mask(UNITS, 0.3).mean() - 0.3) < 0.03
    assert abs((train_roles(UNITS, 0.2, 0) == "adversary").mean() - 0.2) < 0.03


def test_other_rows_change_nothing() -> None:
    few = UNITS[100:200]
    assert evaluation_mask(few, 0.3).equals(evaluation_mask(UNITS, 0.3)[100:200])
    assert train_roles(few, 0.5, 3).equals(train_roles(UNITS, 0.5, 3)[100:200])


def test_draws_for_different_purposes_are_independent() -> None:
    evaluation, adversary = evaluation_mask(UNITS, 0.5), train_roles(UNITS, 0.5, 0) == "adversary"
    assert abs((evaluation & adversary).mean() - 0.25) < 0.03
    assert not train_roles(UNITS, 0.5, 1).equals(train_roles(UNITS, 0.5, 0))


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=60), st.integers(1, 60), st.integers(0, 3))
def test_single_rows_give_exactly_the_limit_with_every_share_kept(labels: list[str], n_max: int, seed: int) -> None:
    units = pl.Series([f"r{i}" for i in range(len(labels))])
    names = pl.Series(labels)
    mask = subsample_mask(units, names, n_max, seed)
    assert mask.sum() == min(n_max, len(labels))
    for label in set(labels):
        exact = labels.count(label) * min(n_max, len(labels)) / len(labels)
        assert abs((mask & (names == label)).sum() - exact) < 1


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from("ab")), min_size=1, max_size=60), st.integers(1, 60))
def test_groups_are_taken_whole_within_the_limit(rows: list[tuple[int, str]], n_max: int) -> None:
    units, labels = pl.Series([f"g{g}" for g, _ in rows]), pl.Series([label for _, label in rows])
    mask = subsample_mask(units, labels, n_max, 0)
    assert mask.sum() <= n_max or mask.sum() == len(rows) <= n_max
    assert not set(units.filter(mask)) & set(units.filter(~mask))


def test_a_group_larger_than_the_share_of_its_label_is_passed_over() -> None:
    units = pl.Series(["big"] * 40 + [f"s{i}" for i in range(20)])
    for seed in range(5):
        mask = subsample_mask(units, pl.Series(["x"] * 60), 10, seed)
        assert mask.sum() == 10 and not mask[:40].any()


def test_subsample_ignores_row_order() -> None:
    labels = pl.Series(["x", "y", "y", "z"] * 1000)
    mask = subsample_mask(UNITS, labels, 500, 1)
    backwards = subsample_mask(UNITS.reverse(), labels.reverse(), 500, 1)
    assert backwards.reverse().equals(mask)
