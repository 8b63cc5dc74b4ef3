from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from advsets.evaluation.agreement_matched import agreement_matched, agreement_matched_models, matched_subset
from advsets.evaluation.difficulty import places


def _ids(n):
    return [f"e{i:05d}" for i in range(n)]


def test_hardest_are_those_that_stayed_then_those_that_left_late(make_study, kit, tmp_path):
    study = make_study({("m", 0): [1] * 6}, {("m", 0): [1] * 6})
    removed_in = [None, 2, 1, None, 2, 1]
    kit.write_difficulty(tmp_path / "r.parquet", _ids(6), removed_in, [0.5, 0.8, 0.9, 0.2, 1.0, None])
    assert places(study, tmp_path / "r.parquet").tolist() == [1, 2, 5, 0, 3, 4]


def test_ties_do_not_follow_the_order_of_the_ids(make_study, kit, tmp_path):
    study = make_study({("m", 0): [1] * 200}, {("m", 0): [1] * 200})
    kit.write_difficulty(tmp_path / "r.parquet", _ids(200), [None] * 200, [0.5] * 200)
    found = places(study, tmp_path / "r.parquet")
    assert sorted(found.tolist()) == list(range(200))
    assert abs(np.corrcoef(found, np.arange(200))[0, 1]) < 0.2


def test_matched_subset_has_the_shares_of_all_and_the_hardest_of_each_bin():
    bins = np.array([0] * 6 + [1] * 3 + [-1] * 3)
    place = np.array([11, 0, 1, 2, 3, 10, 9, 8, 7, 4, 5, 6])
    found = matched_subset(place, bins, 4)
    assert np.flatnonzero(found).tolist() == [1, 2, 8, 9]


@pytest.mark.parametrize("n", [0, 1, 5, 10])
def test_matched_subset_has_the_size_asked_for(n):
    rng = np.random.default_rng(n)
    found = matched_subset(rng.permutation(10), rng.integers(0, 3, 10), n)
    assert found.sum() == n


def _study(make_study, kit, tmp_path, **columns):
    """Contentious examples (the first half) are hard: an adversary that keeps them alone."""
    n = 40
    contentious = np.arange(n) < 20
    kept = [int(c) for c in contentious]
    rng = np.random.default_rng(0)
    correct = {("a", 0): (rng.random(n) < np.where(contentious, 0.3, 0.9)).astype(int).tolist(), ("b", 0): kept}
    study = make_study(correct, {("a", 0): kept}, **columns)
    removed_in = [None if c else 1 for c in contentious]
    kit.write_difficulty(study.inputs.retained["a", 0], _ids(n), removed_in, rng.random(n).tolist())
    return study


def test_matching_gives_the_agreement_of_the_full_set_and_another_difficulty(make_study, kit, tmp_path):
    study = _study(make_study, kit, tmp_path, agreement=[0.6] * 20 + [1.0] * 20)
    rows = {r["weighting"]: r for r in agreement_matched(study).to_dicts()}
    assert rows["full_set"]["agreement_mean"] == pytest.approx(0.8)
    assert rows["retained"]["agreement_mean"] == pytest.approx(0.6)
    assert rows["matched"]["agreement_mean"] == pytest.approx(0.8)
    assert rows["matched"]["n_examples"] == rows["retained"]["n_examples"] == 20
    models = agreement_matched_models(study).filter(evaluated_model="b")
    accuracy = dict(models.select("weighting", "accuracy").iter_rows())
    assert accuracy == {"full_set": 0.5, "retained": 1.0, "matched": 0.5, "agreement_weighted": 1.0}


def test_weights_are_the_agreement(make_study, kit, tmp_path):
    agreement = [0.2] * 10 + [0.8] * 10 + [1.0] * 20
    study = _study(make_study, kit, tmp_path, agreement=agreement)
    found = agreement_matched_models(study).filter(weighting="agreement_weighted", evaluated_model="a")["accuracy"][0]
    right = study.inputs.correct[:20, study.inputs.model_runs.index(("a", 0))]
    assert found == pytest.approx((0.2 * right[:10].sum() + 0.8 * right[10:].sum()) / 10)


def test_levels_are_the_values_that_occur_and_unknown_is_one(make_study, kit, tmp_path):
    agreement = [0.85] * 10 + [0.9] * 10 + [0.95] * 10 + [None] * 10
    study = _study(make_study, kit, tmp_path, agreement=agreement)
    rows = {r["weighting"]: r for r in agreement_matched(study).to_dicts()}
    assert rows["matched"]["agreement_mean"] == pytest.approx(rows["full_set"]["agreement_mean"])
    assert rows["retained"]["agreement_mean"] == pytest.approx(0.875)


def test_the_flag_serves_where_more_examples_have_it(make_study, kit, tmp_path):
    study = _study(make_study, kit, tmp_path, low_agreement=[True] * 20 + [False] * 20)
    found = agreement_matched(study)
    assert found["measure"].unique().to_list() == ["low_agreement"]
    shares = dict(found.select("weighting", "agreement_mean").iter_rows())
    assert shares == {"full_set": 0.5, "retained": 1.0, "matched": 0.5, "agreement_weighted": 1.0}


def test_without_annotators_there_are_no_rows(make_study, kit, tmp_path):
    study = _study(make_study, kit, tmp_path)
    assert agreement_matched(study).is_empty()
    assert agreement_matched_models(study).is_empty()


def test_an_empty_subset_has_no_accuracy(make_study, kit, tmp_path):
    study = make_study({("a", 0): [1, 0, 1, 0]}, {("a", 0): [0, 0, 0, 0]}, agreement=[0.5, 0.6, 0.7, 1.0])
    rows = agreement_matched(study).filter(pl.col("weighting") != "full_set")
    assert rows["n_examples"].to_list() == [0, 0, 0]
    assert rows["accuracy_mean"].null_count() == 3
