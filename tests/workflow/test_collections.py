"""Collections through the whole workflow: sentence pairs and questions, trained and imported models."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from advsets.seeding import rng_for
from advsets.tables import TABLES

pytestmark = pytest.mark.workflow
LABELS = ("entailment", "neutral", "contradiction")
WORDS = ("river", "stone", "garden", "letter", "winter", "market", "bridge", "candle", "mirror", "forest")
RUN = {
    "run": "collected",
    "dataset_tables": ["datasets.yaml"],
    "prediction_tables": ["predictions.yaml"],
    "collections": {
        "pairs": {
            "standard": ["plain"],
            "adversarial": ["hard"],
            "training_sets": {"both": {"datasets": ["plain", "hard"], "max_train": 80}},
            "evaluated_models": ["minilm_l1"],
            "imported_models": ["published"],
            "fine_tuning_seeds": [0, 1],
        },
        "quiz": {
            "standard": ["asked"],
            "adversarial": ["tricky"],
            "training_sets": {"asked_alone": {"datasets": ["asked"]}},
            "evaluated_models": ["minilm_l1"],
            "imported_models": ["answers"],
        },
    },
    "fine_tune": {"max_length": 48, "epochs": 1},
    "question_answering": {"window_stride": 8},
    "evaluate": {"n_bootstrap": 50},
    "device": "cpu",
    "threads": {"fine_tune": 1, "embed": 1, "filter": 1},
}


def sentences(n: int, key: str) -> list[str]:
    rng = rng_for(0, key)
    return [" ".join(rng.choice(WORDS, 6)) + f" {key} {i}" for i in range(n)]


def write_pairs(folder: Path, name: str, n_train: int, n_evaluation: int) -> None:
    for split, n in (("train", n_train), ("evaluation", n_evaluation)):
        key = f"{name} {split}"
        rows = [
            {"uid": f"{key} {i}", "premise": a, "hypothesis": b, "label": LABELS[i % 3]}
            for i, (a, b) in enumerate(zip(sentences(n, f"{key} a"), sentences(n, f"{key} b"), strict=True))
        ]
        pl.DataFrame(rows).write_csv(folder / f"{name}_{split}.csv")


def write_quiz(folder: Path, name: str, n_train: int, n_evaluation: int) -> None:
    for split, n in (("train", n_train), ("evaluation", n_evaluation)):
        paragraphs = []
        for i, text in enumerate(sentences(n, f"{name} {split}")):
            context = f"{text} \N{ROCKET} ends the caf\N{LATIN SMALL LETTER E}\N{COMBINING ACUTE ACCENT} {i}."
            answer = f"{split} {i}"
            question = {
                "id": f"{name}-{split}-{i}",
                "question": "What follows the words?",
                "answers": [{"text": answer, "answer_start": context.index(answer)}],
            }
            paragraphs.append({"context": context, "qas": [question]})
        data = {"version": "1.1", "data": [{"title": f"{name} {split}", "paragraphs": paragraphs}]}
        (folder / f"{name}_{split}.json").write_text(json.dumps(data), encoding="utf-8")


def write_inputs(folder: Path) -> None:
    """Data, predictions, tables and the run's configuration in `folder`."""
    for name in ("plain", "hard"):
        write_pairs(folder, name, 60, 30)
    for name in ("asked", "tricky"):
        write_quiz(folder, name, 24, 12)
    hard = pl.read_csv(folder / "hard_evaluation.csv").reverse()
    given = hard.select(item="uid", guess=pl.col("label").replace_strict(dict(zip(LABELS, "enc", strict=True))))
    given.head(25).write_csv(folder / "published.csv")
    answers = {f"tricky-evaluation-{i}": f"evaluation {i}" for i in range(11)}
    (folder / "answers.json").write_text(json.dumps(answers), encoding="utf-8")
    loop = {"title": "A large model", "models": ["minilm_l1"], "family": "minilm", "collection_round": 1}
    datasets = {
        name: {
            "title": f"Set {name}",
            "task": "sequence_classification",
            "label_order": list(LABELS),
            "columns": {"example_id": "uid", "text_a": "premise", "text_b": "hypothesis"},
            "source": {"kind": "file", "train": f"{name}_train.csv", "evaluation": f"{name}_evaluation.csv"},
            "model_in_the_loop": loop if name == "hard" else None,
        }
        for name in ("plain", "hard")
    } | {
        name: {
            "title": f"Set {name}",
            "task": "extractive_qa",
            "source": {"kind": "file", "train": f"{name}_train.json", "evaluation": f"{name}_evaluation.json"},
            "model_in_the_loop": {"title": "Another model"} if name == "tricky" else None,
        }
        for name in ("asked", "tricky")
    }
    predictions = {
        "published": {
            "family": "minilm",
            "files": {"hard": "published.csv"},
            "key": "example_id",
            "columns": {"id": "item", "predicted_label": "guess"},
            "labels": dict(zip("enc", LABELS, strict=True)),
        },
        "answers": {"files": {"tricky": (folder / "answers.json").as_uri()}, "columns": {}},
    }
    for name, rows in (("datasets", datasets), ("predictions", predictions), ("run", RUN)):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(rows), encoding="utf-8")


