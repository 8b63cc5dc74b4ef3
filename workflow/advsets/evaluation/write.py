"""Compute and write evaluation tables by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from advsets.evaluation.accuracy import accuracy
from advsets.evaluation.agreement import accuracy_by_agreement, agreement, agreement_histogram
from advsets.evaluation.balance import label_balance
from advsets.evaluation.findings import findings
from advsets.evaluation.inputs import EvaluationInputs, Run
from advsets.evaluation.penalty import penalty, penalty_cells
from advsets.evaluation.ranks import rank_stability, ranks
from advsets.evaluation.settings import EvaluateSettings
from advsets.evaluation.soft_scores import soft_scores
from advsets.evaluation.study import Study
from advsets.io import write_table
from advsets.registry import DatasetRow, ModelRow

MAKERS: dict[str, Callable[[Study], pl.DataFrame]] = {
    "accuracy": accuracy,
    "accuracy_by_agreement": accuracy_by_agreement,
    "agreement": agreement,
    "agreement_histogram": agreement_histogram,
    "findings": findings,
    "label_balance": label_balance,
    "penalty": penalty,
    "penalty_cells": penalty_cells,
    "rank_stability": rank_stability,
    "ranks": ranks,
    "soft_scores": soft_scores,
}
"""Function that makes each table."""


def study_of(
    dataset: DatasetRow,
    models: Sequence[ModelRow],
    examples: Path,
    predictions: Mapping[Run, Path],
    retained: Mapping[Run, Path],
    settings: dict[str, Any],
) -> Study:
    """Study of one data set from the paths of its tables; files are read when a table needs them."""
    inputs = EvaluationInputs(
        dataset=dataset.name,
        examples=examples,
        predictions=predictions,
        retained=retained,
        families={model.name: model.family for model in models},
        label_order=dataset.label_order,
    )
    return Study(inputs, EvaluateSettings(**settings))


def write_tables(study: Study, paths: Mapping[str, Path]) -> None:
    """Make each named table and write it to its path."""
    for name, path in paths.items():
        write_table(MAKERS[name](study), path, name)
