"""Fine-tune a model on a data set's training rows.

Conventions
-----------
AdamW without decay on biases and normalisation; the learning rate rises over `warmup_share`
of the steps and falls to zero. Steps count from 1. After each epoch the slice of train that is
not trained on is scored; the epoch of highest accuracy (then lowest loss, then the earlier) is
kept. The evaluation set plays no part. A run that was killed goes on from `work` and, on one
CPU thread count, ends with the same weights bit for bit.
"""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from advsets.errors import UserError, allowed
from advsets.io import polars_dtype, read_json, write_table
from advsets.models import backbone, ranks, resume
from advsets.models.batching import Batch, Tokenised, report_truncated, tokenise
from advsets.models.checkpoint import save_checkpoint
from advsets.models.classifier import Classifier, check_length, new_classifier
from advsets.models.heads import group_scores
from advsets.models.passes import recompute_layers
from advsets.models.precision import device_errors, half_dtype, prepare_device
from advsets.models.sampling import cap_examples, selection_mask
from advsets.models.settings import FineTuneSettings
from advsets.models.training import Objective, Progress, Run, restore, train_steps
from advsets.registry import DatasetRow, ModelRow
from advsets.seeding import seed_for
from advsets.tables import TABLES

if TYPE_CHECKING:
    import polars as pl


def fine_tune(
    model: ModelRow,
    model_json: Path,
    dataset: DatasetRow,
    train: pl.DataFrame,
    settings: FineTuneSettings,
    *,
    seed: int,
    out: Path,
    log: Path,
    work: Path,
    device: str,
) -> None:
    """Fine-tune `model` on `train` and write a checkpoint folder and a training log.

    Parameters
    ----------
    model_json : Path
        What `fetch_model` wrote.
    train : DataFrame
        Table `examples`; all rows are used, in the order of `example_id`.
    settings : FineTuneSettings
        With the model's own values already put over those of the run (`config.fine_tune_settings`).
    out, log : Path
        Checkpoint folder, and table `training_log`.
    work : Path
        Scratch folder that survives a kill; removed at the end.
    device : str
        `cpu`, `cuda`, `cuda:1` or `auto`; each rank has its own (`advsets.models.parallel`).

    Raises
    ------
    UserError
        For weights that are missing, labels that are not in `label_order`, fewer than two
        classes, or values that are not finite.
    """
    source = read_json(model_json)
    train = cap_examples(train, settings.max_train_examples, seed).sort("example_id")
    names = class_names(dataset, train)
    prepare_device(device)
    tokenizer = backbone.load_tokenizer(Path(source["path"]))
    data = tokenise(train, tokenizer, dataset.task, settings.max_length)
    report_truncated(data, settings.max_length, f"fine_tune {model.name}")
    torch.manual_seed(seed_for(seed, "start"))
    classifier = new_classifier(
        model, Path(source["path"]), backbone.load_config(Path(source["path"])), dataset.task, names
    )
    check_length(classifier, settings.max_length, f"models: {model.name}")
    chosen = selection_mask(data.example_ids, train["group_id"].to_list(), settings.selection_share, seed)
    run = new_run(
        model,
        classifier,
        data,
        OneOutput(_targets(dataset, data, train["label"].to_list(), names)),
        (np.flatnonzero(~chosen), np.flatnonzero(chosen)),
        settings,
        seed=seed,
        work=work,
        device=device,
        key=run_key(model, source, dataset, settings, seed, data.tokens.tobytes(), train["label"].to_list()),
    )
    about = {
        "task": dataset.task,
        "dataset": dataset.name,
        "label_order": list(dataset.label_order),
        "class_names": list(names),
        "pooling": model.pooling,
    }
    carry_out(run, tokenizer, {**about, **describe_run(model, source, run)}, out, log)