def test_collections_run_to_the_end(workspace) -> None:
    write_inputs(workspace.root)
    done = workspace.run("--cores", "2", "--configfile", "run.yaml")
    assert done.returncode == 0, done.stdout[-6000:]
    results = workspace.root / "results" / "collected"
    wanted = set(yaml.safe_load((workspace.root / "config" / "figures.yaml").read_text(encoding="utf-8")))
    for kind in ("pdf", "png", "csv"):
        made = {path.stem for path in (results / "figures").glob(f"*.{kind}") if path.stat().st_size > 100}
        assert made == {"adversarial_collection", "cross_training", "model_in_the_loop", "question_statistics"} & wanted
    for collection in ("pairs", "quiz"):
        for path in (results / "evaluation" / "collected" / collection).glob("*.parquet"):
            assert pl.read_parquet(path).columns == TABLES[path.stem].column_names, path
    check_pairs(pl.read_parquet(results / "evaluation/collected/pairs/collected_scores.parquet"))
    check_quiz(pl.read_parquet(results / "evaluation/collected/quiz/collected_scores.parquet"))
    loop = pl.read_parquet(results / "evaluation/collected/pairs/model_in_the_loop.parquet")
    assert set(loop["how"]) == {"full_set", "by_people", "by_selection"}
    assert r"\begin{table*}" in (results / "evaluation/collected/cross_training.tex").read_text(encoding="utf-8")
    again = workspace.run("--cores", "2", "--configfile", "run.yaml")
    assert "Nothing to be done" in again.stdout, again.stdout[-3000:]


def check_pairs(scores: pl.DataFrame) -> None:
    (published,) = scores.filter(evaluated_model="published").to_dicts()
    assert (published["dataset"], published["n_missing"], published["relation"]) == ("hard", 5, "same_family")
    assert published["mean_score"] == pytest.approx(25 / 30)
    own = scores.filter(training_set="both")
    assert own.height == 2 * 2 and (own["n_missing"] == 0).all() and own["saw_training_part"].all()
    assert set(own.filter(dataset="hard")["relation"]) == {"self"}


def check_quiz(scores: pl.DataFrame) -> None:
    given = {row["measure"]: row for row in scores.filter(evaluated_model="answers").to_dicts()}
    assert set(given) == {"exact_match", "f1"}
    assert all(row["n_missing"] == 1 and row["mean_score"] == pytest.approx(11 / 12) for row in given.values())
    own = scores.filter(training_set="asked_alone")
    assert set(own["dataset"]) == {"asked", "tricky"} and (own["n_missing"] == 0).all()


MEMORY = {"fine_tune": 3000, "embed": 2000, "evaluate": 1000, "other": 500}


