"""Predict a file of examples or questions, by a checkpoint of its task."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from advsets.datasets.roles import questions_to_score
from advsets.io import read_table
from advsets.models.predict import predict
from advsets.models.qa.predict import predict_questions
from advsets.models.qa.windows import WindowSettings
from advsets.models.settings import EmbedSettings


def predict_by(
    checkpoint: Path,
    examples: Path,
    out: Path,
    settings: EmbedSettings,
    windows: Mapping[str, Any] | None,
    *,
    device: str,
) -> None:
    """Predict a file of examples, or of questions less those that chose the checkpoint."""
    if windows is None:
        predict(checkpoint, read_table(examples, "examples"), out, settings, device=device)
        return
    predict_questions(checkpoint, questions_to_score(examples), out, settings, WindowSettings(**windows), device=device)
