"""Rows of the data sets and models tables, as typed records.

The JSON schemas (`workflow/schemas/datasets.schema.yaml`, `models.schema.yaml`) hold every
default; a row reaches these records only after `advsets.config` has validated and filled it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SEQUENCE_CLASSIFICATION = "sequence_classification"
MULTIPLE_CHOICE = "multiple_choice"
EXTRACTIVE_QA = "extractive_qa"
TASKS = (SEQUENCE_CLASSIFICATION, MULTIPLE_CHOICE, EXTRACTIVE_QA)


@dataclass(frozen=True)
class DatasetRow:
    """One data set.

    `source` is a mapping with `kind` (`pypi`, `hub`, `url` or `file`) and the keys of that
    kind; `columns` maps our column to the source's column or list of columns; `labels` maps a
    raw value (as a string) to a label name of `label_order` or `other_labels` (labels that
    annotators gave but that are no class of the task); `evaluation_columns` are the keys of
    `columns` that differ for the evaluation rows; `filter` and `fine_tune` are settings over
    those of the run; `more_annotators` (None without any) has `title`, `columns`, `labels` and
    `source` of a file with labels that others gave to evaluation rows; `model_in_the_loop`
    (None without one) has `title`, `models`, `family` and `collection_round` of the model that
    people wrote the evaluation rows against; `questions` says how questions are read.
    """

    name: str
    title: str
    task: str
    label_order: tuple[str, ...]
    other_labels: tuple[str, ...]
    labels: dict[str, str]
    source: dict[str, Any]
    columns: dict[str, Any]
    evaluation_columns: dict[str, Any]
    evaluation_split: str
    evaluation_fraction: float | None
    licence: str
    citation: str
    homepage: str
    language: str
    more_annotators: dict[str, Any] | None
    model_in_the_loop: dict[str, Any] | None
    questions: dict[str, Any]
    filter: dict[str, Any]
    fine_tune: dict[str, Any]

    @classmethod
    def from_config(cls, name: str, row: dict[str, Any]) -> DatasetRow:
        """Record of a validated row; `cost` is for planning alone and left out."""
        order, other = tuple(row["label_order"]), tuple(row["other_labels"])
        labels = {str(k): v for k, v in (row["labels"] or {label: label for label in order + other}).items()}
        given = {key: value for key, value in row.items() if key != "cost"}
        return cls(name=name, **{**given, "label_order": order, "other_labels": other, "labels": labels})

    @property
    def is_multiple_choice(self) -> bool:
        return self.task == MULTIPLE_CHOICE

    @property
    def is_extractive_qa(self) -> bool:
        return self.task == EXTRACTIVE_QA


@dataclass(frozen=True)
class ModelRow:
    """One model: what is loaded, and what identifies it in comparisons.

    The row name is the base model: an adversary and an evaluated model of the same row are
    `self` to each other, those of the same `family` are `same_family`. `source` is a mapping
    with `kind` (`hub`, `path` or `package`) and the keys of that kind. `n_layers` cuts the
    encoder (null: as it is; 0: word embeddings only), `random_init` starts from random
    weights of the same configuration, `config_overrides` changes that configuration (random
    start only), `freeze` is `none`, `embeddings` or `backbone`, `gpus`
    are the devices of one job.
    """

    name: str
    title: str
    source: dict[str, Any]
    family: str
    objective: str
    parameters_m: float | None
    n_layers: int | None
    random_init: bool
    config_overrides: dict[str, Any]
    freeze: str
    pooling: str
    precision: str
    gpus: int
    fine_tune: dict[str, Any]
    licence: str

    @classmethod
    def from_config(cls, name: str, row: dict[str, Any]) -> ModelRow:
        """Record of a validated row; `cost` is for planning alone and left out."""
        return cls(name=name, **{key: value for key, value in row.items() if key != "cost"})


@dataclass(frozen=True)
class ImportedModel:
    """A model whose predictions others made.

    `files` maps a data set to the file, or address, of predictions on its evaluation rows, and `sha256`
    to its checksum; `columns` has
    `id`, `predicted_label`, `probabilities` and `answer`; `probability_order` are raw labels,
    which `labels` maps to names. `saw` are data sets whose training part it was trained on,
    `in_the_loop_of` those whose evaluation rows people wrote against this very instance.
    """

    name: str
    title: str
    family: str | None
    base_model: str | None
    trained_on: str
    saw: tuple[str, ...]
    in_the_loop_of: tuple[str, ...]
    licence: str
    files: dict[str, str]
    sha256: dict[str, str]
    key: str
    columns: dict[str, Any]
    probability_order: tuple[str, ...]
    labels: dict[str, str] | None

    @classmethod
    def from_config(cls, name: str, row: dict[str, Any]) -> ImportedModel:
        """Record of a validated row."""
        lists = {key: tuple(row[key]) for key in ("saw", "in_the_loop_of", "probability_order")}
        return cls(name=name, **{**row, **lists})
