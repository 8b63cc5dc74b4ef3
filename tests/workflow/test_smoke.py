"""The whole workflow on real data in small."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import polars as pl
import pytest

from advsets.tables import TABLES

pytestmark = pytest.mark.workflow
SMOKE = ("--cores", "2", "--configfile", "config/smoke.yaml")


def test_every_file_is_made(smoke) -> None:
    results = smoke.root / "results" / "smoke"
    figures = {p.stem for p in (results / "figures").glob("*.pdf")}
    assert len(figures) >= 7
    for stem in figures:
        for kind in ("pdf", "png", "csv"):
            assert (results / "figures" / f"{stem}.{kind}").stat().st_size > 100
    assert (results / "evaluation" / "findings.md").read_text(encoding="utf-8").count("|") > 20
    assert (results / "run_config.yaml").is_file()


def test_tables_hold_their_declared_columns(smoke) -> None:
    results = smoke.root / "results" / "smoke"
    for name, pattern in {
        "rounds": "aflite/*/*/*/rounds.parquet",
        "round_scores": "aflite/*/*/*/round_scores.parquet",
        "retained": "aflite/*/*/*/retained.parquet",
        "accuracy": "evaluation/*/accuracy.parquet",
        "findings": "evaluation/*/findings.parquet",
        "predictions": "predictions/*/*/*/evaluation.parquet",
        "examples": "data/*/evaluation.parquet",
    }.items():
        paths = sorted(results.glob(pattern))
        assert paths, name
        for path in paths:
            assert pl.read_parquet(path).columns == TABLES[name].column_names


def test_removed_rows_are_above_the_threshold(smoke) -> None:
    for path in sorted((smoke.root / "results/smoke/aflite").rglob("round_scores.parquet")):
        scores = pl.read_parquet(path).filter(pl.col("split") == "evaluation")
        above = scores["n_correct"] * 4 > scores["n_held_out"] * 3
        assert scores["removed"].equals(above.alias("removed"))


def test_second_run_has_nothing_to_do(smoke) -> None:
    started = time.monotonic()
    done = smoke.run(*SMOKE)
    assert done.returncode == 0
    assert "Nothing to be done" in done.stdout
    assert time.monotonic() - started < 120


def test_plan_after_the_run_is_empty(smoke) -> None:
    done = smoke.run("-n", *SMOKE)
    assert "Nothing to be done" in done.stdout


def test_touched_input_of_equal_content_reruns_nothing(smoke) -> None:
    source = next((smoke.root / "results/downloads/datasets").rglob("source.json"))
    os.utime(source)
    done = smoke.run("-n", *SMOKE)
    assert "Nothing to be done" in done.stdout


def test_plan_of_one_figure_has_only_its_stages(workspace) -> None:
    done = workspace.run("-n", "results/smoke/figures/retained_share_by_round.pdf", *SMOKE)
    assert done.returncode == 0, done.stdout
    counts = dict(re.findall(r"^(\w+) +(\d+)$", done.stdout, re.MULTILINE))
    assert "filter_collect" in counts and "draw_retained_share_by_round" in counts
    assert "predict" not in counts and "evaluate_models" not in counts
    assert counts["fine_tune"] == "2"


def test_changed_threshold_refits_but_does_not_retrain(smoke, tmp_path: Path) -> None:
    text = (smoke.root / "config/smoke.yaml").read_text(encoding="utf-8")
    changed = tmp_path / "changed.yaml"
    changed.write_text(text.replace("n_partitions: 16", "n_partitions: 16\n  threshold: 0.6"), encoding="utf-8")
    done = smoke.run("-n", "--cores", "2", "--configfile", str(changed))
    counts = dict(re.findall(r"^(\w+) +(\d+)$", done.stdout, re.MULTILINE))
    assert "filter_rounds" in counts
    assert not {"fine_tune", "embed", "predict", "fetch_dataset"} & set(counts)


def test_fetch_plans_downloads_only(workspace) -> None:
    done = workspace.run("-n", "fetch", *SMOKE)
    counts = dict(re.findall(r"^(\w+) +(\d+)$", done.stdout, re.MULTILINE))
    assert set(counts) == {"fetch", "fetch_dataset", "fetch_model", "total"}


def test_key_given_twice_in_a_configuration_file_is_refused(workspace, tmp_path: Path) -> None:
    more = tmp_path / "more.yaml"
    more.write_text("seed: 4\n", encoding="utf-8")
    done = workspace.run("-n", *SMOKE, str(more), "--config", "device=cpu")
    assert done.returncode == 0, done.stdout
    more.write_text("seed: 4\nseed: 5\n", encoding="utf-8")
    done = workspace.run("-n", *SMOKE, str(more))
    assert done.returncode == 1
    assert f"{more}, line 2: not valid YAML (key 'seed' is given twice); mend the file" in done.stdout


@pytest.mark.parametrize("adversary", ["static_embeddings", "minilm_l1", "both"])
def test_exported_set_loads_and_own_predictions_are_scored(smoke, adversary: str, tmp_path: Path, capsys) -> None:
    import datasets

    from advsets.cli import main

    folder = smoke.root / "results/smoke/filtered/hutto_movies" / adversary
    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    decided = pl.read_parquet(folder / "retained.parquet")
    assert decided.equals(
        pl.read_parquet(smoke.root / f"results/smoke/aflite/hutto_movies/{adversary}/seed0/retained.parquet")
    )
    retained = decided.filter("retained")
    (split,) = loaded
    assert sorted(loaded[split]["example_id"]) == sorted(retained["example_id"].to_list())
    labels = pl.read_parquet(folder / "evaluation_labels.parquet")
    labels.rename({"label": "predicted_label"}).write_csv(tmp_path / "gold.csv")
    assert main(["evaluate", str(tmp_path / "gold.csv"), "--set", str(folder)]) == 0
    assert "1.00" in capsys.readouterr().out or "100" in capsys.readouterr().out


def test_the_card_of_an_ensemble_tells_its_members_and_its_own_agreement(smoke) -> None:
    card = (smoke.root / "results/smoke/filtered/hutto_movies/both/README.md").read_text(encoding="utf-8")
    assert "| name | minilm_l1 | static_embeddings |" in card and "| combination | mean |" in card
    folder = smoke.root / "results/smoke/evaluation/hutto_movies"
    agreement = pl.read_parquet(folder / "ensembles/agreement.parquet")
    assert set(agreement["adversary"]) == {"both"} and agreement.columns == TABLES["agreement"].column_names
    kept = agreement.filter((pl.col("subset") == "retained") & pl.col("gold_label").is_null())
    assert f"{kept['agreement_mean'][0]:.3f} ({kept['agreement_low'][0]:.3f} to" in card
    assert "both" not in set(pl.read_parquet(folder / "agreement.parquet")["adversary"])


def test_the_command_filters_by_several_adversaries_as_the_workflow_does(smoke, tmp_path: Path) -> None:
    from advsets.cli import main

    results = smoke.root / "results/smoke"
    folders = [results / "embeddings/hutto_movies" / member / "seed0" for member in ("minilm_l1", "static_embeddings")]
    first, second = ([str(folder / f"{split}.parquet") for split in ("train", "evaluation")] for folder in folders)
    settings = ["--n-partitions", "16", "--slice-size", "0.1", "--max-rounds", "4", "--threads", "1", "--device", "cpu"]
    assert main(["filter", *first, "--also", *second, "--out", str(tmp_path), *settings]) == 0
    for name in ("retained", "retained_train", "round_scores"):
        golden = pl.read_parquet(results / f"aflite/hutto_movies/both/seed0/{name}.parquet")
        assert golden.equals(pl.read_parquet(tmp_path / f"{name}.parquet")), name


def test_report_opens_without_network(smoke) -> None:
    done = smoke.run("--report", "results/smoke/report.html", "--configfile", "config/smoke.yaml")
    assert done.returncode == 0, done.stdout
    html = (smoke.root / "results/smoke/report.html").read_text(encoding="utf-8")
    assert html.count("data:image/png;") >= 7
    assert not re.search(r'<(script|link)[^>]+(src|href)="https?://', html)


def test_clean_checkpoints_then_nothing_to_do(smoke) -> None:
    done = smoke.run("clean_checkpoints", "--cores", "1", "--configfile", "config/smoke.yaml")
    assert done.returncode == 0, done.stdout
    assert not list((smoke.root / "results/smoke/models").rglob("checkpoint"))
    assert "Nothing to be done" in smoke.run("-n", *SMOKE).stdout
