"""What the tables of a collection share: how right every model run is on every example, and draws of examples.

Conventions
-----------
A run is (training set, model, seed); the seed of imported predictions is None. Examples of a set
are sorted by `example_id`. A score of an example is 0 to 1: right or wrong, exact match, or F1.
Every set is resampled by itself, as its examples are others than those of any other set; all
models and measures of a set share the draws. A missing prediction scores 0 and is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from advsets.answers import exact_match, f1, is_beaten
from advsets.errors import UserError
from advsets.evaluation.inputs import OTHER, SAME_FAMILY, SELF
from advsets.evaluation.settings import EvaluateSettings
from advsets.registry import DatasetRow
from advsets.seeding import seed_for
from advsets.stats.bootstrap import fixed_point, masked_sums

STANDARD = "standard"
IN_THE_LOOP = "in_the_loop"
CLASSIFICATION_MEASURES = ("accuracy",)
QUESTION_MEASURES = ("exact_match", "f1")


@dataclass(frozen=True, order=True)
class CollectedRun:
    """One model as it was trained once; `seed` is -1 for imported predictions, so that runs sort."""

    training_set: str
    model: str
    seed: int = -1

    @property
    def model_seed(self) -> int | None:
        return None if self.seed < 0 else self.seed


@dataclass(frozen=True)
class Identity:
    """What a model is: its base model's row, its family, what it saw, and where it was in the loop."""

    base_model: str | None
    family: str | None
    saw: frozenset[str] = frozenset()
    in_the_loop_of: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ScoredSet:
    """Scores of all runs on one evaluation set.

    `scores` has the shape (n_measures, n_examples, n_runs) and is 0 where a prediction is missing;
    `missing` says where, and `beaten` where a person's example would have been kept: a wrong label,
    or an answer with an F1 of at most 0.4; both (n_examples, n_runs).
    """

    row: DatasetRow
    construction: str
    measures: tuple[str, ...]
    runs: tuple[CollectedRun, ...]
    example_ids: tuple[str, ...]
    scores: NDArray[np.float64]
    missing: NDArray[np.bool_]
    beaten: NDArray[np.bool_]

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def n_examples(self) -> int:
        return len(self.example_ids)

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """Mean score, shape (n_measures, n_runs)."""
        return self.scores.mean(axis=1)

    def draws(self, settings: EvaluateSettings) -> NDArray[np.float64]:
        """Mean score per bootstrap draw of the examples, shape (n_draws, n_measures, n_runs)."""
        n_measures, n_examples, n_runs = self.scores.shape
        whole, scale = fixed_point(np.moveaxis(self.scores, 1, 0).reshape(n_examples, n_measures * n_runs))
        everything = np.ones((n_examples, 1), bool)
        sums = masked_sums(whole, everything, settings.n_bootstrap, seed_for(settings.seed, "collected", self.name))
        return sums.reshape(-1, n_measures, n_runs) / (scale * n_examples)

    def relation(self, identity: Identity) -> str:
        """What a model is to the model that people wrote this set against."""
        loop = self.row.model_in_the_loop
        if self.name in identity.in_the_loop_of:
            return IN_THE_LOOP
        if loop is None:
            return STANDARD
        if identity.base_model is not None and identity.base_model in loop["models"]:
            return SELF
        return SAME_FAMILY if identity.family is not None and identity.family == loop["family"] else OTHER


@dataclass(frozen=True)
class CollectedStudy:
    """All sets of a collection, standard ones first, with the models' identities."""

    collection: str
    sets: tuple[ScoredSet, ...]
    identities: Mapping[str, Identity]
    trained_on: Mapping[str, tuple[str, ...]]
    n_train: Mapping[str, int]
    settings: EvaluateSettings

    def saw(self, run: CollectedRun, dataset: str) -> bool:
        """Whether a run was trained on the training part of a set, as far as known."""
        return dataset in self.trained_on.get(run.training_set, ()) or dataset in self.identities[run.model].saw

    @property
    def measures(self) -> tuple[str, ...]:
        return self.sets[0].measures

    @cached_property
    def draws(self) -> dict[str, NDArray[np.float64]]:
        """Draws of every set by name."""
        return {one.name: one.draws(self.settings) for one in self.sets}

    @property
    def training_sets(self) -> list[str]:
        return sorted({run.training_set for one in self.sets for run in one.runs})

    def models_on(self, one: ScoredSet, training_set: str) -> dict[str, list[int]]:
        """Places of each model's runs in a set, models sorted, of one training set."""
        found: dict[str, list[int]] = {}
        for place, run in sorted(enumerate(one.runs), key=lambda pair: pair[1]):
            if run.training_set == training_set:
                found.setdefault(run.model, []).append(place)
        return found


def scored_set(
    row: DatasetRow, construction: str, examples: pl.DataFrame, predictions: Mapping[CollectedRun, pl.DataFrame]
) -> ScoredSet:
    """Scores of predictions on an evaluation set.

    Parameters
    ----------
    examples : DataFrame
        Table `examples`, or `questions` without those of split `validation`.
    predictions : mapping of run to DataFrame
        Tables `predictions` or `answer_predictions`; runs without a file on this set are left out.

    Raises
    ------
    UserError
        If the set is empty.
    """
    if examples.is_empty():
        raise UserError(
            f"data set {row.name}: no examples to score; allowed: one or more; give it evaluation rows in its source"
        )
    examples = examples.sort("example_id")
    runs = tuple(sorted(predictions))
    measures = QUESTION_MEASURES if row.is_extractive_qa else CLASSIFICATION_MEASURES
    scores = np.zeros((len(measures), examples.height, len(runs)))
    missing, beaten = np.zeros((2, examples.height, len(runs)), bool)
    score = _answer_scores if row.is_extractive_qa else _label_scores
    for place, run in enumerate(runs):
        scores[:, :, place], missing[:, place], beaten[:, place] = score(examples, predictions[run])
    return ScoredSet(row, construction, measures, runs, tuple(examples["example_id"]), scores, missing, beaten)


Scored = tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]


def _label_scores(examples: pl.DataFrame, predictions: pl.DataFrame) -> Scored:
    joined = _joined(examples, "label", predictions, "predicted_label")
    right = (joined["predicted_label"] == joined["label"]).fill_null(False).to_numpy()
    return right.astype(np.float64)[None, :], joined["predicted_label"].is_null().to_numpy(), ~right


def _answer_scores(examples: pl.DataFrame, predictions: pl.DataFrame) -> Scored:
    joined = _joined(examples, "answers", predictions, "predicted_answer")
    values = np.zeros((2, joined.height))
    beaten = np.ones(joined.height, bool)
    for i, (given, answers) in enumerate(zip(joined["predicted_answer"], joined["answers"], strict=True)):
        if given is not None:
            gold = list(answers)
            values[:, i] = exact_match(given, gold), f1(given, gold)
            beaten[i] = is_beaten(given, gold)
    return values, joined["predicted_answer"].is_null().to_numpy(), beaten


def _joined(examples: pl.DataFrame, gold: str, predictions: pl.DataFrame, given: str) -> pl.DataFrame:
    wanted = predictions.select("example_id", given)
    return examples.select("example_id", gold).join(wanted, on="example_id", how="left", maintain_order="left")
