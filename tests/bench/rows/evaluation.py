"""Accuracies with bootstrap intervals and random subsets, against the same in vectorised NumPy."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from measure import interleaved
from numpy.typing import NDArray

N_EXAMPLES, N_MODELS, N_DRAWS = 10_000, 18, 1_000
CONFIDENCE = 0.95
LABELS = ("no", "yes")


def bootstrap(*, small: bool) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    correct = rng.random((N_EXAMPLES, N_MODELS)) < np.linspace(0.6, 0.9, N_MODELS)
    masks = rng.random((N_EXAMPLES, N_MODELS)) < np.linspace(0.2, 0.8, N_MODELS)
    from advsets.stats.bootstrap import masked_sums, percentile_interval, ratio

    def ours() -> None:
        values = np.column_stack([correct, np.ones(N_EXAMPLES, dtype=bool)])
        sums = masked_sums(values, masks, N_DRAWS, 0)
        percentile_interval(ratio(sums[..., :-1], sums[..., -1:]), CONFIDENCE)

    found = interleaved({"ours": ours, "peer": lambda: _numpy(correct, masks)}, 1 if small else 3)
    return {
        "ratio": found["peer"] / found["ours"],
        "ours_s": found["ours"],
        "peer_s": found["peer"],
        "whole_step_s": _whole_step(correct, masks),
    }


def _numpy(correct: NDArray[np.bool_], masks: NDArray[np.bool_]) -> None:
    """For each draw: take its rows, then all accuracies on all subsets in one product."""
    rng = np.random.default_rng(0)
    right, inside = correct.astype(np.float32), masks.astype(np.float32)
    draws = np.empty((N_DRAWS, N_MODELS, N_MODELS))
    for draw in range(N_DRAWS):
        rows = rng.integers(N_EXAMPLES, size=N_EXAMPLES)
        chosen = inside[rows]
        draws[draw] = chosen.T @ right[rows] / chosen.sum(0)[:, None]
    np.quantile(draws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)


ALTERNATIVES = {
    "accuracy_by_predictability",
    "aggregate_ranks",
    "aggregate_stability",
    "agreement_matched",
    "agreement_matched_models",
}
"""Tables of a step of their own."""


def _whole_step(correct: NDArray[np.bool_], masks: NDArray[np.bool_]) -> float:
    """Seconds of the evaluate step of the workflow: every table, from files to files."""
    from advsets.evaluation.inputs import EvaluationInputs
    from advsets.evaluation.settings import EvaluateSettings
    from advsets.evaluation.study import Study
    from advsets.evaluation.write import MAKERS, write_tables

    settings = EvaluateSettings(
        n_bootstrap=N_DRAWS,
        confidence=CONFIDENCE,
        n_random_subsets=100,
        n_agreement_bins=5,
        n_predictability_bins=10,
        seed=0,
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        examples, predictions, retained = _write_inputs(folder, correct, masks)
        inputs = EvaluationInputs(
            dataset="bench",
            examples=examples,
            predictions=predictions,
            retained=retained,
            families={},
            label_order=LABELS,
        )
        began = time.perf_counter()
        write_tables(
            Study(inputs, settings), {table: folder / f"{table}.parquet" for table in MAKERS.keys() - ALTERNATIVES}
        )
        return time.perf_counter() - began


def _write_inputs(
    folder: Path, correct: NDArray[np.bool_], masks: NDArray[np.bool_]
) -> tuple[Path, dict[tuple[str, int], Path], dict[tuple[str, int], Path]]:
    """Tables of two classes and ten votes per example."""
    import polars as pl

    from advsets.io import empty_frame, write_table

    rng = np.random.default_rng(1)
    gold = rng.integers(2, size=N_EXAMPLES)
    votes = rng.integers(5, 11, size=N_EXAMPLES)
    counts = [[int(v), 10 - int(v)] if g == 0 else [10 - int(v), int(v)] for g, v in zip(gold, votes, strict=True)]
    ids = [f"row-{i:05d}" for i in range(N_EXAMPLES)]
    known: dict[str, Any] = {
        "example_id": ids,
        "split": ["validation"] * N_EXAMPLES,
        "label": [LABELS[g] for g in gold],
        "text_a": ["text"] * N_EXAMPLES,
        "label_count": counts,
        "agreement": votes / 10,
        "label_entropy_bits": np.ones(N_EXAMPLES),
    }
    schema = empty_frame("examples").schema
    frame = pl.DataFrame(
        {name: pl.Series(name, known.get(name, [None] * N_EXAMPLES), dtype) for name, dtype in schema.items()}
    )
    write_table(frame, folder / "examples.parquet", "examples")
    predictions, retained = {}, {}
    for j in range(N_MODELS):
        said = np.where(correct[:, j], gold, 1 - gold)
        path = folder / f"predictions{j}.parquet"
        columns = {"example_id": ids, "predicted_label": [LABELS[k] for k in said]}
        shares = [[0.9, 0.1] if k == 0 else [0.1, 0.9] for k in said]
        write_table(pl.DataFrame({**columns, "probabilities": shares}), path, "predictions")
        predictions[f"model{j:02d}", 0] = path
        path = folder / f"retained{j}.parquet"
        kept = masks[:, j]
        removed = pl.Series("removed_in_round", [None if k else 1 for k in kept], pl.Int64)
        frame = pl.DataFrame({"example_id": ids, "retained": kept, "removed_in_round": removed})
        frame = frame.with_columns(predictability=pl.lit(0.5), margin=pl.lit(0.0))
        write_table(frame, path, "retained")
        retained[f"model{j:02d}", 0] = path
    return folder / "examples.parquet", predictions, retained
