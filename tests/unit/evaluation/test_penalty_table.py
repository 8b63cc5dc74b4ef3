"""Tables `penalty` and `penalty_cells`: planted effects are found, and nothing where nothing is planted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from advsets.evaluation.inputs import EvaluationInputs
from advsets.evaluation.penalty import log_odds, own_recovered_share, penalty, penalty_cells, resampled
from advsets.evaluation.settings import EvaluateSettings
from advsets.evaluation.study import Study
from advsets.stats.penalty import additive_residuals

Make = Callable[..., Study]
MODELS = ["a", "b", "c", "d", "e"]


def planted(seed: int, own_effect: float, n: int = 4000, family_effect: float = 0.0) -> Study:
    """Study without files: answers on each adversary's own (disjoint) kept rows follow additive log-odds."""
    rng = np.random.default_rng(seed)
    ability, hardness = np.linspace(0.0, 1.5, 5), np.linspace(0.2, 1.0, 5)
    kept_by = rng.integers(0, 5, n)
    odds = ability[None, :] - hardness[kept_by][:, None]
    odds += own_effect * (kept_by[:, None] == np.arange(5))
    odds += family_effect * np.isin(kept_by, [0, 1])[:, None] * np.isin(np.arange(5), [0, 1])
    odds -= family_effect * (kept_by[:, None] == np.arange(5)) * np.isin(np.arange(5), [0, 1])
    runs = [(m, 0) for m in MODELS]
    inputs = EvaluationInputs("toy", "", dict.fromkeys(runs), dict.fromkeys(runs), {"a": "f", "b": "f"}, ("no", "yes"))
    ids = [f"{i:05d}" for i in range(n)]
    inputs.__dict__["frame"] = pl.DataFrame({"example_id": ids, "label": ["no"] * n})
    inputs.__dict__["correct"] = rng.random((n, 5)) < 1 / (1 + np.exp(-odds))
    inputs.__dict__["masks"] = kept_by[:, None] == np.arange(5)
    return Study(inputs, EvaluateSettings(300, 0.95, 2, 2, 2, 0))


def row(study: Study, relation: str = "self") -> dict:
    return penalty(study).filter(pl.col("relation") == relation).to_dicts()[0]


def test_a_planted_penalty_is_recovered() -> None:
    covered = 0
    for seed in range(10):
        found = row(planted(seed, own_effect=-0.8))
        assert found["penalty_high"] < 0
        covered += found["penalty_low"] <= -0.8 * (1 - 1 / 5) <= found["penalty_high"]
        assert found["n_cells"] == 5
    assert covered >= 8


def test_no_penalty_is_found_where_none_is_planted() -> None:
    found = [row(planted(seed, own_effect=0.0)) for seed in range(40)]
    covered = sum(r["penalty_low"] <= 0 <= r["penalty_high"] for r in found)
    assert covered >= 34  # 38 expected at 95 %
    assert abs(np.mean([r["penalty_log_odds"] for r in found])) < 0.05


def test_own_and_family_cells_are_kept_apart() -> None:
    found = [row(planted(seed, 0.0, family_effect=-1.0), "same_family") for seed in range(5)]
    assert all(r["n_cells"] == 2 for r in found)
    assert np.mean([r["penalty_log_odds"] for r in found]) < -0.4
    own = [row(planted(seed, 0.0, family_effect=-1.0))["penalty_log_odds"] for seed in range(5)]
    assert np.mean(own) > -0.1


def test_cells_by_hand(make_study: Make) -> None:
    correct = {("a", 0): [1, 1, 1, 0, 0, 0], ("b", 0): [1, 0, 1, 1, 1, 0], ("b", 1): [1, 1, 1, 1, 0, 0]}
    retained = {("a", 0): [1, 1, 1, 1, 0, 0], ("b", 0): [0, 0, 1, 1, 1, 1], ("b", 1): [0, 0, 0, 0, 0, 0]}
    study = make_study(correct, retained, families={"a": "f", "b": "f"})
    cells = {(r["adversary"], r["evaluated_model"]): r for r in penalty_cells(study).to_dicts()}
    # right of four: a 3 and 1; b 3 and 4 (seeds), then 3 and 2; b's second adversary run kept nothing
    assert cells["a", "b"]["accuracy_filtered"] == pytest.approx(3.5 / 4)
    assert cells["b", "a"]["accuracy_filtered"] == pytest.approx(1 / 4)
    assert cells["a", "a"]["accuracy_full_set"] == 0.5
    assert {k: r["relation"] for k, r in cells.items()} == {
        ("a", "a"): "self", ("a", "b"): "same_family", ("b", "a"): "same_family", ("b", "b"): "self",
    }  # fmt: skip
    odds = np.log([[3.5 / 1.5, 4.0 / 1.0], [1.5 / 3.5, 3.0 / 2.0]])
    np.testing.assert_allclose(log_odds(study), odds)
    expected = additive_residuals(odds)
    assert cells["a", "a"]["residual_log_odds"] == pytest.approx(expected[0, 0])
    assert row(study)["penalty_log_odds"] == pytest.approx((expected[0, 0] + expected[1, 1]) / 2)
    assert own_recovered_share(study) == pytest.approx(0.5)


