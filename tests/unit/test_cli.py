"""The command line: what it writes, and one clear line with exit code 2 for a mistake."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from advsets.cli import main

N_TRAIN, N_EVALUATION, WIDTH = 120, 60, 5


def embeddings(folder: Path, split: str, n: int, key: int) -> Path:
    rng = np.random.default_rng(key)
    label = rng.integers(2, size=n)
    vectors = rng.normal(size=(n, WIDTH)) + 1.5 * label[:, None] * (rng.random((n, 1)) < 0.7)
    path = folder / f"{split}.parquet"
    pl.DataFrame(
        {
            "example_id": [f"{split}-{i}" for i in range(n)],
            "label": [["no", "yes"][k] for k in label],
            "embedding": vectors.astype(np.float32),
        }
    ).write_parquet(path)
    return path


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return embeddings(tmp_path, "train", N_TRAIN, 0), embeddings(tmp_path, "validation", N_EVALUATION, 1)


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "advsets.cli", *map(str, arguments)], capture_output=True, text=True, check=False
    )


SMALL = ("--n-partitions", "8", "--train-size", "0.3", "--slice-size", "0.1", "--threads", "1", "--device", "cpu")


def test_filter_then_evaluate(files, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "set"
    assert main(["filter", *map(str, files), "--out", str(out), *SMALL]) == 0
    retained = pl.read_parquet(out / "retained.parquet")
    assert retained.height == N_EVALUATION
    assert 0 < retained["retained"].sum() < N_EVALUATION
    assert (out / "rounds.parquet").is_file() and (out / "round_scores.parquet").is_file()
    gold = pl.read_parquet(files[1]).select("example_id", predicted_label="label")
    gold.sample(fraction=1, shuffle=True, seed=3).write_csv(tmp_path / "gold.csv")
    capsys.readouterr()
    scores = tmp_path / "scores.csv"
    assert main(["evaluate", str(tmp_path / "gold.csv"), "--set", str(out), "--out", str(scores)]) == 0
    table = pl.read_csv(scores)
    assert set(table["subset"]) == {"full_set", "filtered", "random_subset"}
    assert table["accuracy"].to_list() == [1.0] * 3
    assert "filtered" in capsys.readouterr().out


def test_target_size(files, tmp_path: Path) -> None:
    out = tmp_path / "set"
    assert main(["filter", *map(str, files), "--out", str(out), "--target-size", "25", *SMALL]) == 0
    assert pl.read_parquet(out / "retained.parquet")["retained"].sum() == 25


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (["--threshold", "1.5"], "threshold"),
        (["--train-size", "5000"], "train_size"),
        (["--slice-size", "0"], "slice_size"),
        (["--n-partitions", "0"], "n_partitions"),
        (["--target-size", "100000"], "target_size"),
    ],
)
def test_bad_settings_are_one_line(files, tmp_path: Path, change: list[str], part: str) -> None:
    done = run("filter", *files, "--out", tmp_path / "out", *change)
    assert_one_line(done, part)
    assert not (tmp_path / "out" / "retained.parquet").exists()


def test_missing_file_is_one_line(files, tmp_path: Path) -> None:
    assert_one_line(run("filter", files[0], tmp_path / "none.parquet", "--out", tmp_path / "out"), "none.parquet")
    assert_one_line(run("evaluate", tmp_path / "p.csv", "--set", tmp_path / "nowhere"), "nowhere")
    assert_one_line(run("summary", tmp_path), "findings.parquet")


def assert_one_line(done: subprocess.CompletedProcess[str], part: str) -> None:
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("advsets: error:")]
    assert len(lines) == 1 and part in lines[0], done.stderr


def test_version_and_help_import_nothing_heavy() -> None:
    code = (
        "import sys, contextlib, io\nfrom advsets.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit): main(['--help'])\n"
        "assert 'filter' in out.getvalue()\n"
        "print([m for m in ('torch', 'polars', 'numpy', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
