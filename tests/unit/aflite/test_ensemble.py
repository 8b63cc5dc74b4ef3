from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from advsets.aflite.chain import collect, run_node, start_node
from advsets.aflite.ensemble import combine
from advsets.aflite.removal import RowScores
from advsets.io import read_json, read_table
from advsets.tables import TABLES

SETTINGS = {"n_partitions": 8, "train_size": 40, "slice_size": 12, "threshold": 0.7, "max_rounds": 3}


def _scores(n_held_out, n_correct, margin):
    rows = np.arange(len(n_held_out))
    return RowScores(rows, np.array(n_held_out), np.array(n_correct), np.array(margin, dtype=float))


ONE = _scores([4, 4, 0, 2], [4, 1, 0, 1], [1.0, -1.0, np.nan, 0.5])
TWO = _scores([8, 8, 8, 4], [2, 8, 6, 2], [-2.0, 3.0, 1.0, 0.1])


def test_mean_adds_up_classifiers_and_weights_margins_by_them():
    found = combine([ONE, TWO], "mean")
    assert found.n_held_out.tolist() == [12, 12, 8, 6]
    assert found.n_correct.tolist() == [6, 9, 6, 3]
    assert found.margin == pytest.approx([(4 - 16) / 12, (-4 + 24) / 12, 1.0, (1.0 + 0.4) / 6])


def test_minimum_takes_the_member_that_predicts_a_row_worst():
    found = combine([ONE, TWO], "minimum")
    assert found.n_held_out.tolist() == [8, 4, 8, 4]
    assert found.n_correct.tolist() == [2, 1, 6, 2]
    assert found.margin.tolist() == [-2.0, -1.0, 1.0, 0.1]


@pytest.mark.parametrize("combination", ["mean", "minimum"])
def test_the_order_of_members_does_not_matter(combination):
    forth, back = combine([ONE, TWO], combination), combine([TWO, ONE], combination)
    for name in ("n_held_out", "n_correct", "margin"):
        np.testing.assert_allclose(getattr(forth, name), getattr(back, name))


@pytest.mark.parametrize("combination", ["mean", "minimum"])
def test_a_row_that_no_member_held_out_has_no_score(combination):
    unknown = dataclasses.replace(
        TWO, n_held_out=np.zeros(4, int), n_correct=np.zeros(4, int), margin=np.full(4, np.nan)
    )
    found = combine([dataclasses.replace(ONE, n_held_out=np.array([4, 4, 0, 2])), unknown], combination)
    assert found.n_held_out.tolist() == [4, 4, 0, 2]
    assert np.isnan(found.margin[2])


def test_one_member_is_left_as_it_is():
    assert combine([ONE], "minimum") is ONE


@pytest.fixture
def members(member_files, tmp_path):
    """Two representations of the same rows: labels show in the first feature of one, the second of the other."""
    return [member_files(tmp_path / name, seed=seed, informative=at) for name, seed, at in (("a", 1, 0), ("b", 2, 1))]


def _run(files, out, combination="mean", **changes):
    train, evaluation = zip(*files, strict=True)
    nodes = [out / f"{n:03d}" for n in range(4)]
    start_node(train, evaluation, nodes[0], settings={**SETTINGS, **changes}, seed=3, combination=combination)
    for previous, node in zip(nodes, nodes[1:], strict=False):
        run_node(previous, train, evaluation, node, n_rounds=1, threads=1, device="cpu")
    collect(nodes, out)
    return {name: read_table(out / f"{name}.parquet", name) for name in ("round_scores", "rounds")}


def _first_round(tables):
    frame = tables["round_scores"].filter(tables["round_scores"]["filtering_round"] == 1)
    return frame.sort("split", "example_id")


def test_an_ensemble_scores_by_the_classifiers_of_all_members(members, tmp_path):
    single = [_first_round(_run([files], tmp_path / f"single{i}")) for i, files in enumerate(members)]
    both = _first_round(_run(members, tmp_path / "both"))
    for name in ("n_held_out", "n_correct"):
        assert both[name].to_list() == (single[0][name] + single[1][name]).to_list()
    lowest = _first_round(_run(members, tmp_path / "lowest", "minimum"))
    worse = np.fmin(single[0]["predictability"].to_numpy(), single[1]["predictability"].to_numpy())
    np.testing.assert_array_equal(lowest["predictability"].to_numpy(), worse)


def test_the_same_member_twice_removes_what_it_removes_alone(members, tmp_path):
    alone, twice = _run(members[:1], tmp_path / "alone"), _run([members[0]] * 2, tmp_path / "twice", "minimum")
    columns = [c for c in TABLES["round_scores"].column_names if c != "n_held_out"]
    assert alone["round_scores"].select(columns).equals(twice["round_scores"].select(columns))
    assert twice["rounds"]["n_partitions"].to_list() == [16] * len(twice["rounds"])


def test_the_record_tells_members_and_combination(members, tmp_path):
    _run(members, tmp_path / "both", "minimum")
    record = read_json(tmp_path / "both" / "001.json")
    assert record["combination"] == "minimum"
    assert len(record["members"]) == 2 and "standardisation" not in record
