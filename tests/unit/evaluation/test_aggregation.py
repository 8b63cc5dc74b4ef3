from __future__ import annotations

import numpy as np
import pytest

from advsets.evaluation.aggregation import METHODS, aggregate_ranks, aggregate_stability

RNG = np.random.default_rng(5)
N = 120
SKILL = {"good": 0.8, "fair": 0.6, "poor": 0.3}
CORRECT = {(m, s): (RNG.random(N) < p).astype(int).tolist() for m, p in SKILL.items() for s in (0, 1)}
KEPT = {(m, 0): (RNG.random(N) < 0.5).astype(int).tolist() for m in SKILL}
FAMILIES = {"good": "one", "fair": "one", "poor": "two"}


@pytest.fixture
def study(make_study):
    return make_study(CORRECT, KEPT, families=FAMILIES)


def _scores(study, method):
    frame = aggregate_ranks(study).filter(method=method)
    return dict(frame.select("evaluated_model", "method_score").iter_rows())


def test_weighted_counts_an_example_once_for_each_adversary_that_keeps_it(study):
    times = sum(np.array(kept) for kept in KEPT.values())
    for model in SKILL:
        right = (np.array(CORRECT[model, 0]) + np.array(CORRECT[model, 1])) / 2
        assert _scores(study, "weighted")[model] == pytest.approx(right @ times / times.sum())


def test_weighted_by_family_halves_the_weight_of_a_family_of_two(study):
    times = (np.array(KEPT["good", 0]) + np.array(KEPT["fair", 0])) / 2 + np.array(KEPT["poor", 0])
    right = (np.array(CORRECT["poor", 0]) + np.array(CORRECT["poor", 1])) / 2
    assert _scores(study, "weighted_by_family")["poor"] == pytest.approx(right @ times / times.sum())


@pytest.mark.parametrize("method", ["full_set", *METHODS])
def test_each_method_ranks_by_skill_and_bounds_its_score(study, method):
    frame = aggregate_ranks(study).filter(method=method)
    ranks = dict(frame.select("evaluated_model", "rank").iter_rows())
    assert ranks == {"good": 1.0, "fair": 2.0, "poor": 3.0}
    assert (frame["method_score_low"] <= frame["method_score"] + 1e-9).all()
    assert (frame["method_score_high"] >= frame["method_score"] - 1e-9).all()
    assert (frame["rank_low"] <= frame["rank"]).all()


def test_an_empty_subset_is_left_out(make_study):
    empty = {**KEPT, ("none", 0): [0] * N}
    for method in METHODS:
        assert _scores(make_study(CORRECT, empty), method) == pytest.approx(_scores(make_study(CORRECT, KEPT), method))


def test_stability_of_the_same_skill_everywhere_is_high(study):
    found = {r["method"]: r for r in aggregate_stability(study).to_dicts() if r["method"] != "single_adversary"}
    for row in found.values():
        assert row["tau_b_full_set"] == 1.0
        assert row["tau_b_unseen"] == 1.0
        assert 0.8 < row["tau_b_draws_mean"] <= 1.0


def test_an_unseen_adversary_takes_no_part_in_the_ranking_that_foretells_it(make_study):
    """Two adversaries rank m1 first, a third ranks it last: only the third's subset is foretold wrongly."""
    first = [1, 0] * 10 + [0, 1] * 5
    second = [0, 1] * 10 + [1, 0] * 5
    kept = {
        ("a", 0): [1, 0] * 10 + [0, 0] * 5,
        ("b", 0): [1, 0] * 10 + [0, 0] * 5,
        ("c", 0): [0] * 20 + [0, 0, 1, 0, 1] * 2,
    }
    kept["c", 0] = [0] * 20 + [1, 0] * 5
    study = make_study({("m1", 0): first, ("m2", 0): second}, kept)
    rows = aggregate_stability(study).filter(method="mean_rank").to_dicts()[0]
    # without a: b and c tie, so no ranking; without b likewise; without c: m1 first, c says m2
    assert rows["tau_b_unseen"] == -1.0
    single = aggregate_stability(study).filter(method="single_adversary", adversary="a").to_dicts()[0]
    assert single["tau_b_unseen"] == 0.0


def test_one_adversary_has_no_unseen_one(make_study):
    study = make_study(CORRECT, {("good", 0): KEPT["good", 0]})
    assert aggregate_stability(study)["tau_b_unseen"].is_null().sum() >= 1
    assert _scores(study, "weighted") == pytest.approx(_scores(study, "single_adversary"))


def test_without_adversaries_the_full_set_alone_is_ranked(make_study):
    study = make_study(CORRECT, {})
    assert aggregate_ranks(study)["method"].unique().to_list() == ["full_set"]
