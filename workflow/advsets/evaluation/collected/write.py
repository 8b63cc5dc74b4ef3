"""Read what a collection's evaluation needs, and write its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from advsets.collected import IMPORTED
from advsets.datasets.roles import holds_questions, questions_to_score
from advsets.evaluation.collected.penalty import collected_penalty, collected_penalty_cells
from advsets.evaluation.collected.scores import collected_correlation, collected_ranks, collected_scores
from advsets.evaluation.collected.sets import collected_sets
from advsets.evaluation.collected.study import CollectedRun, CollectedStudy, Identity, scored_set
from advsets.evaluation.collected.training import cross_training, model_in_the_loop
from advsets.evaluation.settings import EvaluateSettings
from advsets.io import read_table, write_table
from advsets.registry import DatasetRow, ImportedModel

_MAKERS: dict[str, Callable[[CollectedStudy], pl.DataFrame]] = {
    "collected_scores": collected_scores,
    "collected_ranks": collected_ranks,
    "collected_correlation": collected_correlation,
    "collected_penalty": collected_penalty,
    "collected_penalty_cells": collected_penalty_cells,
    "cross_training": cross_training,
    "model_in_the_loop": model_in_the_loop,
}


def write_collection(
    collection: str,
    params: Mapping[str, Any],
    out: Mapping[str, Path],
    *,
    examples: Sequence[Path],
    more_annotators: Sequence[Path],
    training: Sequence[Path],
    trained: Sequence[Path],
    imported: Sequence[Path],
) -> None:
    """Make the named tables of one collection.

    Parameters
    ----------
    params : mapping
        `sets` (rows by data set, standard sets first), `adversarial`, `more_annotators` (data
        sets), `training_sets` (data sets by name), `trained_runs` (training set, model, seed,
        data set), `imported_runs` (model, data set), `families` by trained model, `imported`
        (rows by model) and `settings` as the workflow has them.
    out : mapping of table name to Path
    examples, more_annotators, training, trained, imported : sequences of Path
        Tables in the order of `sets`, `more_annotators`, `training_sets`, `trained_runs` and
        `imported_runs`.
    """
    rows = {name: DatasetRow.from_config(name, row) for name, row in params["sets"].items()}
    frames = {name: _scored_examples(path, row) for (name, row), path in zip(rows.items(), examples, strict=True)}
    predictions: dict[str, dict[CollectedRun, Path]] = {name: {} for name in rows}
    for (training_set, model, seed, dataset), path in zip(params["trained_runs"], trained, strict=True):
        predictions[dataset][CollectedRun(training_set, model, int(seed))] = path
    for (model, dataset), path in zip(params["imported_runs"], imported, strict=True):
        predictions[dataset][CollectedRun(IMPORTED, model)] = path
    sets = [
        scored_set(
            row,
            "adversarial" if name in params["adversarial"] else "standard",
            frames[name],
            {run: _predictions(path, row) for run, path in predictions[name].items()},
        )
        for name, row in rows.items()
    ]
    study = CollectedStudy(
        collection,
        tuple(sets),
        _identities(params),
        {name: tuple(parts) for name, parts in params["training_sets"].items()},
        {name: _n_train(path) for name, path in zip(params["training_sets"], training, strict=True)},
        EvaluateSettings(**params["settings"]),
    )
    more = zip(params["more_annotators"], more_annotators, strict=True)
    counts = {name: read_table(path, "more_annotators") for name, path in more}
    for name, path in out.items():
        table = collected_sets(study, frames, counts) if name == "collected_sets" else _MAKERS[name](study)
        write_table(table, path, name)


def _scored_examples(path: Path, row: DatasetRow) -> pl.DataFrame:
    """Examples that are scored."""
    return questions_to_score(path) if row.is_extractive_qa else read_table(path, "examples")


def _predictions(path: Path, row: DatasetRow) -> pl.DataFrame:
    return read_table(path, "answer_predictions" if row.is_extractive_qa else "predictions")


def _identities(params: Mapping[str, Any]) -> dict[str, Identity]:
    """Trained models are their own base; of imported ones their rows tell."""
    known = {model: Identity(model, family) for model, family in params["families"].items()}
    for name, row in params["imported"].items():
        model = ImportedModel.from_config(name, row)
        known[name] = Identity(model.base_model, model.family, frozenset(model.saw), frozenset(model.in_the_loop_of))
    return known


def _n_train(path: Path) -> int:
    """Training examples, less the questions that choose the checkpoint."""
    if holds_questions(path):
        return int((read_table(path, "questions", ["split"])["split"] == "train").sum())
    return read_table(path, "examples", ["example_id"]).height
