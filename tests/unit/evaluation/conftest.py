"""Builds small studies on disk from arrays, so that every test goes through the real reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from advsets.evaluation.inputs import EvaluationInputs, Run
from advsets.evaluation.settings import EvaluateSettings
from advsets.evaluation.study import Study
from advsets.io import empty_frame, write_table

LABELS = ("no", "yes")


def settings(**changes: object) -> EvaluateSettings:
    return EvaluateSettings(
        **{
            "n_bootstrap": 200,
            "confidence": 0.95,
            "n_random_subsets": 50,
            "n_agreement_bins": 5,
            "seed": 0,
            **changes,
        }
    )


def write_examples(path: Path, ids: Sequence[str], labels: Sequence[str], **columns: object) -> None:
    frame = pl.DataFrame({"example_id": ids, "label": labels, **columns})
    schema = empty_frame("examples").schema
    text = {"split": pl.lit("validation"), "text_a": pl.lit("text")}
    frame = frame.with_columns(
        (text.get(name, pl.lit(None)).cast(dtype) if name not in frame.columns else pl.col(name).cast(dtype)).alias(
            name
        )
        for name, dtype in schema.items()
    )
    write_table(frame, path, "examples")


def write_predictions(path: Path, ids: Sequence[str], predicted: Sequence[str], probabilities: object = None) -> None:
    probabilities = probabilities or [[0.5, 0.5]] * len(ids)
    frame = pl.DataFrame({"example_id": ids, "predicted_label": predicted, "probabilities": probabilities})
    write_table(frame, path, "predictions")


def write_retained(path: Path, ids: Sequence[str], kept: Sequence[bool]) -> None:
    frame = pl.DataFrame({"example_id": ids, "retained": list(kept)}).with_columns(
        removed_in_round=pl.when("retained").then(None).otherwise(1).cast(pl.Int64),
        predictability=pl.lit(0.5),
        margin=pl.lit(0.0),
    )
    write_table(frame, path, "retained")


@pytest.fixture
def make_study(tmp_path: Path) -> Callable[..., Study]:
    """Study from right-answer vectors per model run and retained vectors per adversary run."""

    def make(
        correct: Mapping[Run, Sequence[int]],
        retained: Mapping[Run, Sequence[int]],
        labels: Sequence[str] | None = None,
        probabilities: Mapping[Run, object] | None = None,
        families: Mapping[str, str] | None = None,
        changes: Mapping[str, object] | None = None,
        **columns: object,
    ) -> Study:
        n = len(next(iter([*correct.values(), *retained.values(), labels])))
        ids = [f"e{i:05d}" for i in range(n)]
        gold = list(labels or np.resize(LABELS, n))
        write_examples(tmp_path / "examples.parquet", ids, gold, **columns)
        predictions, masks = {}, {}
        for run, right in correct.items():
            wrong = {"no": "yes", "yes": "no"}
            predictions[run] = tmp_path / f"predictions-{run[0]}-{run[1]}.parquet"
            predicted = [g if r else wrong[g] for g, r in zip(gold, right, strict=True)]
            write_predictions(predictions[run], ids, predicted, (probabilities or {}).get(run))
        for run, kept in retained.items():
            masks[run] = tmp_path / f"retained-{run[0]}-{run[1]}.parquet"
            write_retained(masks[run], ids, [bool(k) for k in kept])
        inputs = EvaluationInputs(
            dataset="toy",
            examples=tmp_path / "examples.parquet",
            predictions=predictions,
            retained=masks,
            families=families or {},
            label_order=LABELS,
        )
        return Study(inputs, settings(**(changes or {})))

    return make
