"""Tables `ranks` and `rank_stability`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import kendalltau

from advsets.evaluation.ranks import random_tau, rank_stability, ranks
from advsets.evaluation.study import Study
from advsets.seeding import rng_for
from advsets.stats.ranking import kendall_tau_b

Make = Callable[..., Study]

CORRECT = {
    ("big", 0): [1, 1, 1, 1, 1, 0, 0, 0],
    ("mid", 0): [1, 1, 1, 0, 1, 0, 0, 0],
    ("mid", 1): [1, 1, 1, 1, 0, 0, 0, 0],
    ("low", 0): [1, 0, 0, 0, 0, 0, 1, 1],
}
RETAINED = {("big", 0): [0, 0, 0, 0, 1, 1, 1, 1]}


def test_ranks_by_hand(make_study: Make) -> None:
    frame = ranks(make_study(CORRECT, RETAINED))
    found = {row["evaluated_model"]: row for row in frame.to_dicts()}
    assert {m: row["rank_full_set"] for m, row in found.items()} == {"big": 1, "mid": 2, "low": 3}
    # kept are the last four: big 1/4, mid (1/4 + 0) / 2, low 2/4
    assert found["mid"]["accuracy_filtered"] == pytest.approx(1 / 8)
    assert {m: row["rank_filtered"] for m, row in found.items()} == {"big": 2, "mid": 3, "low": 1}
    assert {row["adversary_strength"] for row in found.values()} == {5 / 8}


def test_equal_models_share_a_rank_whatever_their_seeds(make_study: Make) -> None:
    # means over three seeds of (0.1, 0.2, 0.3) and (0.2, 0.2, 0.2): equal as fractions
    first = {("a", s): [1] * k + [0] * (10 - k) for s, k in enumerate((1, 2, 3))}
    second = {("b", s): [1] * 2 + [0] * 8 for s in range(3)}
    frame = ranks(make_study({**first, **second}, {("x", 0): [1] * 10}))
    assert frame["rank_full_set"].to_list() == [1.5, 1.5]


def test_strength_is_null_when_the_adversary_is_not_evaluated(make_study: Make) -> None:
    study = make_study({("m", 0): [1, 0], ("n", 0): [0, 0]}, {("other", 0): [1, 1]})
    assert ranks(study)["adversary_strength"].null_count() == 2
    assert rank_stability(study)["adversary_strength"].to_list() == [None]


def test_stability_by_hand(make_study: Make) -> None:
    (row,) = rank_stability(make_study(CORRECT, RETAINED)).to_dicts()
    assert (row["n_retained"], row["retained_share"]) == (4, 0.5)
    # big > mid > low becomes low > big > mid: one of three pairs keeps its order
    assert row["tau_b"] == pytest.approx(-1 / 3)
    assert row["rank_change_mean"] == pytest.approx(4 / 3)


def test_bounds_and_random_draws_equal_brute_force(make_study: Make) -> None:
    rng = np.random.default_rng(3)
    correct = {(m, 0): rng.random(60) < p for m, p in zip("abcd", (0.5, 0.6, 0.7, 0.8), strict=True)}
    kept = rng.random(60) < 0.4
    study = make_study(correct, {("a", 0): kept}, changes={"n_bootstrap": 100, "n_random_subsets": 40})
    right = np.stack(list(correct.values()), axis=1)
    (row,) = rank_stability(study).to_dicts()
    taus = []
    for b in range(100):
        drawn = rng_for(0, "bootstrap", b).integers(0, 60, 60)
        taus.append(kendalltau(right[drawn].mean(axis=0), right[drawn[kept[drawn]]].mean(axis=0)).statistic)
    np.testing.assert_allclose([row["tau_b_low"], row["tau_b_high"]], np.nanquantile(taus, [0.025, 0.975]))
    chance = []
    for r in range(40):
        chosen = rng_for(0, "random_subset", r).permutation(60) < kept.sum()
        chance.append(kendalltau(right.mean(axis=0), right[chosen].mean(axis=0)).statistic)
    np.testing.assert_allclose(random_tau(study)[:, 0], chance)
    assert row["tau_b_random_low"] == pytest.approx(min(chance))
    assert row["tau_b_random_high"] == pytest.approx(max(chance))
    assert row["tau_b_random_mean"] == pytest.approx(np.mean(chance))


@pytest.mark.parametrize("kept", [[0] * 8, [1, 0, 0, 0, 0, 0, 0, 0]])
def test_subsets_that_rank_nothing_give_nulls(make_study: Make, kept: list[int]) -> None:
    study = make_study({k: v for k, v in CORRECT.items() if k[0] != "mid"}, {("big", 0): kept})
    (row,) = rank_stability(study).to_dicts()
    assert row["tau_b"] is None
    assert row["n_retained"] == sum(kept)


def test_one_model_has_no_ranking(make_study: Make) -> None:
    (row,) = rank_stability(make_study({("big", 0): CORRECT["big", 0]}, RETAINED)).to_dicts()
    for column in ("tau_b", "tau_b_low", "tau_b_random_mean", "rank_change_mean", "rank_change_random_mean"):
        assert row[column] is None


def test_the_whole_set_as_subset_changes_nothing(make_study: Make) -> None:
    study = make_study(CORRECT, {("big", 0): [1] * 8})
    (row,) = rank_stability(study).to_dicts()
    assert row["tau_b"] == row["tau_b_random_low"] == row["tau_b_random_high"] == 1
    assert row["rank_change_mean"] == row["rank_change_random_mean"] == 0
    assert np.all(kendall_tau_b(study.model_accuracy[0], study.model_accuracy[1:]) == 1)
