from __future__ import annotations

import pytest

from advsets.errors import UserError
from advsets.evaluation.predictability_curve import accuracy_by_predictability


def _study(make_study, kit, tmp_path, predictability, ids=None):
    path = tmp_path / "round_scores.parquet"
    correct = {("m", 0): [0, 1, 0, 1, 1, 1], ("m", 1): [0, 0, 0, 1, 1, 1], ("other", 0): [1, 0, 1, 0, 1, 0]}
    study = make_study(correct, {("m", 0): [1] * 6})
    kit.write_first_round(path, ids or [f"e{i:05d}" for i in range(6)], predictability)
    study.inputs.round_scores["m", 0] = path
    return study


def test_accuracy_by_bin_of_the_first_round(make_study, kit, tmp_path):
    study = _study(make_study, kit, tmp_path, [0.0, 0.2, 0.25, 0.6, 1.0, None])
    found = accuracy_by_predictability(study).filter(evaluated_model="m")
    assert found["bin_low"].to_list() == [0.0, 0.25, 0.5, 0.75]
    assert found["n_examples"].to_list() == [2, 1, 1, 1]
    assert found["accuracy"].to_list() == [0.25, 0.0, 1.0, 1.0]
    assert found["relation"].unique().to_list() == ["self"]


def test_an_empty_bin_has_no_accuracy(make_study, kit, tmp_path):
    study = _study(make_study, kit, tmp_path, [1.0] * 6)
    found = accuracy_by_predictability(study).filter(evaluated_model="other")
    assert found["accuracy"].to_list() == [None, None, None, 0.5]
    assert found["accuracy_low"][3] <= 0.5 <= found["accuracy_high"][3]


def test_scores_of_other_examples_are_refused(make_study, kit, tmp_path):
    study = _study(make_study, kit, tmp_path, [0.5] * 6, ids=[f"x{i}" for i in range(6)])
    with pytest.raises(UserError, match="6 missing example_id"):
        accuracy_by_predictability(study)
