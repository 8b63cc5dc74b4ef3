"""Runs on files: what is written, resuming after kills, and folders that cannot be written to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from advsets.aflite.chain import node_file
from advsets.aflite.outfolder import OUTPUT_FILES, lock
from advsets.aflite.run import filter_files
from advsets.aflite.settings import FilterSettings
from advsets.errors import UserError
from advsets.io import read_json, read_table

SETTINGS = FilterSettings(n_partitions=16, slice_size=0.15, threshold=0.6, max_rounds=4)
TABLES = {
    "retained": "retained",
    "retained_train": "retained",
    "round_scores": "round_scores",
    "rounds": "rounds",
    "evaluation_labels": "evaluation_labels",
}


def run(files: tuple[Path, Path | None], out: Path, settings: FilterSettings = SETTINGS, **changes: object) -> None:
    filter_files(*files, out, settings, **{"threads": 1, "device": "cpu", **changes})  # type: ignore[arg-type]


def tables(folder: Path) -> dict[str, pl.DataFrame]:
    frames = {name: read_table(folder / f"{name}.parquet", table) for name, table in TABLES.items()}
    return {name: frame.drop([c for c in frame.columns if c.endswith("_s")]) for name, frame in frames.items()}


def assert_same(one: dict[str, pl.DataFrame], other: dict[str, pl.DataFrame]) -> None:
    for name, frame in one.items():
        assert_frame_equal(frame, other[name], check_exact=True)


def test_what_is_written(tmp_path: Path, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "out"
    run(files, out, seed=5)
    assert sorted(path.name for path in out.iterdir()) == sorted(OUTPUT_FILES)
    found = tables(out)
    assert found["rounds"]["stop_reason"].to_list() == [None, None, None, "max_rounds"]
    assert found["retained"].height == 60 and found["retained_train"].height == 150
    assert found["evaluation_labels"]["example_id"].to_list() == found["retained"]["example_id"].to_list()
    source = pl.read_parquet(files[1]).sort("example_id")
    assert found["evaluation_labels"]["label"].to_list() == source["label"].to_list()
    removed = found["retained"].filter(~pl.col("retained"))
    in_scores = found["round_scores"].filter((pl.col("split") == "evaluation") & pl.col("removed"))
    assert dict(removed.select("example_id", "removed_in_round").iter_rows()) == dict(
        in_scores.select("example_id", "filtering_round").iter_rows()
    )
    record = read_json(out / "settings.json")
    assert record["seed"] == 5 and record["settings"]["slice_size"] == 0.15 and record["counts"]["slice_size"] == 23
    assert record["stop_reason"] == "max_rounds" and len(record["standardisation"]["scale"]) == 4
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[1].strip() for line in lines] == [f"round {i}" for i in range(1, 5)]
    assert "stop: max_rounds" in lines[-1] and "16 of 16 fits converged" in lines[0]


def test_a_finished_folder_has_nothing_to_do(
    tmp_path: Path, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    run(files, tmp_path / "out")
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    capsys.readouterr()
    run(files, tmp_path / "out")
    assert "nothing to do" in capsys.readouterr().err
    assert before == {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}


def test_row_order_and_threads_change_no_table(tmp_path: Path, make_rows, write_rows) -> None:
    X, y = make_rows(150, 3)
    X_eval, y_eval = make_rows(60, 3, seed=3)
    ids, eval_ids = np.array([f"t{i}" for i in range(150)]), np.array([f"v{i}" for i in range(60)])
    groups = np.array([f"g{i % 70}" for i in range(150)])
    found = []
    for seed, threads in ((1, 1), (2, 2)):
        rng = np.random.default_rng(seed)
        order, eval_order = rng.permutation(150), rng.permutation(60)
        folder = tmp_path / str(seed)
        folder.mkdir()
        train = write_rows(folder / "t.parquet", X[order], y[order], ids[order], groups[order])
        evaluation = write_rows(folder / "v.parquet", X_eval[eval_order], y_eval[eval_order], eval_ids[eval_order])
        run((train, evaluation), folder / "out", threads=threads, progress=False)
        found.append(tables(folder / "out"))
    assert found[0]["retained_train"]["retained"].sum() < 120
    assert_same(*found)


def test_multiple_choice_end_to_end(tmp_path: Path, write_rows) -> None:
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(180, 3, 5)), rng.integers(3, size=180)
    X[np.arange(180), y] += 1.5 * rng.random((180, 1))
    train = write_rows(tmp_path / "t.parquet", X[:120], y[:120])
    evaluation = write_rows(tmp_path / "v.parquet", X[120:], y[120:])
    run((train, evaluation), tmp_path / "out", progress=False)
    found = tables(tmp_path / "out")
    assert found["evaluation_labels"]["label"].to_list() == [str(i) for i in y[120:]]
    assert found["rounds"].height > 1 and 0 < found["retained"]["retained"].sum() < 60


def test_without_an_evaluation_set(tmp_path: Path, files: tuple[Path, Path]) -> None:
    run(files, tmp_path / "both", progress=False)
    run((files[0], None), tmp_path / "alone", progress=False)
    both, alone = tables(tmp_path / "both"), tables(tmp_path / "alone")
    assert_frame_equal(both["retained_train"], alone["retained_train"], check_exact=True)
    assert alone["retained"].height == alone["evaluation_labels"].height == 0


DRIVER = """
import json, os, random, signal, sys, time
from pathlib import Path
import torch  # the slow import, once; polars must not be loaded before a fork

train, evaluation, whole, out = map(Path, sys.argv[1:5])