@dataclass(frozen=True)
class OneOutput:
    """One right output per example, a class or a candidate: `targets` has shape (n_examples,)."""

    targets: NDArray[np.int64]

    def loss(self, scores: Tensor, batch: Batch) -> Tensor:
        return functional.cross_entropy(*self._by_example(scores, batch))

    def outcome(self, scores: Tensor, batch: Batch) -> tuple[int, float]:
        scores, targets = self._by_example(scores, batch)
        loss = functional.cross_entropy(scores, targets, reduction="sum").item()
        return int((scores.argmax(1) == targets).sum()), loss

    def _by_example(self, scores: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Scores (n_examples, n_classes or most candidates) and the right ones (n_examples,)."""
        targets = torch.from_numpy(self.targets[batch.rows]).to(scores.device)
        return scores if scores.shape[1] > 1 else group_scores(scores, batch.counts), targets


def new_run(
    model: ModelRow,
    classifier: Classifier,
    data: Tokenised,
    objective: Objective,
    rows: tuple[NDArray[np.int64], NDArray[np.int64]],
    settings: FineTuneSettings,
    *,
    seed: int,
    work: Path,
    device: str,
    key: str,
) -> Run:
    """Run on `device`; `rows` are the positions of the examples to learn, and of those that choose the checkpoint."""
    torch_device = prepare_device(device)
    if settings.gradient_checkpointing:
        recompute_layers(classifier, torch_device)
    dtype = half_dtype(model.precision, torch_device, training=True)
    return Run(
        classifier=classifier.to(torch_device),
        optimiser=_optimiser(classifier, settings),
        scaler=torch.amp.GradScaler(torch_device.type, enabled=dtype is torch.float16),
        data=data,
        objective=objective,
        train_rows=rows[0],
        selection_rows=rows[1],
        settings=settings,
        device=torch_device,
        dtype=dtype,
        seed=seed,
        work=work,
        key=key,
    )


def carry_out(run: Run, tokenizer: Any, description: dict[str, Any], out: Path, log: Path) -> None:
    """Take the steps that are left, and write the checkpoint of the best epoch and the training log."""
    progress = restore(run)
    with device_errors("fine_tune.tokens_per_pass, set fine_tune.gradient_checkpointing: true"):
        train_steps(run, progress)
    if not ranks.is_first():
        return
    best = run.work / "best.pt"
    if best.is_file():
        resume.restore_weights(run.classifier, torch.load(best, map_location=run.device, weights_only=True))
    _write_log(progress, log)
    save_checkpoint(run.classifier, tokenizer, description, out)
    shutil.rmtree(run.work, ignore_errors=True)


def run_key(model: ModelRow, source: dict[str, Any], dataset: object, settings: FineTuneSettings, *rest: object) -> str:
    """Hash of what decides the run, so that it can go on with other memory settings or on other devices."""
    deciding = replace(settings, tokens_per_pass=None, gradient_checkpointing=False)
    return resume.fingerprint(replace(model, gpus=1), source, dataset, deciding, *rest)


def describe_run(model: ModelRow, source: dict[str, Any], run: Run) -> dict[str, Any]:
    """What `advsets.json` tells whatever the task, see `advsets.models.checkpoint`."""
    return {
        "precision": model.precision,
        "base_model": model.name,
        "source": {key: source[key] for key in ("kind", "source", "revision", "sha256")},
        "seed": run.seed,
        "max_length": run.settings.max_length,
        "settings": asdict(run.settings),
        "n_train": len(run.train_rows),
        "n_selection": len(run.selection_rows),
    }


def class_names(dataset: DatasetRow, train: pl.DataFrame) -> tuple[str, ...]:
    """Label names in the order of the outputs; empty for multiple choice.

    Raises
    ------
    UserError
        If the table is empty, holds unknown labels, or one class only.
    """
    found = sorted(set(train["label"].to_list()))
    if not found:
        raise UserError(f"{dataset.name}: no training rows; fine-tuning needs some; check the data set's source")
    if dataset.is_multiple_choice:
        return ()
    unknown = [label for label in found if label not in dataset.label_order]
    if unknown:
        raise UserError(
            f"{dataset.name}: label {unknown[0]!r} in the training rows; allowed: {allowed(dataset.label_order)};"
            " add it to label_order or drop the rows"
        )
    if len(found) < 2:
        raise UserError(
            f"{dataset.name}: all {train.height} training rows have label {found[0]!r};"
            " fine-tuning needs at least two classes; add rows of another class"
        )
    return dataset.label_order


def _targets(dataset: DatasetRow, data: Tokenised, labels: list[str], names: tuple[str, ...]) -> NDArray[np.int64]:
    """Output of the right class or candidate per example, shape (n_examples,)."""
    if not dataset.is_multiple_choice:
        return np.array([names.index(label) for label in labels], np.int64)
    for example_id, label, count in zip(data.example_ids, labels, data.counts, strict=True):
        if not label.isdigit() or int(label) >= count:
            raise UserError(
                f"{dataset.name}: {example_id!r} has label {label!r} and {count} candidates;"
                f" allowed: 0 to {count - 1}; mend the label"
            )
    return np.array([int(label) for label in labels], np.int64)


def _optimiser(classifier: Classifier, settings: FineTuneSettings) -> torch.optim.Optimizer:
    trained = [p for p in classifier.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trained if p.dim() > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in trained if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=settings.learning_rate, fused=True)


def _write_log(progress: Progress, path: Path) -> None:
    import polars as pl

    schema = {column.name: polars_dtype(column) for column in TABLES["training_log"].columns}
    write_table(pl.DataFrame(progress.log, schema=schema), path, "training_log")
