"""A chain of nodes gives the tables of one run, however its rounds are bundled."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from advsets.aflite.chain import collect, node_file, read_record, run_node, start_node
from advsets.aflite.run import filter_files
from advsets.aflite.settings import FilterSettings
from advsets.errors import UserError
from advsets.io import read_table

SETTINGS = {"n_partitions": 16, "slice_size": 0.15, "max_rounds": 8, "threshold": 0.6}
TABLES = {"retained": "retained", "retained_train": "retained", "round_scores": "round_scores", "rounds": "rounds"}


def run_chain(folder: Path, files: tuple[Path, Path], n_nodes: int, n_rounds: int, **changes: Any) -> list[Path]:
    nodes = [folder / "nodes" / f"{i:03d}" for i in range(n_nodes + 1)]
    start_node(*files, nodes[0], settings={**SETTINGS, **changes}, seed=7)
    for previous, node in zip(nodes, nodes[1:], strict=False):
        run_node(previous, *files, node, n_rounds=n_rounds, threads=1, device="cpu")
    collect(nodes, folder)
    return nodes


def tables(folder: Path) -> dict[str, pl.DataFrame]:
    frames = {name: read_table(folder / f"{name}.parquet", table) for name, table in TABLES.items()}
    return {name: frame.drop([c for c in frame.columns if c.endswith("_s")]) for name, frame in frames.items()}


def assert_same(one: dict[str, pl.DataFrame], other: dict[str, pl.DataFrame]) -> None:
    for name, frame in one.items():
        assert_frame_equal(frame, other[name], check_exact=True)


def test_bundling_changes_no_table_and_the_file_run_gives_the_same(tmp_path: Path, files: tuple[Path, Path]) -> None:
    run_chain(tmp_path / "single", files, 8, 1)
    run_chain(tmp_path / "bundled", files, 3, 3)
    filter_files(*files, tmp_path / "file", FilterSettings(**SETTINGS), seed=7, threads=1, device="cpu", progress=False)
    single = tables(tmp_path / "single")
    assert single["rounds"].height > 3
    assert_same(single, tables(tmp_path / "bundled"))
    assert_same(single, tables(tmp_path / "file"))
    scores = [(tmp_path / f / "round_scores.parquet").read_bytes() for f in ("single", "bundled", "file")]
    assert scores[0] == scores[1] == scores[2]


def test_the_first_node_runs_no_round(tmp_path: Path, files: tuple[Path, Path]) -> None:
    node = tmp_path / "000"
    start_node(*files, node, settings=SETTINGS, seed=7)
    record = read_record(node)
    assert (record["filtering_round"], record["stopped"], record["lines"], record["seed"]) == (0, False, [], 7)
    assert record["counts"]["train_size"] == 15 and len(record["standardisation"]["mean"]) == 4
    state = read_table(node_file(node, "state.parquet"), "filter_state")
    assert state["retained"].all() and state.height == 210
    assert read_table(node_file(node, "scores.parquet"), "round_scores").height == 0


def test_the_state_is_passed_on_after_the_stop(tmp_path: Path, files: tuple[Path, Path]) -> None:
    nodes = run_chain(tmp_path, files, 5, 1, max_rounds=2)
    records = [read_record(node) for node in nodes]
    assert [r["stopped"] for r in records] == [False, False, True, True, True, True]
    assert records[2]["stop_reason"] == "max_rounds" and [len(r["lines"]) for r in records] == [0, 1, 1, 0, 0, 0]
    states = [node_file(node, "state.parquet") for node in nodes]
    assert states[5].read_bytes() == states[2].read_bytes() and not states[5].samefile(states[2])
    assert states[5].stat().st_mtime_ns > states[2].stat().st_mtime_ns
    assert node_file(nodes[5], "scores.parquet").stat().st_size == 0
    rounds = tables(tmp_path)["rounds"]
    assert rounds["stop_reason"].to_list() == [None, "max_rounds"]


def test_a_node_after_the_stop_loads_nothing_heavy(tmp_path: Path, files: tuple[Path, Path]) -> None:
    nodes = run_chain(tmp_path, files, 1, 1, max_rounds=1)
    code = f"""
import json, sys
from pathlib import Path
from advsets.aflite.chain import run_node
run_node(Path({str(nodes[1])!r}), Path("train"), Path("evaluation"), Path({str(tmp_path / "after")!r}), n_rounds=1)
heavy = ["torch", "numpy", "polars", "pyarrow", "sklearn", "scipy", "transformers", "datasets"]
print(json.dumps([name for name in heavy if name in sys.modules]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
    collect([*nodes, tmp_path / "after"], tmp_path / "more")
    assert_same(tables(tmp_path), tables(tmp_path / "more"))


def test_without_an_evaluation_set(tmp_path: Path, files: tuple[Path, Path]) -> None:
    nodes = run_chain(tmp_path / "both", files, 8, 1)
    alone = run_chain(tmp_path / "alone", (files[0], None), 8, 1)  # type: ignore[arg-type]
    assert len(nodes) == len(alone)
    one, other = tables(tmp_path / "both"), tables(tmp_path / "alone")
    assert_frame_equal(one["retained_train"], other["retained_train"], check_exact=True)
    assert other["retained"].height == 0


def test_a_chain_that_goes_on_is_not_collected(tmp_path: Path, files: tuple[Path, Path]) -> None:
    start_node(*files, tmp_path / "000", settings=SETTINGS, seed=7)
    with pytest.raises(ValueError, match="filtering has not ended"):
        collect([tmp_path / "000"], tmp_path)


def test_settings_are_checked_at_the_start(tmp_path: Path, files: tuple[Path, Path]) -> None:
    with pytest.raises(UserError, match="train_size: 400 is 400 of 150 training rows"):
        start_node(*files, tmp_path / "000", settings={**SETTINGS, "train_size": 400}, seed=7)
    with pytest.raises(UserError, match="train_size: 1 rows cannot hold one row of each of the 2 labels"):
        start_node(*files, tmp_path / "000", settings={**SETTINGS, "train_size": 1}, seed=7)
    assert not node_file(tmp_path / "000", "json").exists()
