"""Tables about annotators: agreement, histogram, accuracy by agreement, soft scores, label balance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from scipy.spatial.distance import jensenshannon

from advsets.errors import UserError
from advsets.evaluation.agreement import accuracy_by_agreement, agreement, agreement_histogram
from advsets.evaluation.balance import label_balance
from advsets.evaluation.soft_scores import soft_scores
from advsets.evaluation.study import Study
from advsets.seeding import rng_for

Make = Callable[..., Study]
LABELS = ["no", "yes", "no", "yes", "no", "yes"]
AGREEMENT = [0.6, 1.0, 0.8, 0.4, None, 0.6]
KEPT = {("a", 0): [1, 0, 0, 1, 1, 0]}


def one(frame: pl.DataFrame, **where: object) -> dict:
    for column, value in where.items():
        frame = frame.filter(pl.col(column).eq_missing(pl.lit(value)))
    assert frame.height == 1
    return frame.to_dicts()[0]


def test_agreement_by_hand(make_study: Make) -> None:
    entropy = [0.9, 0.0, 0.7, None, None, 1.0]
    study = make_study({}, KEPT, labels=LABELS, agreement=AGREEMENT, label_entropy_bits=entropy)
    frame = agreement(study)
    assert frame.height == 3 * 3
    full = one(frame, subset="full_set", gold_label=None)
    assert (full["n_examples"], full["agreement_mean"]) == (5, pytest.approx(3.4 / 5))
    retained = one(frame, subset="retained", gold_label=None)
    assert (retained["n_examples"], retained["agreement_mean"]) == (2, pytest.approx(0.5))
    assert retained["label_entropy_bits_mean"] == pytest.approx(0.9)
    assert one(frame, subset="removed", gold_label="yes")["agreement_mean"] == pytest.approx(0.8)
    assert one(frame, subset="retained", gold_label="no")["agreement_mean"] == pytest.approx(0.6)
    assert full["n_flagged"] is None
    assert full["low_agreement_share"] is None


def test_agreement_needs_no_predictions(make_study: Make) -> None:
    study = make_study({("m", 0): [1] * 6}, KEPT, labels=LABELS, agreement=AGREEMENT)
    study.inputs.predictions["m", 0].unlink()
    assert agreement(study).height == 9
    assert agreement_histogram(study).height == 3 * 5


def test_the_flag_alone(make_study: Make) -> None:
    study = make_study({}, KEPT, labels=LABELS, low_agreement=[True, False, False, True, None, False])
    frame = agreement(study)
    retained = one(frame, subset="retained", gold_label=None)
    assert (retained["n_examples"], retained["n_flagged"], retained["low_agreement_share"]) == (2, 2, 1)
    removed = one(frame, subset="removed", gold_label=None)
    assert (removed["low_agreement_share"], removed["agreement_mean"]) == (0, None)


def test_flag_and_agreement_have_their_own_counts(make_study: Make) -> None:
    study = make_study({}, KEPT, labels=LABELS, agreement=AGREEMENT, low_agreement=[True] * 6)
    full = one(agreement(study), subset="full_set", gold_label=None)
    assert (full["n_examples"], full["n_flagged"]) == (5, 6)


def test_agreement_bounds_equal_a_brute_force_bootstrap(make_study: Make) -> None:
    rng = np.random.default_rng(0)
    values, kept, yes = rng.integers(2, 6, 90) / 5, rng.random(90) < 0.4, rng.random(90) < 0.5
    labels = np.where(yes, "yes", "no").tolist()
    study = make_study({}, {("a", 0): kept}, labels=labels, agreement=values.tolist())
    means = []
    for b in range(200):
        drawn = rng_for(0, "bootstrap", b).integers(0, 90, 90)
        means.append(values[drawn][~kept[drawn] & yes[drawn]].mean())
    found = one(agreement(study), subset="removed", gold_label="yes")
    np.testing.assert_allclose([found["agreement_low"], found["agreement_high"]], np.quantile(means, [0.025, 0.975]))


def test_an_empty_subset_gives_nulls(make_study: Make) -> None:
    study = make_study({}, {("a", 0): [0] * 6}, labels=LABELS, agreement=AGREEMENT)
    found = one(agreement(study), subset="retained", gold_label=None)
    assert (found["n_examples"], found["agreement_mean"], found["agreement_low"]) == (0, None, None)
    assert agreement_histogram(study).filter(pl.col("subset") == "retained")["share"].null_count() == 5


def test_histogram_by_hand(make_study: Make) -> None:
    study = make_study({}, KEPT, labels=LABELS, agreement=AGREEMENT)
    frame = agreement_histogram(study)
    full = frame.filter(pl.col("subset") == "full_set").sort("bin_low")
    assert full["n_examples"].to_list() == [0, 0, 1, 2, 2]  # 0.4; 0.6 twice; 0.8 and 1.0
    assert full["share"].to_list() == pytest.approx([0, 0, 0.2, 0.4, 0.4])
    retained = frame.filter(pl.col("subset") == "retained").sort("bin_low")
    assert retained["n_examples"].to_list() == [0, 0, 1, 1, 0]


def test_accuracy_by_agreement_by_hand(make_study: Make) -> None:
    correct = {("m", 0): [1, 1, 1, 0, 1, 0], ("m", 1): [1, 1, 0, 0, 1, 1]}
    frame = accuracy_by_agreement(make_study(correct, {}, labels=LABELS, agreement=AGREEMENT)).sort("bin_low")
    assert frame["accuracy"].to_list() == [None, None, 0.0, pytest.approx(3 / 4), pytest.approx(3 / 4)]
    assert frame["n_examples"].to_list() == [0, 0, 1, 2, 2]


def test_soft_scores_by_hand(make_study: Make) -> None:
    # a third count, of a label that is no class, is left out
    counts = [[3, 1, 6], [0, 5, 0], [0, 0, 4], None]
    q = {("m", 0): [[0.5, 0.5], [0.2, 0.8], [0.5, 0.5], [1.0, 0.0]]}
    study = make_study({("m", 0): [1] * 4}, {("a", 0): [0, 1, 1, 1]}, probabilities=q, label_count=counts)
    frame = soft_scores(study)
    full = one(frame, subset="full_set")
    assert full["n_examples"] == 2
    assert full["cross_entropy_nats"] == pytest.approx((np.log(2) - np.log(0.8)) / 2)
    expected = jensenshannon([0.75, 0.25], [0.5, 0.5]) + jensenshannon([0, 1], [0.2, 0.8])
    assert full["js_distance"] == pytest.approx(expected / 2)
    assert one(frame, subset="filtered")["cross_entropy_nats"] == pytest.approx(-np.log(0.8))
    random = one(frame, subset="random_subset")
    low, high = sorted([np.log(2), -np.log(0.8)])
    assert low <= random["cross_entropy_nats"] <= high


def test_soft_scores_average_seeds_and_match_chance(make_study: Make) -> None:
    rng = np.random.default_rng(0)
    n = 300
    counts = rng.integers(0, 6, (n, 2)).tolist()
    q = {("m", s): rng.dirichlet([1, 1], n).tolist() for s in range(2)}
    study = make_study(
        dict.fromkeys(q, [1] * n), {("a", 0): [1] * 100 + [0] * 200}, probabilities=q, label_count=counts
    )
    known = [i for i in range(n) if sum(counts[i])]
    share = [np.array(counts[i]) / sum(counts[i]) for i in known]
    by_seed = [[jensenshannon(p, q[run][i]) for i, p in zip(known, share, strict=True)] for run in q]
    full, random = one(soft_scores(study), subset="full_set"), one(soft_scores(study), subset="random_subset")
    assert full["js_distance"] == pytest.approx(np.mean(by_seed))
    assert random["js_distance"] == pytest.approx(np.mean(by_seed), abs=0.01)
    assert random["n_examples"] == sum(i < 100 for i in known), "as many as the filtered subset has"


def test_soft_scores_without_counts_are_empty(make_study: Make) -> None:
    assert soft_scores(make_study({("m", 0): [1, 0]}, {("a", 0): [1, 1]})).is_empty()


def test_soft_scores_of_an_empty_subset_are_null(make_study: Make) -> None:
    study = make_study({("m", 0): [1, 0]}, {("a", 0): [0, 0]}, label_count=[[1, 2], [2, 1]])
    found = one(soft_scores(study), subset="filtered")
    assert (found["n_examples"], found["cross_entropy_nats"]) == (0, None)
    assert one(soft_scores(study), subset="random_subset")["js_distance"] is None


def test_probabilities_of_another_length_are_named(make_study: Make) -> None:
    q = {("m", 0): [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]}
    study = make_study({("m", 0): [1, 0]}, {}, probabilities=q, label_count=[[1, 2], [2, 1]])
    with pytest.raises(UserError, match=r"predictions-m-0.parquet: probabilities of 3 to 3 labels; allowed: 2"):
        soft_scores(study)


def test_label_balance_by_hand(make_study: Make) -> None:
    frame = label_balance(make_study({}, KEPT, labels=LABELS, changes={"n_random_subsets": 500}))
    found = one(frame, gold_label="no")
    assert (found["share_full_set"], found["share_filtered"]) == (0.5, pytest.approx(2 / 3))
    assert found["share_random_low"] == 0
    assert found["share_random_high"] == 1