def child(folder, log):
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(out.parent / log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        from advsets.aflite.run import filter_files
        from advsets.aflite.settings import FilterSettings

        settings = FilterSettings(n_partitions=48, slice_size=0.05, max_rounds=12, threshold=0.6)
        filter_files(train, evaluation, folder, settings, threads=1, device="cpu")
        os._exit(0)
    return pid

def nodes():
    return {p.name: p.stat().st_mtime_ns for p in (out / ".rounds").glob("[0-9]*.json")}

os.waitpid(child(whole, "whole.log"), 0)
moments, snapshots = random.Random(int(sys.argv[5])), []
for n_nodes in (2, 5, 9):
    pid = child(out, "killed.log")
    while len(nodes()) < n_nodes:
        time.sleep(0.002)
        assert os.waitpid(pid, os.WNOHANG) == (0, 0)
    time.sleep(moments.random() * 0.05)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    snapshots.append(nodes())
status = os.waitpid(child(out, "last.log"), 0)[1]
print(json.dumps({"snapshots": snapshots, "status": status, "log": (out.parent / "last.log").read_text()}))
"""


def test_a_run_killed_at_random_moments_ends_as_if_it_had_not_been(tmp_path: Path, make_rows, write_rows) -> None:
    train = write_rows(tmp_path / "train.parquet", *make_rows(400, n_features=16))
    evaluation = write_rows(tmp_path / "evaluation.parquet", *make_rows(100, n_features=16, seed=3))
    seed = int.from_bytes(os.urandom(2), "little")
    command = [sys.executable, "-c", DRIVER, train, evaluation, tmp_path / "whole", tmp_path / "out", str(seed)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
    report = json.loads(done.stdout)
    assert report["status"] == 0, f"seed {seed}: {report['log']}"
    assert_same(tables(tmp_path / "whole"), tables(tmp_path / "out"))
    snapshots = report["snapshots"]
    assert [len(snapshot) for snapshot in snapshots] >= [2, 5, 9]
    for earlier, later in zip(snapshots, snapshots[1:], strict=False):
        assert earlier.items() <= later.items()
    n_before, n_rounds = len(snapshots[-1]) - 1, read_json(tmp_path / "out" / "settings.json")["n_rounds"]
    rounds = [int(line.split("round ")[1].split(":")[0]) for line in report["log"].splitlines() if ": round " in line]
    assert rounds == list(range(n_before + 1, n_rounds + 1))
    assert f"going on after round {n_before}" in report["log"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(OUTPUT_FILES)


def test_a_run_killed_before_its_tables_are_written_computes_no_round_again(
    tmp_path: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import advsets.aflite.run as module

    run(files, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(module, "_finish", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(files, tmp_path / "out")
    (tmp_path / "out" / ".retained.parquet.abc.part").write_text("half")
    scores = node_file(tmp_path / "out" / ".rounds" / "000005", "scores.parquet")
    scores.write_bytes(b"half")  # of a round whose .json was never written
    capsys.readouterr()
    run(files, tmp_path / "out")
    assert ": round " not in capsys.readouterr().err
    assert_same(tables(tmp_path / "whole"), tables(tmp_path / "out"))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(OUTPUT_FILES)


def test_two_runs_do_not_write_one_folder(tmp_path: Path, files: tuple[Path, Path]) -> None:
    out = tmp_path / "out"
    out.mkdir()
    code = f"""
from pathlib import Path
from advsets.aflite.run import filter_files
from advsets.aflite.settings import FilterSettings
from advsets.errors import user_errors
with user_errors():
    filter_files(Path({str(files[0])!r}), None, Path({str(out)!r}), FilterSettings())
"""
    with lock(out):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "another run is writing to this folder" in done.stderr
    run(files, out, progress=False)


def test_a_file_where_the_folder_should_be(tmp_path: Path, files: tuple[Path, Path]) -> None:
    (tmp_path / "taken").write_text("")
    for out in (tmp_path / "taken", tmp_path / "taken" / "out"):
        with pytest.raises(UserError, match="taken") as caught:
            run(files, out)
        assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to read-only folders")
def test_a_read_only_folder(tmp_path: Path, files: tuple[Path, Path]) -> None:
    (tmp_path / "out").mkdir(mode=0o555)
    with pytest.raises(UserError, match="permission denied: change its permissions or choose another folder"):
        run(files, tmp_path / "out")


def test_a_disk_that_is_full_gives_one_line_and_leaves_no_half_table(tmp_path: Path, files: tuple[Path, Path]) -> None:
    """A limit on file size fails at the same place as a full disk; 1 KiB lets the key through, not the state."""
    code = f"""
import resource
from pathlib import Path
from advsets.aflite.run import filter_files
from advsets.aflite.settings import FilterSettings
from advsets.errors import user_errors
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
with user_errors():
    filter_files(Path({str(files[0])!r}), None, Path({str(tmp_path / "out")!r}), FilterSettings(), device="cpu")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("advsets: error: "), done.stderr
    assert not list((tmp_path / "out").glob("*.parquet")) and not list((tmp_path / "out").rglob("*.part"))
    run((files[0], None), tmp_path / "out", progress=False)


def test_a_missing_input(tmp_path: Path, files: tuple[Path, Path]) -> None:
    with pytest.raises(UserError, match="none.parquet: no such file"):
        run((files[0], tmp_path / "none.parquet"), tmp_path / "out")
    with pytest.raises(UserError, match="threads: 0 is not allowed"):
        run(files, tmp_path / "out", threads=0)
