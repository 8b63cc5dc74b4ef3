"""Subsets are distinct, stratified, and a function of ids and key alone."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advsets.aflite.partitions import check_groups, draw_masks, label_quotas
from advsets.errors import UserError
from advsets.seeding import id_hashes

N = 500
HASHES = id_hashes([f"e{i}" for i in range(N)])
STRATA = np.arange(N) % 5 // 2  # labels 0, 1, 2 in shares 0.4, 0.4, 0.2


def draw(hashes=HASHES, strata=STRATA, train_size=51, n_partitions=64, seed=3, filtering_round=2, **groups):
    return draw_masks(hashes, strata, train_size, n_partitions, seed=seed, filtering_round=filtering_round, **groups)


def test_64_partitions_are_64_distinct_masks_of_the_wanted_size() -> None:
    masks = draw()
    assert len({mask.tobytes() for mask in masks}) == 64
    assert (masks.sum(1) == 51).all()


def test_every_mask_is_stratified() -> None:
    masks = draw()
    for label, wanted in ((0, 20.4), (1, 20.4), (2, 10.2)):
        assert np.abs(masks[:, label == STRATA].sum(1) - wanted).max() < 1


def test_rows_are_drawn_evenly() -> None:
    times = draw(n_partitions=2000).sum(0)
    assert abs(times.mean() - 2000 * 51 / N) < 1e-9
    assert times.std() == pytest.approx(np.sqrt(2000 * 0.102 * 0.898), rel=0.15)


def test_the_key_gives_the_same_masks_on_any_machine() -> None:
    digest = hashlib.sha256(np.packbits(draw()).tobytes()).hexdigest()
    assert digest == "fb2b397308d4e91ce88f872be3d537ff3c1d108038a6117745b4e485beae0a46"


def test_masks_follow_the_rows_when_these_are_permuted() -> None:
    order = np.random.default_rng(0).permutation(N)
    assert (draw(HASHES[order], STRATA[order]) == draw()[:, order]).all()


def test_a_mask_does_not_depend_on_the_other_masks() -> None:
    assert (draw(n_partitions=8) == draw()[:8]).all()


@pytest.mark.parametrize("change", [{"seed": 4}, {"filtering_round": 3}])
def test_another_seed_or_round_draws_other_masks(change: dict[str, int]) -> None:
    assert not (draw() == draw(**change)).all(axis=1).any()


def test_a_rare_label_is_in_every_mask() -> None:
    strata = np.r_[np.zeros(60, int), np.ones(38, int), [2, 2]]
    masks = draw(HASHES[:100], strata, train_size=10)
    assert (masks[:, strata == 2].sum(1) == 1).all()
    assert (masks.sum(1) == 10).all()
    assert masks[:, 98].any() and masks[:, 99].any()


@settings(deadline=None)
@given(st.lists(st.integers(1, 400), min_size=1, max_size=6), st.data())
def test_quotas_are_proportional_and_add_up(sizes: list[int], data: st.DataObject) -> None:
    strata = np.repeat(np.arange(len(sizes)), sizes)
    train_size = data.draw(st.integers(len(sizes), max(len(sizes), len(strata))))
    quotas = label_quotas(strata, train_size)
    assert sum(quotas.values()) == train_size
    for label, size in enumerate(sizes):
        assert 1 <= quotas[label] <= size
        if min(quotas.values()) > 1:
            assert abs(quotas[label] - size * train_size / len(strata)) < 1


def test_a_subset_too_small_for_the_labels_is_refused() -> None:
    with pytest.raises(UserError, match="train_size: 2 rows cannot hold one row of each of the 3 labels"):
        draw(train_size=2)


def test_groups_are_drawn_whole() -> None:
    groups = np.random.default_rng(1).integers(150, size=N)
    masks = draw(groups=groups, group_hashes=id_hashes([f"g{i}" for i in range(150)]))
    for group in range(150):
        inside = masks[:, groups == group]
        assert (inside.all(1) | ~inside.any(1)).all()
    sizes, largest = masks.sum(1), np.bincount(groups).max()
    assert (sizes <= 51).all() and (sizes > 51 - largest).all()
    assert len({mask.tobytes() for mask in masks}) == 64


def test_groups_cover_every_label() -> None:
    strata = np.zeros(N, int)
    strata[:4] = 1
    groups = np.arange(N) // 2
    masks = draw(strata=strata, groups=groups, group_hashes=id_hashes([f"g{i}" for i in range(N // 2)]))
    assert masks[:, :4].any(1).all()
    assert len({mask[:4].tobytes() for mask in masks}) > 1


def test_groups_that_are_gone_are_not_drawn() -> None:
    groups = np.repeat(np.arange(50), 10)
    hashes = id_hashes([f"g{i}" for i in range(50)])
    left = groups >= 20
    masks = draw(HASHES[left], STRATA[left], groups=groups[left], group_hashes=hashes)
    assert (masks.sum(1) == 50).all()


def test_a_group_larger_than_a_subset_is_refused() -> None:
    groups = np.array([0] * 4 + [1] * 7 + [2] * 6)
    check_groups(groups, ["a", "b", "c"], 7)
    with pytest.raises(
        UserError, match=r"group_id 'b' has 7 training rows, the largest of 2 group\(s\) .* raise train"
    ):
        check_groups(groups, ["a", "b", "c"], 5)


def test_groups_that_leave_no_row_held_out_are_refused() -> None:
    strata = np.repeat([0, 1], 30)
    with pytest.raises(UserError, match="one group of each label makes up all 60 training rows"):
        draw(HASHES[:60], strata, train_size=30, groups=strata, group_hashes=id_hashes(["a", "b"]))
