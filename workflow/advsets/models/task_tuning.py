"""Fine-tune on a training set's file, whichever its task is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from advsets.io import read_table
from advsets.models.finetune import fine_tune
from advsets.models.qa.finetune import fine_tune_questions
from advsets.models.qa.windows import WindowSettings
from advsets.models.settings import FineTuneSettings
from advsets.registry import DatasetRow, ModelRow


def fine_tune_on(
    model: ModelRow,
    weights: Path,
    dataset: DatasetRow,
    train: Path,
    settings: FineTuneSettings,
    windows: Mapping[str, Any] | None,
    **run: Any,
) -> None:
    """Fine-tune on a training set's file; `run` goes on to `fine_tune` or `fine_tune_questions`.

    Parameters
    ----------
    windows : mapping or None
        Fields of `WindowSettings`; None for classification.
    """
    if windows is None:
        fine_tune(model, weights, dataset, read_table(train, "examples"), settings, **run)
        return
    questions = read_table(train, "questions")
    fine_tune_questions(model, weights, dataset.name, questions, settings, WindowSettings(**windows), **run)
