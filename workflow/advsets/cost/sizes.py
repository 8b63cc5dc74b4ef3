"""How large a run's data sets and models are: as prepared, else as their rows say.

Conventions
-----------
Sizes are None where neither a prepared table nor a row tells them; nothing is guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advsets.registry import MULTIPLE_CHOICE
from advsets.variants import ensembles


@dataclass(frozen=True)
class DatasetSize:
    """Examples by use, inputs per example (candidates of multiple choice), outputs of a classifier."""

    adversary: int
    filtering: int
    evaluation: int
    n_candidates: int
    n_outputs: int
    tokens: int

    def tokens_of(self, max_length: int) -> int:
        """Tokens of one example's inputs, each cut to `max_length`."""
        return self.n_candidates * min(self.tokens, max_length)

    def trains(self, role: str, evaluated_model_train: str) -> int:
        """Training rows of a model in `role`."""
        part = "adversary" if role == "adversary" else evaluated_model_train
        return {
            "adversary": self.adversary,
            "filtering": self.filtering,
            "full": self.adversary + self.filtering,
        }[part]


@dataclass(frozen=True)
class ModelSize:
    """Parameters, those that one token passes (more than all where layers share weights), length of a vector."""

    parameters: float
    parameters_per_token: float
    hidden_size: int


def dataset_size(config: dict[str, Any], name: str, root: Path) -> DatasetSize | None:
    """Size of a data set of the run; None before it is prepared if its row gives no numbers."""
    row, hints, split = config["dataset_rows"][name], config["cost_hints"]["datasets"][name], config["split"]
    folder = root / "results" / config["run"] / "data" / name
    n_train = _table_rows(folder / "train.parquet") or _at_most(hints["n_train"], split["max_train"])
    n_evaluation = _table_rows(folder / "evaluation.parquet") or _at_most(
        hints["n_evaluation"], split["max_evaluation"]
    )
    if not n_train or not n_evaluation:
        return None
    adversary = round(n_train * split["adversary_fraction"])
    choice = row["task"] == MULTIPLE_CHOICE
    return DatasetSize(
        adversary=adversary,
        filtering=n_train - adversary,
        evaluation=n_evaluation,
        n_candidates=(hints["n_candidates"] or 2) if choice else 1,
        n_outputs=1 if choice else len(row["label_order"]) - 1,
        tokens=hints["tokens"] or config["cost"]["tokens"],
    )


def model_size(config: dict[str, Any], name: str) -> ModelSize | None:
    """Size of a model or an ensemble of the run; None if a row does not give the parameters.

    An ensemble has no parameters of its own, and its vectors are those of all its members.
    """
    if name not in config["model_rows"]:
        members = [model_size(config, member) for member in ensembles(config)[name]["members"]]
        known = [member.hidden_size for member in members if member is not None]
        return ModelSize(0.0, 0.0, sum(known)) if len(known) == len(members) else None
    row, hints = config["model_rows"][name], config["cost_hints"]["models"][name]
    if row["parameters_m"] is None:
        return None
    per_token = row["parameters_m"] if hints["parameters_per_token_m"] is None else hints["parameters_per_token_m"]
    hidden = hints["hidden_size"] or config["cost"]["hidden_size"]
    return ModelSize(row["parameters_m"] * 1e6, per_token * 1e6, hidden)


def _at_most(number: int | None, limit: int | None) -> int | None:
    return number if number is None or limit is None else min(number, limit)


def _table_rows(path: Path) -> int | None:
    """Rows of a Parquet table, None if it is not there (or cannot be read, which the step that needs it will tell)."""
    if not path.is_file():
        return None
    import pyarrow.parquet as pq
    from pyarrow import ArrowException

    try:
        return int(pq.read_metadata(path).num_rows)
    except (ArrowException, OSError):
        return None
