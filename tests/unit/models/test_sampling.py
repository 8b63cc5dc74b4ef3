from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from advsets.models.sampling import cap_examples, selection_mask


def test_cap_keeps_class_proportions_and_ignores_row_order(kit):
    frame = kit.examples_frame(["soup"] * 100, ["good"] * 61 + ["bad"] * 39)
    capped = cap_examples(frame, 10, seed=0)
    assert capped["label"].value_counts().sort("label")["count"].to_list() == [4, 6]
    assert capped.equals(cap_examples(frame.sample(fraction=1, shuffle=True, seed=3), 10, seed=0))
    assert not capped.equals(cap_examples(frame, 10, seed=1))
    assert set(capped["example_id"]) <= set(cap_examples(frame, 20, seed=0)["example_id"])


@pytest.mark.parametrize("n_most", [None, 100, 1000])
def test_cap_leaves_smaller_sets_alone(kit, n_most):
    frame = kit.sentences(100)
    assert cap_examples(frame, n_most, seed=0).equals(frame)


def test_selection_takes_whole_groups():
    ids = [f"e{i}" for i in range(200)]
    groups = [f"g{i % 40}" for i in range(200)]
    mask = selection_mask(ids, groups, 0.1, seed=0)
    assert mask.sum() == 20
    chosen = {g for g, hit in zip(groups, mask, strict=True) if hit}
    assert not chosen & {g for g, hit in zip(groups, mask, strict=True) if not hit}
    order = np.random.default_rng(0).permutation(200)
    again = selection_mask([ids[i] for i in order], [groups[i] for i in order], 0.1, seed=0)
    assert np.array_equal(again, mask[order])


def test_selection_share_zero_takes_nothing():
    assert selection_mask(["a", "b"], [None, None], 0, seed=0).tolist() == [False, False]


def test_an_id_that_equals_a_group_is_another_key():
    mask = selection_mask(["x", "y", "z"], [None, "x", "x"], 0.2, seed=0)
    assert mask[1] == mask[2]
    assert pl.Series(mask).sum() in (1, 2)
