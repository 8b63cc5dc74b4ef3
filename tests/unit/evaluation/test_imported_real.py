"""Published predictions on real data: all find their example, and give the published scores."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from advsets.answers import exact_match, f1
from advsets.config import load_datasets, read_rows
from advsets.datasets import prepare, sources, squad
from advsets.datasets.file import local_path
from advsets.evaluation.collected.imported import import_predictions
from advsets.io import read_table
from advsets.registry import ImportedModel

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif("ADVSETS_DATA_DIR" not in os.environ, reason="ADVSETS_DATA_DIR is not set"),
]
ROOT = Path(__file__).parents[3]
DATASETS = load_datasets([ROOT / "tests" / "config" / "real_datasets.yaml"])
ROWS = read_rows([ROOT / "tests" / "config" / "real_predictions.yaml"], "predictions")
MODELS = {name: ImportedModel.from_config(name, row) for name, row in ROWS.items()}
ANLI = sorted(name for name in MODELS if name.startswith("anli_"))
N_EXAMPLES = {"anli_r1_real": 1_000, "anli_r2_real": 1_000, "anli_r3_real": 1_198}
IN_THE_LOOP = {
    ("anli_bert_r1", "anli_r1_real"): 0.0,
    ("anli_roberta_from_r2", "anli_r2_real"): 18.5,
    ("anli_roberta_from_r3", "anli_r3_real"): 20.3,
}
"""Accuracy in percent, to one decimal."""
SETTINGS: dict[str, Any] = {"seed": 0, "adversary_fraction": 0.5, "drop_train_duplicates": True, "max_train": None}


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], pl.DataFrame]:
    """Prepared evaluation table of a data set."""
    made: dict[str, pl.DataFrame] = {}

    def read(name: str) -> pl.DataFrame:
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            sources.fetch(DATASETS[name], folder / "raw")
            prepare.prepare(DATASETS[name], folder / "raw", folder / "out", **SETTINGS, max_evaluation=None)
            made[name] = read_table(folder / "out" / "evaluation.parquet", "examples")
        return made[name]

    return read


@pytest.mark.parametrize("dataset", N_EXAMPLES)
def test_all_eight_models_join_every_round(
    examples: Callable[[str], pl.DataFrame], tmp_path: Path, dataset: str
) -> None:
    gold, order = examples(dataset), DATASETS[dataset].label_order
    assert gold.height == N_EXAMPLES[dataset] and len(ANLI) == 8
    for name in ANLI:
        path = local_path(MODELS[name].files[dataset], name)
        report = import_predictions(MODELS[name], path, gold, order, tmp_path / "p.parquet")
        assert (report.n_rows, report.n_joined) == (gold.height, gold.height)
        assert (report.n_missing, report.n_unknown, report.n_not_most_probable) == (0, 0, 0)
        table = read_table(tmp_path / "p.parquet", "predictions").join(gold, on="example_id")
        right = int((table["predicted_label"] == table["label"]).sum()) / gold.height
        if (name, dataset) in IN_THE_LOOP:
            assert round(100 * right, 1) == IN_THE_LOOP[name, dataset]
        else:
            assert right > 0.2


@pytest.mark.parametrize(
    ("model", "n_joined", "scores"),
    [("squad_bert_ensemble", 1_797, (78.52, 88.37)), ("squad_logistic_regression", 1_795, (37.06, 47.87))],
)
def test_answers_to_squad_give_the_published_scores(
    tmp_path: Path, model: str, n_joined: int, scores: tuple[float, float]
) -> None:
    source = local_path(DATASETS["squad_dev_whole_real"].source["evaluation"], "test")
    questions, _ = squad.read_questions(source, "evaluation")
    path = local_path(MODELS[model].files["squad_dev_whole_real"], model)
    report = import_predictions(MODELS[model], path, questions, (), tmp_path / "a.parquet")
    assert (report.n_joined, report.n_missing, report.n_unknown) == (n_joined, 1_797 - n_joined, 0)
    table = read_table(tmp_path / "a.parquet", "answer_predictions")
    both = questions.join(table, on="example_id", how="left").select("predicted_answer", "answers")
    for score, published in zip((exact_match, f1), scores, strict=True):
        total = sum(score(answer, golds) for answer, golds in both.rows() if answer is not None)
        assert round(100 * total / questions.height, 2) == pytest.approx(published, abs=0.005)
