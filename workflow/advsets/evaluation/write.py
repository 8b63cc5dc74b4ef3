"""Compute and write evaluation tables by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from advsets.evaluation.accuracy import accuracy
from advsets.evaluation.aggregation import aggregate_ranks, aggregate_stability
from advsets.evaluation.agreement import accuracy_by_agreement, agreement, agreement_histogram
from advsets.evaluation.agreement_matched import agreement_matched, agreement_matched_models
from advsets.evaluation.balance import label_balance
from advsets.evaluation.findings import findings
from advsets.evaluation.inputs import EvaluationInputs, Run
from advsets.evaluation.penalty import penalty, penalty_cells
from advsets.evaluation.predictability_curve import accuracy_by_predictability
from advsets.evaluation.ranks import rank_stability, ranks
from advsets.evaluation.settings import EvaluateSettings
from advsets.evaluation.soft_scores import soft_scores
from advsets.evaluation.study import Study
from advsets.io import write_table
from advsets.registry import DatasetRow, ModelRow

MAKERS: dict[str, Callable[[Study], pl.DataFrame]] = {
    "accuracy": accuracy,
    "accuracy_by_agreement": accuracy_by_agreement,
    "accuracy_by_predictability": accuracy_by_predictability,
    "aggregate_ranks": aggregate_ranks,
    "aggregate_stability": aggregate_stability,
    "agreement": agreement,
    "agreement_histogram": agreement_histogram,
    "agreement_matched": agreement_matched,
    "agreement_matched_models": agreement_matched_models,
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
    round_scores: Mapping[Run, Path] | None = None,
    more_annotators: Path | None = None,
) -> Study:
    """Study of one data set from the paths of its tables; files are read when a table needs them."""
    inputs = EvaluationInputs(
        dataset=dataset.name,
        examples=examples,
        predictions=predictions,
        retained=retained,
        families={model.name: model.family for model in models},
        label_order=dataset.label_order,
        round_scores=round_scores or {},
        more_annotators=more_annotators,
    )
    return Study(inputs, EvaluateSettings(**settings))


def study_of_run(
    dataset: str,
    params: Mapping[str, Any],
    *,
    examples: str | Path,
    retained: Sequence[str | Path],
    predictions: Sequence[str | Path] = (),
    round_scores: Sequence[str | Path] = (),
    more_annotators: str | Path | None = None,
) -> Study:
    """Study of one data set of a run.

    Parameters
    ----------
    dataset : str
        Name of its row.
    params : mapping
        `dataset_row`, `model_rows`, `model_runs`, `adversary_runs` and `settings` as the workflow has them.
    predictions, retained, round_scores : sequences of paths
        In the order of `model_runs` and of `adversary_runs`; `round_scores` may be empty.
    more_annotators : path or None
        Table `more_annotators` of the evaluation set.
    """
    adversary_runs = [tuple(run) for run in params["adversary_runs"]]
    return study_of(
        DatasetRow.from_config(dataset, params["dataset_row"]),
        [ModelRow.from_config(name, row) for name, row in params["model_rows"].items()],
        Path(examples),
        dict(zip(map(tuple, params["model_runs"]), map(Path, predictions), strict=True)),
        dict(zip(adversary_runs, map(Path, retained), strict=True)),
        params["settings"],
        dict(zip(adversary_runs, map(Path, round_scores), strict=True)) if round_scores else None,
        None if more_annotators is None else Path(more_annotators),
    )


def write_tables(study: Study, paths: Mapping[str, Path]) -> None:
    """Make each named table and write it to its path."""
    for name, path in paths.items():
        write_table(MAKERS[name](study), path, name)
