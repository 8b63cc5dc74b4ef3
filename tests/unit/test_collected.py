"""Collections are checked against the rows they name before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from advsets import collected
from advsets.config import load_figures, load_run_config
from advsets.errors import UserError

NLI = ["entailment", "neutral", "contradiction"]


def dataset(task: str = "sequence_classification", **more: Any) -> dict[str, Any]:
    order = {} if task == "extractive_qa" else {"label_order": NLI}
    return {"title": "T", "task": task, **order, "source": {"kind": "file", "train": "t.csv"}, **more}


DATASETS = {
    "plain": dataset(fine_tune={"epochs": 4, "max_length": 64}),
    "other": dataset(label_order=NLI[::-1], fine_tune={"epochs": 4, "max_length": 99}),
    "hard": dataset(model_in_the_loop={"title": "Large", "models": ["large"], "family": "f"}),
    "reviews": dataset(label_order=["good", "bad"]),
    "quiz": dataset("extractive_qa"),
    "choices": dataset("multiple_choice", label_order=[], columns={"candidates": ["a", "b"]}),
}
MODELS = {
    "small": {"source": {"kind": "path", "path": "m"}, "family": "s", "fine_tune": {"learning_rate": 0.5}},
    "large": {"source": {"kind": "path", "path": "m"}, "family": "f"},
}
PREDICTIONS = {
    "published": {"files": {"hard": "p.csv"}, "columns": {"id": "uid", "predicted_label": "said"}},
    "elsewhere": {"files": {"plain": "p.csv"}, "columns": {"id": "uid", "predicted_label": "said"}},
}
RUN: dict[str, Any] = {
    "run": "made",
    "dataset_tables": ["datasets.yaml"],
    "model_tables": ["models.yaml"],
    "prediction_tables": ["predictions.yaml"],
    "collections": {
        "c": {
            "standard": ["plain"],
            "adversarial": ["hard"],
            "training_sets": {"both": {"datasets": ["plain", "other"]}},
            "evaluated_models": ["small"],
            "imported_models": ["published"],
        }
    },
}


def load(folder: Path, run: dict[str, Any]) -> dict[str, Any]:
    for name, rows in (("datasets", DATASETS), ("models", MODELS), ("predictions", PREDICTIONS)):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(rows), encoding="utf-8")
    return load_run_config(run, folder)


def test_rows_that_collections_name_are_picked(tmp_path: Path) -> None:
    rows = load(tmp_path, RUN)["collected_rows"]
    assert {key: sorted(part) for key, part in rows.items()} == {
        "datasets": ["hard", "other", "plain"],
        "models": ["small"],
        "imported": ["published"],
    }
    assert rows["datasets"]["hard"]["model_in_the_loop"]["collection_round"] is None


def test_rows_of_imported_models_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PREDICTIONS["published"], "base_model", "lrge")
    with pytest.raises(UserError, match="imported model published: base_model: no row 'lrge' .* mean 'large'"):
        load(tmp_path, RUN)


def test_fine_tuning_settings_go_over_each_other(tmp_path: Path) -> None:
    run = deepcopy(RUN)
    run["fine_tune"] = {"epochs": 1, "batch_size": 7, "max_length": 11}
    run["collections"]["c"]["fine_tune"] = {"batch_size": 8}
    found = collected.fine_tune_settings(load(tmp_path, run), "c", "both", "small")
    # both data sets say 4 epochs, but differ in length; the collection says 8; the model 0.5
    assert (found["epochs"], found["max_length"], found["batch_size"], found["learning_rate"]) == (4, 11, 8, 0.5)


def test_only_figures_of_what_the_run_does(tmp_path: Path) -> None:
    table = {
        "kept": {"tables": ["rounds"], "caption": "c.rst", "category": "A"},
        "scored": {"tables": ["collected_scores"], "caption": "c.rst", "category": "A", "study": "collection"},
        "asked": {"tables": ["question_kinds"], "caption": "c.rst", "category": "A", "study": "questions"},
    }
    (tmp_path / "figures.yaml").write_text(yaml.safe_dump(table), encoding="utf-8")
    run = load(tmp_path, RUN)
    assert list(load_figures(run, tmp_path / "figures.yaml")) == ["scored"]
    with pytest.raises(
        UserError, match="figures: 'kept' cannot be drawn, as the run has no `datasets`; allowed: scored;"
    ):
        load_figures({**run, "figures": ["kept"]}, tmp_path / "figures.yaml")
    with pytest.raises(UserError, match="figures: 'asked' cannot be drawn, as the run has no collection of questions;"):
        load_figures({**run, "figures": ["asked"]}, tmp_path / "figures.yaml")
    quiz = deepcopy(RUN)
    quiz["collections"] = {"q": {"adversarial": ["quiz"], "imported_models": ["published"]}}
    with pytest.raises(UserError, match="imported model 'published' has files for hard"):
        load(tmp_path, quiz)
    quiz["collections"]["q"] |= {
        "imported_models": [],
        "evaluated_models": ["small"],
        "training_sets": {"t": {"datasets": ["quiz"]}},
    }
    assert set(load_figures(load(tmp_path, quiz), tmp_path / "figures.yaml")) == {"scored", "asked"}


def change(**parts: Any) -> Callable[[dict[str, Any]], None]:
    return lambda run: run["collections"]["c"].update(parts)


@pytest.mark.parametrize(
    ("apply", "expected"),
    [
        (change(adversarial=["hrd"]), "collections: c.adversarial: no row 'hrd' in datasets.yaml; allowed: "),
        (change(standard=["hard"]), "collections: c: 'hard' stands in standard and adversarial; allowed: one of"),
        (change(standard=["plain", "reviews"]), "collections: c: 'reviews' has labels good, bad, 'plain' entailment,"),
        (change(standard=["quiz"]), "collections: c: 'quiz' has task extractive_qa, 'hard' sequence_classification;"),
        (change(standard=["choices"]), "collections: c: 'choices' has task multiple_choice; allowed: seq"),
        (change(evaluated_models=[]), "collections: c: training_sets without evaluated_models; allowed: both"),
        (change(training_sets={}), "collections: c: evaluated_models without training_sets; allowed: both"),
        (
            change(training_sets={}, evaluated_models=[], imported_models=[]),
            "collections: c: no models to score; allowed: evaluated_models, imported_models or both; name some",
        ),
        (
            change(training_sets={"imported": {"datasets": ["plain"]}}),
            "collections: c.training_sets: the name 'imported' is taken for imported models; choose another",
        ),
        (
            change(training_sets={"t": {"datasets": ["plain"], "passages_of": ["plain"]}}),
            "collections: c.training_sets: t.passages_of: only questions have passages;",
        ),
        (
            change(standard=[], imported_models=["elsewhere"]),
            "collections: c: imported model 'elsewhere' has files for plain, none of which is an evaluation set here",
        ),
        (
            change(training_sets={}, evaluated_models=[]),
            "collections: c: no model has predictions on 'plain'; allowed: sets that an imported model has a file for",
        ),
        (lambda run: run.update(collections={2020: run["collections"]["c"]}), "configuration: collections: found 2020"),
        (
            change(training_sets={"t": {"datasets": ["plain"], "max_train": "1e5"}}),
            "configuration: collections.c.training_sets.t.max_train: found '1e5'; allowed: type integer or null (Train",
        ),
        (change(fine_tuning_seeds=[1.0]), "configuration: collections.c.fine_tuning_seeds.0: found 1.0; allowed: type"),
        (change(imported_models=["publishd"]), "collections: c.imported_models: no row 'publishd' in predictions.yaml"),
        (change(fine_tune={"epochs": 0}), "collections: c: fine_tune: epochs: found 0; allowed: 1 or more"),
        (change(fine_tune={"epoch": 1}), "collections: c: fine_tune: unknown key 'epoch'"),
        (change(training_sets={"t": {"datasets": []}}), "configuration: collections.c.training_sets.t.datasets: found"),
        (lambda run: run.update(collections={}), "configuration: key 'datasets' is missing; add it, or `collections`"),
        (
            lambda run: run.update(datasets=["quiz"], adversaries=["small"], evaluated_models=["small"]),
            "datasets: 'quiz' has task extractive_qa, which AFLite does not filter; allowed: ",
        ),
        (lambda run: run.update(datasets=["plain"]), "configuration: key 'adversaries' is missing; add it ("),
    ],
)
def test_bad_collections_are_one_line(tmp_path: Path, apply: Callable[[dict[str, Any]], None], expected: str) -> None:
    run = deepcopy(RUN)
    apply(run)
    with pytest.raises(UserError) as caught:
        load(tmp_path, run)
    message = str(caught.value).replace(f"{tmp_path}/", "")
    assert message.startswith(expected) and "\n" not in message
