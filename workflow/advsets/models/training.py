"""The training loop: steps, the choice of the epoch, log lines and resume.

Conventions
-----------
Steps count from 1 in the log. AdamW's learning rate rises over `warmup_share` of the steps and
falls to zero. Dropout is seeded by step and pass, batches by epoch: a run that stopped goes on as
if it had not. The passes of a batch, and the batches of the selection slice, are dealt out among
the ranks; all of them take each step with the same gradient, and the first alone writes.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from advsets.errors import UserError, allowed
from advsets.models import ranks, resume
from advsets.models.batching import Batch, Tokenised, collate, inference_batches, training_batches
from advsets.models.classifier import Classifier
from advsets.models.dropout import light_dropout
from advsets.models.passes import Pass, cut_passes
from advsets.models.precision import finite
from advsets.models.settings import FineTuneSettings
from advsets.seeding import seed_for

_LINES = 20
"""Lines of the training log, besides those at the end of an epoch."""
_SELECTION_TOKENS = 8192
"""Padded tokens of a batch when the selection slice is scored."""


class Objective(Protocol):
    """What a task makes of the scores of a batch, shape (n_sequences, ...), examples one after another."""

    def loss(self, scores: Tensor, batch: Batch) -> Tensor:
        """Mean loss per example in nats."""

    def outcome(self, scores: Tensor, batch: Batch) -> tuple[int, float]:
        """Number of right examples, and the sum of their losses in nats."""


@dataclass
class Progress:
    """What a run remembers between steps; kept in the resume state."""

    step: int = 0
    loss_sum: float = 0.0
    n_seen: int = 0
    best: tuple[float, float] | None = None
    seconds: float = 0.0
    log: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Run:
    """Everything that stays as it is during fine-tuning."""

    classifier: Classifier
    optimiser: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    data: Tokenised
    objective: Objective
    train_rows: NDArray[np.int64]
    selection_rows: NDArray[np.int64]
    settings: FineTuneSettings
    device: torch.device
    dtype: torch.dtype | None
    seed: int
    work: Path
    key: str

    @property
    def steps_per_epoch(self) -> int:
        return -(-len(self.train_rows) // self.settings.batch_size)

    @property
    def n_steps(self) -> int:
        return self.settings.epochs * self.steps_per_epoch


def restore(run: Run) -> Progress:
    """Progress of an earlier attempt at this very run, with its weights put back; or a fresh start."""
    if not ranks.is_first():
        ranks.wait_for_all()  # the first rank deletes what another run left
    state = resume.read_state(run.work, run.key)
    if ranks.is_first():
        ranks.wait_for_all()
    ranks.wait_for_all()  # nothing is written before all have read
    if state is None:
        return Progress()
    resume.restore_weights(run.classifier, state["weights"])
    run.optimiser.load_state_dict(state["optimiser"])
    run.scaler.load_state_dict(state["scaler"])
    progress = Progress(**state["progress"])
    progress.best = None if progress.best is None else (progress.best[0], progress.best[1])
    ranks.tell(f"going on after step {progress.step} of {run.n_steps}")
    return progress


def _save(run: Run, progress: Progress) -> None:
    if not ranks.is_first():
        return
    state = {
        "fingerprint": run.key,
        "weights": resume.trained_weights(run.classifier),
        "optimiser": run.optimiser.state_dict(),
        "scaler": run.scaler.state_dict(),
        "progress": asdict(progress),
    }
    resume.save_state(state, run.work)


def train_steps(run: Run, progress: Progress) -> None:
    """Take the steps that are left."""
    began = time.perf_counter() - progress.seconds
    every = max(1, round(run.n_steps / _LINES))
    batches, epoch_of_batches = [], -1
    while progress.step < run.n_steps:
        epoch, index = divmod(progress.step, run.steps_per_epoch)
        if epoch != epoch_of_batches:
            batches = training_batches(run.data, run.train_rows, run.settings.batch_size, run.seed, epoch)
            epoch_of_batches = epoch
        rate = learning_rate(progress.step, run.n_steps, run.settings)
        progress.loss_sum += _step(run, batches[index], progress.step, rate) * len(batches[index])
        progress.n_seen += len(batches[index])
        progress.step += 1
        progress.seconds = time.perf_counter() - began
        ends_epoch = index + 1 == run.steps_per_epoch
        if ends_epoch or progress.step % every == 0:
            _log_line(run, progress, rate, _select(run, progress) if ends_epoch else None)
        if progress.step % run.settings.checkpoint_every_steps == 0 or ends_epoch:
            _save(run, progress)


def learning_rate(step: int, n_steps: int, settings: FineTuneSettings) -> float:
    """Learning rate of a step (from 0): linear rise over the warm-up, then linear fall to 0."""
    warmup = math.ceil(settings.warmup_share * n_steps)
    if step < warmup:
        return settings.learning_rate * (step + 1) / warmup
    return settings.learning_rate * (n_steps - step) / max(1, n_steps - warmup)


def _step(run: Run, rows: NDArray[np.int64], step: int, rate: float) -> float:
    """One optimiser step; returns the mean loss of the batch in nats."""
    for group in run.optimiser.param_groups:
        group["lr"] = rate
    run.classifier.train()
    most = -(-run.settings.batch_size // ranks.n_ranks())
    passes = cut_passes(run.data, rows, run.settings.tokens_per_pass, most)
    loss = torch.zeros((), device=run.device)
    for part in passes[ranks.rank() :: ranks.n_ranks()]:
        loss += _learn(run, part, len(part.rows) / len(rows), step)
    trained = [p for group in run.optimiser.param_groups for p in group["params"]]
    ranks.sum_gradients(trained)
    run.scaler.unscale_(run.optimiser)
    norm = torch.nn.utils.clip_grad_norm_(trained, run.settings.gradient_clip)
    if not run.scaler.is_enabled() and not bool(torch.isfinite(norm)):
        ids = [run.data.example_ids[r] for r in rows]
        raise UserError(
            f"fine_tune: the gradient of step {step + 1} is not finite; its batch: {allowed(ids)};"
            " look at these rows, lower learning_rate, or set precision: float32"
        )
    run.scaler.step(run.optimiser)
    run.scaler.update()
    run.optimiser.zero_grad(set_to_none=True)
    return ranks.sum_values(loss.item())[0]


def _learn(run: Run, part: Pass, share: float, step: int) -> Tensor:
    """Add the gradient of one pass, which is `share` of its batch; returns its part of the batch's mean loss."""
    torch.manual_seed(seed_for(run.seed, "dropout", step, *([part.start] if part.start else [])))
    batch = collate(run.data, part.rows, run.device)
    with light_dropout(run.device):
        loss = run.objective.loss(_scores(run, batch), batch) * share
        run.scaler.scale(loss).backward()
    return loss.detach()