def test_one_family_says_nothing_about_families(make_study: Make) -> None:
    correct = {(m, 0): np.random.default_rng(i).random(40) < 0.6 for i, m in enumerate("ab")}
    study = make_study(correct, {(m, 0): [1, 0] * 20 for m in "ab"}, families={"a": "f", "b": "f"})
    found = row(study, "same_family")
    assert (found["n_cells"], found["penalty_log_odds"], found["penalty_low"]) == (2, None, None)
    assert row(study)["penalty_log_odds"] is not None


def test_an_empty_subset_leaves_its_row_out(make_study: Make) -> None:
    correct = {(m, 0): np.random.default_rng(i).random(40) < 0.6 for i, m in enumerate("abc")}
    kept = {("a", 0): [1, 0] * 20, ("b", 0): [0, 1] * 20, ("c", 0): [0] * 40}
    study = make_study(correct, kept)
    empty = penalty_cells(study).filter(pl.col("adversary") == "c")
    assert empty["accuracy_filtered"].null_count() == empty["residual_log_odds"].null_count() == 3
    assert row(study)["n_cells"] == 2
    assert row(study)["penalty_log_odds"] is not None


@pytest.mark.parametrize("models", ["a", "b"])
def test_one_evaluated_model_has_no_penalty(make_study: Make, models: str) -> None:
    correct = {(m, 0): [1, 0, 1, 1] for m in models}
    study = make_study(correct, {("a", 0): [1, 1, 1, 0], ("c", 0): [0, 1, 1, 1]})
    assert row(study)["penalty_log_odds"] is None
    assert row(study)["n_cells"] == (models == "a")


def test_accuracies_of_0_and_1_stay_finite(make_study: Make) -> None:
    correct = {("a", 0): [0] * 20 + [1] * 20, ("b", 0): [1] * 40}
    study = make_study(correct, {("a", 0): [1] * 20 + [0] * 20, ("b", 0): [0] * 20 + [1] * 20})
    found = row(study)
    assert np.isfinite([found["penalty_log_odds"], found["penalty_low"], found["penalty_high"]]).all()


@pytest.mark.parametrize(
    ("n_model_seeds", "n_adversary_seeds", "expected"),
    [
        (2, 2, "examples"),
        (3, 1, "examples and fine-tuning seeds of evaluated models"),
        (1, 3, "examples and fine-tuning seeds of adversaries"),
        (3, 4, "examples and fine-tuning seeds"),
    ],
)
def test_seeds_are_resampled_where_there_are_three(
    make_study: Make, n_model_seeds: int, n_adversary_seeds: int, expected: str
) -> None:
    rng = np.random.default_rng(0)
    correct = {(m, s): rng.random(60) < 0.6 for m in "ab" for s in range(n_model_seeds)}
    study = make_study(correct, {(m, s): rng.random(60) < 0.5 for m in "ab" for s in range(n_adversary_seeds)})
    assert row(study)["interval_over"] == resampled(study) == expected


def test_seeds_that_differ_widen_the_interval(make_study: Make) -> None:
    n = 400
    rng = np.random.default_rng(1)
    kept = {(m, 0): np.arange(n) % 2 == i for i, m in enumerate("ab")}
    level = {("a", 0): 0.2, ("a", 1): 0.5, ("a", 2): 0.9, ("b", 0): 0.6, ("b", 1): 0.6, ("b", 2): 0.6}
    unstable = {run: np.where(kept["a", 0], rng.random(n) < p, rng.random(n) < 0.6) for run, p in level.items()}
    three = row(make_study(unstable, kept))
    two = row(make_study({run: v for run, v in unstable.items() if run[1] < 2}, kept))
    assert three["penalty_high"] - three["penalty_low"] > 1.5 * (two["penalty_high"] - two["penalty_low"])
