"""A run of two made-up data sets and two models, with round numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from advsets import config as settings

DATASETS: dict[str, Any] = {
    "pairs": {
        "title": "Pairs",
        "task": "sequence_classification",
        "label_order": ["a", "b", "c"],
        "source": {"kind": "file", "train": "train.csv", "evaluation": "dev.csv"},
        "cost": {"n_train": 1000, "n_evaluation": 200, "tokens": 20},
        "filter": {"train_size": 100, "slice_size": 50, "min_retained": 300},
    },
    "choices": {
        "title": "Choices",
        "task": "multiple_choice",
        "columns": {"candidates": ["x", "y", "z", "w"]},
        "source": {"kind": "file", "train": "train.csv", "evaluation": "dev.csv"},
        "cost": {"n_train": 400, "n_evaluation": 100, "n_candidates": 4, "tokens": 300},
    },
    "unknown": {
        "title": "Of unknown size",
        "task": "sequence_classification",
        "label_order": ["a", "b"],
        "source": {"kind": "file", "train": "train.csv", "evaluation": "dev.csv"},
    },
}
MODELS: dict[str, Any] = {
    "plain": {
        "family": "f",
        "parameters_m": 100,
        "source": {"kind": "path", "path": "."},
        "cost": {"hidden_size": 10},
    },
    "shared": {
        "family": "f",
        "parameters_m": 10,
        "precision": "float32",
        "source": {"kind": "path", "path": "."},
        "cost": {"parameters_per_token_m": 100, "hidden_size": 10},
        "fine_tune": {"epochs": 1},
    },
    "unknown_size": {"family": "f", "source": {"kind": "path", "path": "."}},
}
RUN: dict[str, Any] = {
    "run": "tiny",
    "datasets": list(DATASETS),
    "adversaries": list(MODELS),
    "evaluated_models": list(MODELS),
    "dataset_tables": ["datasets.yaml"],
    "model_tables": ["models.yaml"],
    "fine_tune": {"epochs": 3, "max_length": 64},
    "embed": {"dtype": "float16"},
    "filter": {"n_partitions": 4, "rounds_per_job": 2},
    "ensembles": {"both": {"members": ["plain", "shared"]}, "half_known": {"members": ["plain", "unknown_size"]}},
    "sensitivity": {"adversaries": ["plain"], "n_partitions": [8], "seed": [5]},
    "cost": {
        "gpu_tflops": 100,
        "gpu_float32_tflops": 10,
        "utilisation": 0.5,
        "step_s": 0.001,
        "cpu_gflops": 10,
        "job_start_s": 10,
        "other_job_s": 7,
        "read_mb_s": 100,
        "passes_per_round": 10,
    },
}

QUESTIONS: dict[str, Any] = {
    "task": "extractive_qa",
    "source": {"kind": "file", "train": "train.json", "evaluation": "dev.json"},
}
COLLECTED_DATASETS: dict[str, Any] = {
    "pairs": DATASETS["pairs"],
    "hard_pairs": {
        **DATASETS["pairs"],
        "title": "Hard pairs",
        "cost": {"n_train": 500, "n_evaluation": 90, "tokens": 35},
    },
    "unknown": {**DATASETS["unknown"], "label_order": ["a", "b", "c"]},
    "asked": {**QUESTIONS, "title": "Asked", "cost": {"n_train": 300, "n_evaluation": 60, "tokens": 160}},
    "halved": {
        **QUESTIONS,
        "title": "Halved",
        "questions": {"halves_by_document": True},
        "cost": {"n_train": 100, "n_evaluation": 40, "tokens": 200},
    },
    "only_evaluated": {**QUESTIONS, "title": "Only evaluated", "cost": {"n_evaluation": 50, "tokens": 100}},
}
COLLECTIONS: dict[str, Any] = {
    "sentences": {
        "standard": ["pairs"],
        "adversarial": ["hard_pairs", "unknown"],
        "training_sets": {
            "both": {"datasets": ["pairs", "hard_pairs"]},
            "equal": {"datasets": ["pairs", "hard_pairs"], "max_train": 701},
            "not_known": {"datasets": ["pairs", "unknown"], "max_train": 100},
        },
        "evaluated_models": list(MODELS),
    },
    "quiz": {
        "standard": ["halved"],
        "adversarial": ["only_evaluated"],
        "training_sets": {"asked": {"datasets": ["asked"]}, "halved": {"datasets": ["asked", "halved"]}},
        "evaluated_models": ["plain"],
        "fine_tune": {"batch_size": 10},
    },
}


@pytest.fixture
def collected_config(tmp_path: Path) -> dict[str, Any]:
    """Configuration of a run that filters nothing and has two collections."""
    (tmp_path / "datasets.yaml").write_text(yaml.safe_dump(COLLECTED_DATASETS), encoding="utf-8")
    (tmp_path / "models.yaml").write_text(yaml.safe_dump(MODELS), encoding="utf-8")
    kept = {key: RUN[key] for key in ("dataset_tables", "model_tables", "fine_tune", "cost")}
    (tmp_path / "predictions.yaml").write_text("{}", encoding="utf-8")
    run = {
        "run": "small",
        "prediction_tables": ["predictions.yaml"],
        **kept,
        "collections": COLLECTIONS,
        "question_answering": {"window_stride": 20},
    }
    return settings.load_run_config(run, tmp_path)


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    """The run's configuration, with every default filled in."""
    (tmp_path / "datasets.yaml").write_text(yaml.safe_dump(DATASETS), encoding="utf-8")
    (tmp_path / "models.yaml").write_text(yaml.safe_dump(MODELS), encoding="utf-8")
    return settings.load_run_config(RUN, tmp_path)
