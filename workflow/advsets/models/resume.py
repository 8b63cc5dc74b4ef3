"""State of an unfinished fine-tuning run: written whole, read back only if it fits the run.

Conventions
-----------
`state.pt` holds the step, trained weights, optimiser and bookkeeping; `best.pt` the trained
weights of the best epoch so far. Dropout is seeded per step, so no generator state is kept.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from advsets.io import atomic_path
from advsets.models.classifier import Classifier


def fingerprint(*parts: object) -> str:
    """Hash of everything that decides a run's result, speed settings aside."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else repr(part).encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def trained_weights(classifier: Classifier) -> dict[str, Tensor]:
    """Weights that training changes, and buffers."""
    frozen = {name for name, p in classifier.named_parameters() if not p.requires_grad}
    return {name: tensor for name, tensor in classifier.state_dict().items() if name not in frozen}


def restore_weights(classifier: Classifier, weights: dict[str, Tensor]) -> None:
    """Put back what `trained_weights` gave."""
    missing, unexpected = classifier.load_state_dict(weights, strict=False)
    if unexpected or set(missing) & set(trained_weights(classifier)):
        raise ValueError(f"saved state does not fit the model: {sorted(unexpected)[:3]}")


def save_weights(weights: dict[str, Tensor], path: Path) -> None:
    """Write weights atomically."""
    with atomic_path(path) as temporary, temporary.open("wb") as handle:  # given a path, torch hides disk errors
        torch.save(weights, handle)


def save_state(state: dict[str, Any], work: Path) -> None:
    """Write the state of a run atomically."""
    with atomic_path(work / "state.pt") as temporary, temporary.open("wb") as handle:
        torch.save(state, handle)


def read_state(work: Path, key: str) -> dict[str, Any] | None:
    """State of this very run, or None; what another run left in `work` is deleted."""
    path = work / "state.pt"
    state = torch.load(path, map_location="cpu", weights_only=True) if path.is_file() else None
    if state is not None and state["fingerprint"] == key:
        return state
    shutil.rmtree(work, ignore_errors=True)
    return None
