from __future__ import annotations

import numpy as np
import pytest

from advsets.evaluation.weighted import summary, weighted_scores

CORRECT = {("a", 0): [1, 1, 0, 0, 1, 0], ("a", 1): [1, 0, 0, 0, 1, 0], ("b", 0): [0, 1, 1, 1, 0, 0]}
KEPT = {("a", 0): [1, 0, 1, 1, 0, 1]}


def test_a_subset_scores_as_in_the_other_tables(make_study):
    study = make_study(CORRECT, KEPT)
    found = weighted_scores(study, study.subsets)
    assert found.value == pytest.approx(study.model_accuracy)
    assert np.allclose(found.draws, study.model_accuracy_draws, equal_nan=True)


def test_weights_count_by_hand(make_study):
    found = weighted_scores(make_study(CORRECT, KEPT), np.array([[0.5, 2.0, 0, 0, 0, 1.5]]).T)
    assert found.value[0] == pytest.approx([(2.5 + 0.5) / 2 / 4, 2.0 / 4])


def test_weights_of_any_scale_give_equal_scores(make_study):
    study = make_study(CORRECT, KEPT)
    weights = np.array([[0.5, 2.0, 0, 0.25, 0, 1.5]]).T
    assert weighted_scores(study, weights).value == pytest.approx(weighted_scores(study, 1e-6 * weights).value)


def test_summary_takes_the_mean_of_the_models_asked_for(make_study):
    study = make_study(CORRECT, KEPT)
    scores = weighted_scores(study, study.subsets)
    both, one = summary(study, scores, 1), summary(study, scores, 1, models=[1])
    assert both["accuracy_mean"] == pytest.approx(study.model_accuracy[1].mean())
    assert one["accuracy_mean"] == pytest.approx(study.model_accuracy[1, 1])
    assert both["tau_b"] == one["tau_b"]
    assert both["accuracy_mean_low"] <= both["accuracy_mean"] <= both["accuracy_mean_high"]


def test_without_weight_or_models_there_is_no_score(make_study):
    study = make_study(CORRECT, KEPT)
    scores = weighted_scores(study, np.zeros((6, 1)))
    assert np.isnan(scores.value).all()
    assert np.isnan(summary(study, scores, 0)["tau_b"])
    assert np.isnan(summary(study, scores, 0, models=[])["accuracy_mean"])
