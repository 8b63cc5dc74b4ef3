"""What one job computes, reads and leaves on disk, by the sizes of its data set and model.

Conventions
-----------
Training takes 6 operations per parameter and token (2 forward, 4 backward; 2 more with gradient checkpointing),
inference 2 (Kaplan et al. 2020, "Scaling Laws for Neural Language Models", section 2.1). One pass of a filtering
round takes 4 per training row of a classifier, feature and output, its predictions 2 per row left.
Bytes: a parameter 4, a feature by its dtype; a row of the filter's tables, of predictions, and each of the best
answers to a question as measured, zstd included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from advsets import collected
from advsets.aflite.settings import Counts, FilterSettings
from advsets.config import all_models, filter_settings, fine_tune_settings
from advsets.cost.job import Job
from advsets.cost.sizes import DatasetSize, ModelSize
from advsets.cost.texts import TextsSize
from advsets.errors import UserError
from advsets.variants import filter_variants

FEATURE_BYTES = {"float16": 2, "float32": 4}
STATE_ROW_BYTES, SCORE_ROW_BYTES, RETAINED_ROW_BYTES, PREDICTION_ROW_BYTES, ANSWER_BYTES = 14, 13, 12, 22, 19
RESUME_BYTES = 16
"""Of a fine-tuning while it runs, per parameter: weights, two moments, the best weights so far."""


@dataclass(frozen=True)
class Work:
    """Operations (in 16 or 32 bits), optimiser steps, bytes read, bytes left on disk, bytes there only meanwhile."""

    flop: float = 0.0
    half: bool = False
    steps: int = 0
    read: float = 0.0
    disk: float = 0.0
    scratch: float = 0.0


def work_of(
    job: Job, config: dict[str, Any], data: DatasetSize | TextsSize | None, model: ModelSize | None
) -> Work | None:
    """Work of a job; None for a rule whose work is not known in advance, or without its sizes."""
    if job.rule == "fetch_model":
        return None if model is None else Work(disk=4 * model.parameters)
    if data is None or model is None:
        return None
    if isinstance(data, TextsSize):
        return _COLLECTED_WORK[job.rule](job, config, data, model) if job.rule in _COLLECTED_WORK else None
    return _WORK[job.rule](job, config, data, model) if job.rule in _WORK else None


def model_of(job: Job) -> str | None:
    """Name of the model of a job, whatever its role."""
    return next((job.wildcards[key] for key in ("model", "adversary", "evaluated_model") if key in job.wildcards), None)


def _fine_tune(job: Job, config: dict[str, Any], data: DatasetSize, model: ModelSize) -> Work:
    settings = fine_tune_settings(config, job.wildcards["dataset"], job.wildcards["model"])
    rows = data.trains(job.wildcards["role"], config["split"]["evaluated_model_train"])
    rows = min(rows, settings["max_train_examples"] or rows)
    selection = settings["selection_share"] * rows
    tokens = data.tokens_of(settings["max_length"])
    return _training(rows - selection, selection, tokens, settings, job, config, model)


def _fine_tune_collected(job: Job, config: dict[str, Any], data: TextsSize, model: ModelSize) -> Work:
    settings = _collected_settings(job, config)
    rows = min(data.rows, settings["max_train_examples"] or data.rows)
    selection = data.selection or settings["selection_share"] * rows
    learned = rows if data.selection else rows - selection
    return _training(learned, selection, data.tokens_of(settings["max_length"]), settings, job, config, model)


def _training(
    learned: float,
    selection: float,
    tokens: float,
    settings: dict[str, Any],
    job: Job,
    config: dict[str, Any],
    model: ModelSize,
) -> Work:
    """Work of a fine-tuning with so many rows, of so many tokens each."""
    training = 8 if settings["gradient_checkpointing"] else 6
    passed = settings["epochs"] * tokens * model.parameters_per_token
    return Work(
        flop=passed * (training * learned + 2 * selection),
        half=all_models(config)[job.wildcards["model"]]["precision"] != "float32",
        steps=settings["epochs"] * math.ceil(learned / settings["batch_size"]),
        disk=4 * model.parameters,
        scratch=RESUME_BYTES * model.parameters,
    )


def _collected_settings(job: Job, config: dict[str, Any]) -> dict[str, Any]:
    return collected.fine_tune_settings(
        config, *(job.wildcards[key] for key in ("collection", "training_set", "model"))
    )


def _embed(job: Job, config: dict[str, Any], data: DatasetSize, model: ModelSize) -> Work:
    rows = data.filtering if job.wildcards["split"] == "train" else data.evaluation
    vectors = rows * data.n_candidates * model.hidden_size * FEATURE_BYTES[config["embed"]["dtype"]]
    return _inference(rows, _tokens(job, config, data), job, config, model, disk=vectors)


def _predict(job: Job, config: dict[str, Any], data: DatasetSize, model: ModelSize) -> Work:
    disk = PREDICTION_ROW_BYTES * data.evaluation
    return _inference(data.evaluation, _tokens(job, config, data), job, config, model, disk=disk)


def _predict_collected(job: Job, config: dict[str, Any], data: TextsSize, model: ModelSize) -> Work:
    answers = data.window_stride is not None
    row_bytes = ANSWER_BYTES * config["question_answering"]["n_best"] if answers else PREDICTION_ROW_BYTES
    tokens = data.tokens_of(_collected_settings(job, config)["max_length"])
    return _inference(data.rows, tokens, job, config, model, disk=row_bytes * data.rows)


def _tokens(job: Job, config: dict[str, Any], data: DatasetSize) -> int:
    return data.tokens_of(fine_tune_settings(config, job.wildcards["dataset"], str(model_of(job)))["max_length"])


def _inference(rows: int, tokens: float, job: Job, config: dict[str, Any], model: ModelSize, *, disk: float) -> Work:
    return Work(
        flop=2 * rows * tokens * model.parameters_per_token,
        half=all_models(config)[str(model_of(job))]["precision"] in ("bf16", "fp16"),
        read=4 * model.parameters,
        disk=disk,
    )


def _filter_start(job: Job, config: dict[str, Any], data: DatasetSize, model: ModelSize) -> Work:
    return Work(read=_features(config, data, model), disk=STATE_ROW_BYTES * (data.filtering + data.evaluation))


def _filter_rounds(job: Job, config: dict[str, Any], data: DatasetSize, model: ModelSize) -> Work | None:
    settings, counts = _filter(job, config, data)
    if counts is None:
        return None
    first = (int(job.wildcards["node"]) - 1) * settings["rounds_per_job"]
    rows = rows_by_round(counts, settings["max_rounds"])[first : first + settings["rounds_per_job"]]
    state = STATE_ROW_BYTES * (data.filtering + data.evaluation)
    return _rounds(rows, counts, settings, config, data, model, disk=state + SCORE_ROW_BYTES * sum(rows))


def _filter_variant(job: Job, config: dict[str, Any], data: DatasetSize, model: ModelSize) -> Work | None:
    settings, counts = _filter(job, config, data)
    if counts is None:
        return None
    rows = rows_by_round(counts, settings["max_rounds"])
    return _rounds(rows, counts, settings, config, data, model, disk=RETAINED_ROW_BYTES * data.evaluation)


def _rounds(
    rows: list[int],
    counts: Counts,
    settings: dict[str, Any],
    config: dict[str, Any],
    data: DatasetSize,
    model: ModelSize,
    *,
    disk: float,
) -> Work:
    """Work of rounds that start with so many rows each."""
    numbers = data.n_candidates * model.hidden_size * data.n_outputs * settings["n_partitions"]
    fits = 4 * config["cost"]["passes_per_round"] * counts.train_size * len(rows)
    read = _features(config, data, model) if rows else 0.0
    return Work(flop=numbers * (fits + 2 * sum(rows)), read=read, disk=disk)


def _filter_collect(job: Job, config: dict[str, Any], data: DatasetSize, model: ModelSize) -> Work | None:
    settings, counts = _filter(job, config, data)
    if counts is None:
        return None
    scores = SCORE_ROW_BYTES * sum(rows_by_round(counts, settings["max_rounds"]))
    return Work(read=scores, disk=scores + RETAINED_ROW_BYTES * (data.filtering + data.evaluation))


def rows_by_round(counts: Counts, max_rounds: int) -> list[int]:
    """Rows (training and evaluation) at the start of each round of a chain that stops as late as it can."""
    n_rounds = min(max_rounds, math.ceil((counts.n_train - counts.min_retained) / counts.slice_size))
    return [counts.n_train - i * counts.slice_size + counts.n_evaluation for i in range(n_rounds)]


def _filter(job: Job, config: dict[str, Any], data: DatasetSize) -> tuple[dict[str, Any], Counts | None]:
    """Settings of a chain and its counts; None for counts that the filter will refuse."""
    settings, changed = filter_settings(config, job.wildcards["dataset"]), job.wildcards.get("setting")
    if changed in settings:
        variant = (job.wildcards["adversary"], changed, job.wildcards["value"])
        settings = {**settings, changed: filter_variants(config)[variant]}
    try:
        known = {key: value for key, value in settings.items() if key != "rounds_per_job"}
        return settings, FilterSettings(**known).resolve(data.filtering, data.evaluation)
    except UserError:
        return settings, None


def _features(config: dict[str, Any], data: DatasetSize, model: ModelSize) -> float:
    rows = (data.filtering + data.evaluation) * data.n_candidates
    return rows * model.hidden_size * FEATURE_BYTES[config["embed"]["dtype"]]


_WORK: dict[str, Callable[[Job, dict[str, Any], DatasetSize, ModelSize], Work | None]] = {
    "fine_tune": _fine_tune,
    "embed": _embed,
    "predict": _predict,
    "filter_start": _filter_start,
    "filter_rounds": _filter_rounds,
    "filter_collect": _filter_collect,
    "filter_variant": _filter_variant,
}
_COLLECTED_WORK: dict[str, Callable[[Job, dict[str, Any], TextsSize, ModelSize], Work]] = {
    "fine_tune_collected": _fine_tune_collected,
    "predict_collected": _predict_collected,
}
SIZED = frozenset([*_WORK, *_COLLECTED_WORK])
"""Rules whose time hangs on sizes: without these it is not known."""