def more_files_and_a_cluster(folder: Path) -> None:
    """Two files of every imported model, and what steps ask a scheduler for."""
    rows = yaml.safe_load((folder / "predictions.yaml").read_text(encoding="utf-8"))
    for model, dataset in (("published", "plain"), ("answers", "asked")):
        (given,) = rows[model]["files"].values()
        rows[model]["files"][dataset] = given
    (folder / "predictions.yaml").write_text(yaml.safe_dump(rows), encoding="utf-8")
    cluster = {"partition": "batch", "gpu_partition": "fast", "mem_mb": MEMORY}
    run = {**RUN, "device": "auto", "cluster": cluster}
    (folder / "run.yaml").write_text(yaml.safe_dump(run), encoding="utf-8")


def jobs_of(plan: str) -> list[dict[str, Any]]:
    """Rule, group and resources of the jobs of a plan whose rules have no messages."""
    jobs, group = [], None
    for block in re.split(r"(?=^ *\[)", plan, flags=re.MULTILINE):
        if not block.startswith(" "):
            named = re.search(r"Group job (\S+)", block)
            group = named[1] if named else None
        rule = re.search(r"^ *rule (\w+):", block, re.MULTILINE)
        if rule:
            asked = re.search(r"resources: (.*)", block)
            jobs.append({"rule": rule[1], "group": group, **dict(re.findall(r"(\w+)=([\w/]+)", asked[1]))})
    return jobs


def test_short_steps_of_collections_are_submitted_together(workspace) -> None:
    write_inputs(workspace.root)
    more_files_and_a_cluster(workspace.root)
    plain = workspace.root / "plain.smk"  # jobs with a message tell no resources
    plain.write_text('include: "Snakefile"\n\nfor rule_of_ours in workflow.rules:\n    rule_of_ours.message = None\n')
    profile = yaml.safe_load((workspace.root / "profiles/slurm/config.yaml").read_text(encoding="utf-8"))
    asked = ("-n", "-s", str(plain), "--cores", "2", "--configfile", "run.yaml", "--resources", "gpu=4")
    done = workspace.run("all", *asked, "--group-components", *profile["group-components"])
    assert done.returncode == 0, done.stdout[-6000:]
    jobs = jobs_of(done.stdout)
    together = Counter((job["group"], job["rule"]) for job in jobs if job["group"])
    assert together == {
        ("imports_pairs", "import_predictions"): 2,
        ("imports_quiz", "import_predictions"): 2,
        ("questions", "question_statistics"): 1,
        ("questions", "draw_question_statistics"): 1,
        ("collected_figures", "draw_adversarial_collection"): 1,
        ("collected_figures", "draw_cross_training"): 1,
        ("collected_figures", "draw_model_in_the_loop"): 1,
        ("collected_figures", "write_cross_training"): 1,
    }
    assert all(int(job["together"]) <= profile["resources"]["together"] for job in jobs if job["group"])
    found = {job["rule"]: (job.get("slurm_partition"), job.get("mem_mb"), job.get("gpu")) for job in jobs}
    steps = {"fine_tune_collected": "fine_tune", "predict_collected": "embed"}
    for rule, step in steps.items():
        assert found[rule] == ("fast", str(MEMORY[step]), "1")
    steps = dict.fromkeys(("evaluate_collection", "question_statistics"), "evaluate")
    steps |= dict.fromkeys(("import_predictions", "join_training_set", "prepare_questions"), "other")
    for rule, step in steps.items():
        assert found[rule] == ("batch", str(MEMORY[step]), None)
    told = re.search(r"^evaluate_collection +(\d+)", done.stdout[done.stdout.index("Cost of what") :], re.MULTILINE)
    assert told and int(told[1]) == 2 + 4 + 2 + 1 + 1, "scoring, imports, training sets, statistics and the LaTeX table"
    assert "Not counted, as their size is not known yet: data set asked, data set hard" in done.stdout
