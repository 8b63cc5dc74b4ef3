"""Builds small studies on disk from arrays, so that every test goes through the real reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

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
            "n_predictability_bins": 4,
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


def write_difficulty(
    path: Path, ids: Sequence[str], removed_in: Sequence[int | None], predictability: Sequence[float | None]
) -> None:
    """Table `retained` of examples removed in these rounds (None: retained), with these scores."""
    frame = pl.DataFrame(
        {
            "example_id": ids,
            "retained": [r is None for r in removed_in],
            "removed_in_round": pl.Series(removed_in, dtype=pl.Int64),
            "predictability": pl.Series(predictability, dtype=pl.Float64),
            "margin": [0.0] * len(ids),
        }
    )
    write_table(frame, path, "retained")


def write_first_round(path: Path, ids: Sequence[str], predictability: Sequence[float | None]) -> None:
    """Table `round_scores` of a first round over evaluation rows, and of a second that must not be read."""
    rounds = []
    for filtering_round, values in ((1, predictability), (2, [0.5] * len(ids))):
        columns = {"example_id": ids, "predictability": pl.Series(values, dtype=pl.Float64)}
        rounds.append(
            pl.DataFrame(columns).select(
                filtering_round=pl.lit(filtering_round, pl.Int64),
                split=pl.lit("evaluation"),
                example_id="example_id",
                n_held_out=pl.lit(64, pl.Int64),
                n_correct=pl.lit(32, pl.Int64),
                predictability="predictability",
                margin=pl.lit(0.0),
                removed=pl.lit(False),
            )
        )
    write_table(pl.concat(rounds), path, "round_scores")


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
        predictions, masks, first_rounds = {}, {}, {}
        for run, right in correct.items():
            wrong = {"no": "yes", "yes": "no"}
            predictions[run] = tmp_path / f"predictions-{run[0]}-{run[1]}.parquet"
            predicted = [g if r else wrong[g] for g, r in zip(gold, right, strict=True)]
            write_predictions(predictions[run], ids, predicted, (probabilities or {}).get(run))
        for run, kept in retained.items():
            masks[run] = tmp_path / f"retained-{run[0]}-{run[1]}.parquet"
            write_retained(masks[run], ids, [bool(k) for k in kept])
            first_rounds[run] = tmp_path / f"round_scores-{run[0]}-{run[1]}.parquet"
            write_first_round(first_rounds[run], ids, [(i * 7 % 65) / 64 for i in range(n)])
        inputs = EvaluationInputs(
            dataset="toy",
            examples=tmp_path / "examples.parquet",
            predictions=predictions,
            retained=masks,
            families=families or {},
            label_order=LABELS,
            round_scores=first_rounds,
        )
        return Study(inputs, settings(**(changes or {})))

    return make


@pytest.fixture
def kit() -> SimpleNamespace:
    """Writers of tables that the filter makes."""
    return SimpleNamespace(write_difficulty=write_difficulty, write_first_round=write_first_round)
