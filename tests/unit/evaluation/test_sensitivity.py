from __future__ import annotations

import numpy as np
import pytest

from advsets.evaluation.sensitivity import jaccard, random_jaccard, sensitivity

N = 40
KEPT = {("a", 0): [1] * 20 + [0] * 20, ("a", 1): [1] * 10 + [0] * 20 + [1] * 10, ("b", 0): [1] * N}
CORRECT = {("a", 0): [0] * 20 + [1] * 20, ("b", 0): [1, 0] * 20}


def _ids(n):
    return [f"e{i:05d}" for i in range(n)]


def _found(make_study, kit, tmp_path, kept):
    path = tmp_path / "variant.parquet"
    kit.write_difficulty(path, _ids(N), [None if k else 1 for k in kept], [0.5] * N)
    frame = sensitivity(make_study(CORRECT, KEPT), {("a", "threshold", "0.7"): path})
    return {(r["setting"], r["setting_value"]): r for r in frame.to_dicts()}


def test_jaccard_by_hand():
    one, other = np.array([1, 1, 0, 0], bool), np.array([1, 0, 1, 0], bool)
    assert jaccard(one, other) == pytest.approx(1 / 3)
    assert np.isnan(jaccard(one & False, one & False))


def test_random_subsets_share_what_drawn_ones_do():
    rng = np.random.default_rng(0)
    drawn = [jaccard(rng.permutation(50) < 20, rng.permutation(50) < 30) for _ in range(4000)]
    found = random_jaccard(50, (20, 30), 4000, 0, "key")
    assert found.mean() == pytest.approx(np.mean(drawn), abs=5e-3)
    assert np.quantile(found, [0.05, 0.95]) == pytest.approx(np.quantile(drawn, [0.05, 0.95]), abs=0.03)


def test_a_changed_setting_is_compared_with_the_base(make_study, kit, tmp_path):
    rows = _found(make_study, kit, tmp_path, [0] * 5 + [1] * 20 + [0] * 15)
    assert set(rows) == {("base", ""), ("adversary_seed", "1"), ("threshold", "0.7")}
    assert rows["base", ""]["jaccard"] == 1.0
    changed = rows["threshold", "0.7"]
    assert (changed["n_retained"], changed["n_retained_base"]) == (20, 20)
    assert changed["jaccard"] == pytest.approx(15 / 25)
    assert changed["accuracy_mean"] == pytest.approx((5 / 20 + 10 / 20) / 2)
    assert changed["jaccard_random_low"] < 1 / 3 < changed["jaccard_random_high"]
    assert rows["adversary_seed", "1"]["jaccard"] == pytest.approx(10 / 30)


def test_an_empty_retained_set_shares_nothing(make_study, kit, tmp_path):
    changed = _found(make_study, kit, tmp_path, [0] * N)["threshold", "0.7"]
    assert changed["jaccard"] == 0.0
    assert changed["accuracy_mean"] is None


def test_without_variants_there_are_no_rows(make_study):
    assert sensitivity(make_study(CORRECT, KEPT), {}).is_empty()
