"""What the evaluation reads: examples, predictions and retained masks, joined by `example_id`.

Conventions
-----------
Rows are sorted by `example_id`. A run is a pair (model, fine-tuning seed); runs are sorted.
Files are read when first needed: a table that needs no predictions reads none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from advsets.errors import UserError, allowed
from advsets.io import read_table

Run = tuple[str, int]

SELF = "self"
SAME_FAMILY = "same_family"
OTHER = "other"


@dataclass(frozen=True)
class EvaluationInputs:
    """Paths of one data set's tables.

    Parameters
    ----------
    dataset : str
        Row name in the data sets table.
    examples : Path
        Table `examples` of the evaluation set.
    predictions : mapping of (evaluated model, seed) to Path
        Tables `predictions`.
    retained : mapping of (adversary, seed) to Path
        Tables `retained` of the evaluation set.
    families : mapping of model to family
        A model that is not named is a family of its own.
    label_order : tuple of str
        Order of stored probabilities and of the leading part of `label_count`; empty for
        multiple choice.
    round_scores : mapping of (adversary, seed) to Path
        Tables `round_scores`, for those tables that look into rounds.
    more_annotators : Path or None
        Table `more_annotators` of the evaluation set.
    """

    dataset: str
    examples: Path
    predictions: Mapping[Run, Path]
    retained: Mapping[Run, Path]
    families: Mapping[str, str]
    label_order: tuple[str, ...]
    round_scores: Mapping[Run, Path] = field(default_factory=dict)
    more_annotators: Path | None = None

    @cached_property
    def model_runs(self) -> list[Run]:
        return sorted(self.predictions)

    @cached_property
    def models(self) -> list[str]:
        return sorted({model for model, _ in self.predictions})

    @cached_property
    def adversary_runs(self) -> list[Run]:
        return sorted(self.retained)

    @cached_property
    def adversaries(self) -> list[str]:
        return sorted({adversary for adversary, _ in self.retained})

    @cached_property
    def frame(self) -> pl.DataFrame:
        """Examples without their texts, sorted by `example_id`."""
        columns = ["example_id", "label", "label_count", "agreement", "label_entropy_bits", "low_agreement"]
        frame = read_table(self.examples, "examples", columns).sort("example_id")
        if frame.is_empty():
            raise UserError(f"{self.examples}: no examples; allowed: at least one row; prepare the data set again")
        return frame

    @property
    def n_examples(self) -> int:
        return self.frame.height

    @cached_property
    def labels(self) -> NDArray[np.str_]:
        """Gold labels, shape (n_examples,)."""
        return self.frame["label"].to_numpy().astype(str)

    @cached_property
    def gold_labels(self) -> list[str]:
        """Gold classes that occur, in label order, then by name."""
        found = set(self.labels.tolist())
        return [x for x in self.label_order if x in found] + sorted(found - set(self.label_order))

    @cached_property
    def correct(self) -> NDArray[np.bool_]:
        """Right predictions, shape (n_examples, n_model_runs)."""
        gold = self.frame["label"]
        right = [(self.predicted(run) == gold).to_numpy() for run in self.model_runs]
        return np.stack(right, axis=1) if right else np.zeros((self.n_examples, 0), dtype=bool)

    @cached_property
    def masks(self) -> NDArray[np.bool_]:
        """Retained examples, shape (n_examples, n_adversary_runs)."""
        kept = [self._read(self.retained[run], "retained", "retained").to_numpy() for run in self.adversary_runs]
        return np.stack(kept, axis=1) if kept else np.zeros((self.n_examples, 0), dtype=bool)

    @cached_property
    def more_label_count(self) -> pl.Series:
        """Counts per label of more annotators, null for the examples that they did not see."""
        if self.more_annotators is None:
            return pl.Series("label_count", [None] * self.n_examples, pl.List(pl.Int64))
        more = read_table(self.more_annotators, "more_annotators")
        ids = self.frame.select("example_id")
        return ids.join(more, on="example_id", how="left", maintain_order="left")["label_count"]

    def predicted(self, run: Run) -> pl.Series:
        """Predicted labels of one run."""
        return self._read(self.predictions[run], "predictions", "predicted_label")

    def probabilities(self, run: Run) -> pl.Series:
        """Probabilities of one run, a list per example."""
        return self._read(self.predictions[run], "predictions", "probabilities")

    def relation(self, adversary: str, model: str) -> str:
        """`self` (same base model), `same_family` or `other`."""
        if adversary == model:
            return SELF
        return SAME_FAMILY if self.family(adversary) == self.family(model) else OTHER

    def family(self, model: str) -> str:
        """Family of a model; its own name where none is given."""
        return self.families.get(model, model)

    def _read(self, path: Path, table: str, column: str) -> pl.Series:
        frame = read_table(path, table, ["example_id", column])
        return aligned(frame, self.frame["example_id"], path, self.examples)[column]


def aligned(frame: pl.DataFrame, ids: pl.Series, path: Path, examples: Path) -> pl.DataFrame:
    """`frame` sorted by `example_id`, with exactly the sorted `ids`.

    Raises
    ------
    UserError
        If ids are missing, unknown or repeated; the message names them.
    """
    frame = frame.sort("example_id")
    found = frame["example_id"]
    if found.equals(ids):
        return frame
    for problem, wrong in (
        ("repeated", found.filter(found.is_duplicated()).unique()),
        ("missing", ids.filter(~ids.is_in(found.implode()))),
        ("unknown", found.filter(~found.is_in(ids.implode()))),
    ):
        if len(wrong):
            raise UserError(
                f"{path}: {len(wrong)} {problem} example_id: {allowed(wrong.sort().to_list(), 5)};"
                f" allowed: exactly one row for each of the {len(ids)} examples of {examples}; write the table again"
            )
    raise UserError(f"{path}: example_id holds nulls; allowed: the ids of {examples}; write the table again")
