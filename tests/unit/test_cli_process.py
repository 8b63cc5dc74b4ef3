"""The command as a process: Ctrl-C, readers that go away, locales without UTF-8, and arguments that are empty."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from advsets.cli import main
from advsets.errors import EXIT_INTERRUPTED, EXIT_USER_ERROR

COMMAND = [sys.executable, "-m", "advsets.cli"]
FAST = ["--n-partitions", "4", "--slice-size", "0.1", "--max-rounds", "2", "--threads", "1", "--device", "cpu"]
CLOSED_PIPE = 128 + signal.SIGPIPE


def embeddings(path: Path, n: int, key: int, width: int = 4) -> Path:
    rng = np.random.default_rng(key)
    label = rng.integers(2, size=n)
    vectors = (rng.normal(size=(n, width)) + label[:, None]).astype(np.float32)
    names = {"example_id": [f"{key}-{i}" for i in range(n)], "label": [str(k) for k in label]}
    with path.open("wb") as handle:
        pl.DataFrame({**names, "embedding": vectors}).write_parquet(handle)
    return path


def test_ctrl_c_is_one_line_that_says_where_the_run_goes_on(tmp_path: Path) -> None:
    train = embeddings(tmp_path / "t.parquet", 1500, 0, width=48)
    settings = ["--n-partitions", "64", "--slice-size", "5", "--max-rounds", "200", "--threads", "1", "--device", "cpu"]
    command = [*COMMAND, "filter", str(train), "--out", str(tmp_path / "out"), "--threshold", "0.55", *settings]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None and process.stderr.readline().startswith("advsets: round 1:")
    process.send_signal(signal.SIGINT)
    *_, last = process.stderr.read().splitlines()
    assert process.wait() == EXIT_INTERRUPTED
    assert last.startswith("advsets: interrupted; the same command goes on after round ")
    done = max(int(path.stem) for path in (tmp_path / "out" / ".rounds").glob("[0-9]*.json"))
    assert last.endswith(f" {done}") and done >= 1


@pytest.mark.parametrize(("argument", "code"), [("keys", CLOSED_PIPE), ("--help", 0)])
def test_a_reader_that_goes_away_ends_the_command_quietly(argument: str, code: int) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*COMMAND, argument], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no device /dev/full here")
def test_output_that_cannot_be_written_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, "keys"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == EXIT_USER_ERROR
    assert done.stderr == "advsets: error: the output: the disk is full: free some space and run again\n"


def test_a_locale_without_utf_8_takes_any_file_name(tmp_path: Path) -> None:
    place = tmp_path / "sp ü ace"
    place.mkdir()
    in_latin_1 = os.fsdecode(b"tr \xe4.parquet")
    files = [embeddings(place / in_latin_1, 60, 0), embeddings(place / "v ä.parquet", 30, 1)]
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [*COMMAND, "filter", *map(str, files), "--out", str(place / "ö"), *FAST]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, encoding="ascii")
    assert done.returncode == 0 and "stop: " in done.stderr, done.stderr
    refused = subprocess.run([*command, "--seed", "1"], env=environment, capture_output=True, text=True)
    assert r"/\udcc3\udcb6: holds a finished run" in refused.stderr


def refused(*arguments: str) -> str:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True)
    assert done.returncode == EXIT_USER_ERROR and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_an_empty_path_is_not_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = embeddings(tmp_path / "t.parquet", 60, 0)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for arguments in (["filter", str(train), "--out", ""], ["evaluate", "", "--set", "x"], ["summary", ""]):
        assert "a path is empty; allowed: a file or folder" in refused(*arguments)
    assert not any((tmp_path / "here").iterdir())


def test_another_run_is_replaced_only_if_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = embeddings(tmp_path / "t.parquet", 60, 0)
    command = ["filter", str(train), "--out", str(tmp_path / "out"), *FAST]
    assert main(command) == 0
    with pytest.raises(SystemExit, match=str(EXIT_USER_ERROR)):
        main([*command, "--seed", "3"])
    assert "seed 3 here and 0 there" in capsys.readouterr().err
    assert main([*command, "--seed", "3", "--overwrite"]) == 0
