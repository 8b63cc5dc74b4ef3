"""The study of config/config.yaml from files to figures, every data set and model in miniature: make test-study."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

PROJECT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.workflow,
    pytest.mark.skipif("ADVSETS_TEST_STUDY" not in os.environ, reason="takes an hour on two cores: make test-study"),
]
SMALL: dict[str, Any] = {
    "run": "miniature",
    "split": {"max_train": 240, "max_evaluation": 120},
    "fine_tune": {"checkpoint_every_steps": 20},
    "evaluate": {"n_bootstrap": 50, "n_random_subsets": 10},
    "device": "cpu",
    "threads": {"fine_tune": 1, "embed": 1, "filter": 1},
}
"""What is smaller than in the study, besides rows and models."""


def write_study(folder: Path) -> Path:
    """Files, models, tables and the configuration of the study in miniature; the path of the last."""
    folder.mkdir(parents=True, exist_ok=True)
    for script, target in (("data.py", folder / "data"), ("models.py", folder / "models")):
        command = [sys.executable, str(PROJECT / "tests" / "miniature" / script), str(target)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    config = yaml.safe_load((PROJECT / "config" / "config.yaml").read_text(encoding="utf-8"))
    tables = {
        "dataset_tables": [str(folder / "data" / "datasets.yaml")],
        "model_tables": [str(folder / "models" / "miniature_models.yaml")],
    }
    filtering = {**config.get("filter", {}), "n_partitions": 16}
    tuning = {**config["fine_tune"], **SMALL["fine_tune"]}
    path = folder / "study.yaml"
    whole = {**config, **SMALL, **tables, "filter": filtering, "fine_tune": tuning}
    path.write_text(yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory):
    """Folder of the finished run, and a function that plans it again."""
    root = Path(os.environ["ADVSETS_TEST_STUDY"]).resolve() if os.environ["ADVSETS_TEST_STUDY"] != "1" else None
    root = root or tmp_path_factory.mktemp("study")
    root.mkdir(parents=True, exist_ok=True)
    for name in ("Snakefile", "workflow", "config", "profiles", "envs"):
        if not (root / name).exists():
            (root / name).symlink_to(PROJECT / name)
    config = root / "inputs" / "study.yaml"
    if not config.is_file():
        write_study(root / "inputs")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "snakemake", "--cores", "2", "--configfile", str(config), *arguments]
        return subprocess.run(
            command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )

    began = time.monotonic()
    done = run()
    assert done.returncode == 0, done.stdout[-8000:]
    print(f"the study in miniature: {time.monotonic() - began:.0f} s", file=sys.stderr)
    return root / "results" / SMALL["run"], run


def test_every_figure_is_made(study) -> None:
    results, _ = study
    rows = yaml.safe_load((PROJECT / "config" / "figures.yaml").read_text(encoding="utf-8"))
    wanted = {name for name, row in rows.items() if row.get("study", "filtering") == "filtering"}
    for kind in ("pdf", "png", "csv"):
        assert {p.stem for p in (results / "figures").glob(f"*.{kind}") if p.stat().st_size > 100} == wanted


def test_every_model_is_scored_on_every_set(study) -> None:
    results, _ = study
    models = set(yaml.safe_load((PROJECT / "config" / "config.yaml").read_text(encoding="utf-8"))["evaluated_models"])
    assert len(models) == 18
    folders = sorted((results / "evaluation").glob("*/accuracy.parquet"))
    assert len(folders) == 4
    for path in folders:
        accuracy = pl.read_parquet(path)
        assert set(accuracy["evaluated_model"]) == models
        assert models <= set(accuracy["adversary"].drop_nulls())
    assert len(list((results / "filtered").glob("*/*/README.md"))) >= 4 * 18


def test_most_models_learn_something(study) -> None:
    """Three data sets of four can be told from the text alone, so that random encoders learn a part of them."""
    results, _ = study
    shares = []
    for path in sorted((results / "evaluation").glob("*/accuracy.parquet")):
        examples = pl.read_parquet(results / "data" / path.parent.name / "evaluation.parquet")
        n_candidates = examples["candidates"].list.len().max()
        chance = 1 / n_candidates if n_candidates else examples["label"].value_counts()["count"].max() / examples.height
        full = pl.read_parquet(path).filter(pl.col("subset") == "full_set")
        shares.append((full["accuracy"] > chance).mean())
    assert sum(share > 0.5 for share in shares) >= 2, shares


def test_a_finished_study_has_nothing_to_do(study) -> None:
    _, run = study
    began = time.monotonic()
    done = run()
    assert "Nothing to be done" in done.stdout
    assert time.monotonic() - began < 60
