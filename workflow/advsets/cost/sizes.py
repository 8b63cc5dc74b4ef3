"""How large a run's data sets and models are: as prepared, else as their rows say.

Conventions
-----------
Sizes are None where neither a prepared table nor a row tells them; nothing is guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advsets.config import all_datasets, all_models
from advsets.registry import EXTRACTIVE_QA, MULTIPLE_CHOICE
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
    """Size of a data set that the run filters; None before it is prepared if its row gives no numbers."""
    row, hints = config["dataset_rows"][name], config["cost_hints"]["datasets"][name]
    n_train, n_evaluation = rows_of(config, name, "train", root), rows_of(config, name, "evaluation", root)
    if not n_train or not n_evaluation:
        return None
    adversary = round(n_train * config["split"]["adversary_fraction"])
    choice = row["task"] == MULTIPLE_CHOICE
    return DatasetSize(
        adversary=adversary,
        filtering=n_train - adversary,
        evaluation=n_evaluation,
        n_candidates=(hints["n_candidates"] or 2) if choice else 1,
        n_outputs=1 if choice else len(row["label_order"]) - 1,
        tokens=hints["tokens"] or config["cost"]["tokens"],
    )


def rows_of(config: dict[str, Any], name: str, split: str, root: Path) -> int | None:
    """Rows of the `train` or `evaluation` table of any data set of the run: as prepared, else as its row says."""
    told = config["cost_hints"]["datasets"][name][f"n_{split}"]
    return table_rows(table_of(config, name, split, root)) or at_most(told, config["split"][f"max_{split}"])


def table_of(config: dict[str, Any], name: str, split: str, root: Path) -> Path:
    """Where that table stands once it is prepared."""
    folder = "questions" if all_datasets(config)[name]["task"] == EXTRACTIVE_QA else "data"
    return root / "results" / config["run"] / folder / name / f"{split}.parquet"


def model_size(config: dict[str, Any], name: str) -> ModelSize | None:
    """Size of a model or an ensemble of the run; None if a row does not give the parameters.

    An ensemble has no parameters of its own, and its vectors are those of all its members.
    """
    models = all_models(config)
    if name not in models:
        members = [model_size(config, member) for member in ensembles(config)[name]["members"]]
        known = [member.hidden_size for member in members if member is not None]
        return ModelSize(0.0, 0.0, sum(known)) if len(known) == len(members) else None
    row, hints = models[name], config["cost_hints"]["models"][name]
    if row["parameters_m"] is None:
        return None
    per_token = row["parameters_m"] if hints["parameters_per_token_m"] is None else hints["parameters_per_token_m"]
    hidden = hints["hidden_size"] or config["cost"]["hidden_size"]
    return ModelSize(row["parameters_m"] * 1e6, per_token * 1e6, hidden)


def at_most(number: int | None, limit: int | None) -> int | None:
    """The smaller one; no limit where that is None."""
    return number if number is None or limit is None else min(number, limit)


def table_rows(path: Path) -> int | None:
    """Rows of a Parquet table, None if it is not there (or cannot be read, which the step that needs it will tell)."""
    if not path.is_file():
        return None
    import pyarrow.parquet as pq
    from pyarrow import ArrowException

    try:
        return int(pq.read_metadata(path).num_rows)
    except (ArrowException, OSError):
        return None