def _scores(run: Run, batch: Batch) -> Tensor:
    """Scores of the batch's sequences, checked to be finite."""
    owners = [run.data.example_ids[r] for r in batch.rows for _ in range(int(run.data.counts[r]))]
    return finite(lambda: run.classifier.scores(batch.inputs), owners, run.dtype, run.device)


@torch.no_grad()
def _select(run: Run, progress: Progress) -> float | None:
    """Accuracy on the selection slice after an epoch; keeps the weights if they are the best so far."""
    if len(run.selection_rows) == 0:
        return None
    run.classifier.eval()
    n_right, loss_sum = 0, 0.0
    batches = list(inference_batches(run.data, run.selection_rows, _SELECTION_TOKENS))
    for rows in batches[ranks.rank() :: ranks.n_ranks()]:
        batch = collate(run.data, rows, run.device)
        n_right_here, loss = run.objective.outcome(_scores(run, batch), batch)
        n_right, loss_sum = n_right + n_right_here, loss_sum + loss
    n_right_of_all, loss_sum = ranks.sum_values(n_right, loss_sum)
    outcome = (n_right_of_all / len(run.selection_rows), -loss_sum)
    if progress.best is None or outcome > progress.best:
        progress.best = outcome
        if ranks.is_first():
            resume.save_weights(resume.trained_weights(run.classifier), run.work / "best.pt")
    return outcome[0]


def _log_line(run: Run, progress: Progress, rate: float, accuracy: float | None) -> None:
    loss = progress.loss_sum / progress.n_seen
    n_done = progress.step // run.steps_per_epoch * len(run.train_rows) + (
        progress.step % run.steps_per_epoch * run.settings.batch_size
    )
    progress.log.append(
        {
            "step": progress.step,
            "epoch": n_done / len(run.train_rows),
            "loss": loss,
            "learning_rate": rate,
            "selection_accuracy": accuracy,
            "duration_s": progress.seconds,
        }
    )
    speed = n_done / max(progress.seconds, 1e-9)
    tail = "" if accuracy is None else f", selection accuracy {accuracy:.3f}"
    ranks.tell(f"step {progress.step}/{run.n_steps}: loss {loss:.4f}, {speed:.0f} examples/s{tail}")
    progress.loss_sum, progress.n_seen = 0.0, 0
