from __future__ import annotations

import numpy as np
import pytest

from advsets.evaluation.ensembles import ALL_SINGLE, Filter, ensembles, own_excess

MODELS = ("a", "b", "c", "d")
N = 400


def _ids(n):
    return [f"e{i:05d}" for i in range(n)]


@pytest.fixture
def run(make_study, kit, tmp_path):
    """Four models, each its own adversary, and two ensembles; every model fails where its own filter keeps."""
    rng = np.random.default_rng(2)
    hard = {m: rng.random(N) < 0.3 for m in MODELS}
    correct = {
        (m, 0): (rng.random(N) < np.where(hard[m], 0.2, 0.8) - 0.05 * i).astype(int).tolist()
        for i, m in enumerate(MODELS)
    }
    study = make_study(correct, {(m, 0): hard[m].astype(int).tolist() for m in MODELS})
    for m in MODELS:
        removed_in = [None if h else 1 for h in hard[m]]
        kit.write_difficulty(study.inputs.retained[m, 0], _ids(N), removed_in, rng.random(N).tolist())
    paths = {}
    for name, members in (("all", MODELS), ("without_d", MODELS[:3])):
        votes = sum(hard[m].astype(int) for m in members)
        kept = votes >= 2
        paths[name, 0] = tmp_path / f"{name}.parquet"
        scores = (1 - votes / 4 + 0.01 * rng.random(N)).tolist()
        kit.write_difficulty(paths[name, 0], _ids(N), [None if k else 1 for k in kept], scores)
    described = {
        "all": {"members": list(MODELS), "combination": "mean"},
        "without_d": {"members": list(MODELS[:3]), "combination": "minimum"},
    }
    return study, ensembles(study, paths, described)


def _rows(frame, comparison="largest"):
    return {row["filter"]: row for row in frame.to_dicts() if row["comparison"] == comparison}


def test_filters_are_compared_at_three_sizes_that_single_adversaries_retained(run):
    study, frame = run
    kept = sorted(study.sizes[1:].tolist())
    sizes = {(c, n) for c, n in zip(frame["comparison"], frame["n_examples"], strict=True)}
    assert sizes == {("smallest", kept[0]), ("middle", kept[1]), ("largest", kept[3])}
    assert frame.height == 3 * (len(MODELS) + 3)
    assert frame["n_retained"].max() > study.sizes[1:].max()
    assert _rows(frame)["a"]["n_retained"] == study.sizes[1]


@pytest.mark.parametrize("comparison", ["smallest", "middle", "largest"])
def test_own_models_of_single_adversaries_are_harmed(run, comparison):
    rows = _rows(run[1], comparison)
    for m in MODELS:
        assert rows[m]["own_excess_high"] < 0
        assert rows[m]["accuracy_members"] < rows[m]["accuracy_others"]
    mean = rows[ALL_SINGLE]
    assert mean["own_excess"] == pytest.approx(np.mean([rows[m]["own_excess"] for m in MODELS]))
    assert mean["own_excess_low"] <= mean["own_excess"] <= mean["own_excess_high"]


def test_an_ensemble_of_all_models_has_no_excess_and_one_of_some_has(run):
    rows = _rows(run[1])
    assert rows["all"]["own_excess"] is None and rows["all"]["accuracy_others"] is None
    assert rows["without_d"]["own_excess"] < 0
    assert rows["without_d"]["kind"] == "minimum"
    assert rows["without_d"]["members"] == ["a", "b", "c"]


def test_excess_recovers_an_effect_whatever_models_and_filters_do(make_study):
    study = make_study({(m, 0): [1, 0] * 2000 for m in MODELS}, {(m, 0): [1, 0] * 2000 for m in MODELS})
    filters = [Filter(m, "single", (m,), 0) for m in MODELS] + [Filter("pair", "mean", ("a", "b"), 0)]
    own = np.array([[m in f.members for m in MODELS] for f in filters])
    odds = np.array([0.2, -0.3, 0.5, 0.0, 0.1])[:, None] + np.array([1.0, 0.4, -0.2, 0.6]) - 0.7 * own
    found = own_excess(study, filters, 1 / (1 + np.exp(-odds)))
    assert found == pytest.approx([-0.7] * 5, abs=2e-3)


def test_excess_is_finite_at_accuracies_of_0_and_1(make_study):
    study = make_study({(m, 0): [1, 0] for m in MODELS}, {(m, 0): [1, 0] for m in MODELS})
    filters = [Filter(m, "single", (m,), 0) for m in MODELS]
    assert np.isfinite(own_excess(study, filters, np.eye(4))).all()


def test_without_adversaries_there_are_no_rows(make_study):
    assert ensembles(make_study({("a", 0): [1, 0]}, {}), {}, {}).is_empty()
