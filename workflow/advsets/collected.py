"""Collections of a run: sets that people wrote against a model, what models are trained on, and who is scored.

A collection is checked against the rows that it names before anything runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advsets.errors import UserError, allowed
from advsets.registry import EXTRACTIVE_QA, MULTIPLE_CHOICE

IMPORTED = "imported"
"""What stands as training set of models whose predictions others made."""

Rows = Mapping[str, Mapping[str, Any]]


def datasets_of(collection: Mapping[str, Any]) -> list[str]:
    """Data sets that a collection names, each once: evaluation sets first."""
    trained = [
        name for part in collection["training_sets"].values() for name in (*part["datasets"], *part["passages_of"])
    ]
    return list(dict.fromkeys([*evaluation_sets(collection), *trained]))


def evaluation_sets(collection: Mapping[str, Any]) -> list[str]:
    """Standard sets, then adversarial ones."""
    return [*collection["standard"], *collection["adversarial"]]


def training_shares(max_train: int, n_datasets: int) -> list[int]:
    """Rows of a training set by data set, as even as can be, the first ones with one more."""
    return [max_train // n_datasets + (place < max_train % n_datasets) for place in range(n_datasets)]


def check_collection(name: str, collection: Mapping[str, Any], datasets: Rows, models: Rows, imported: Rows) -> None:
    """Refuse a collection whose parts do not fit together.

    Raises
    ------
    UserError
        In one line, if a set stands on both sides, tasks or labels differ, a training set has the
        reserved name, nothing is scored, a name is a trained and an imported model, or
        `passages_of` is given where there are no passages.
    """
    where = f"collections: {name}"
    both = sorted(set(collection["standard"]) & set(collection["adversarial"]))
    if both:
        raise UserError(f"{where}: {both[0]!r} stands in standard and adversarial; allowed: one of the two; remove one")
    _check_models(where, collection, models, imported)
    _check_predicted(where, collection, imported)
    _check_tasks(where, collection, datasets)
    for part, row in collection["training_sets"].items():
        if part == IMPORTED:
            raise UserError(f"{where}.training_sets: the name {part!r} is taken for imported models; choose another")
        if row["passages_of"] and task_of(collection, datasets) != EXTRACTIVE_QA:
            raise UserError(
                f"{where}.training_sets: {part}.passages_of: only questions have passages; allowed: an empty list here;"
                " remove it"
            )


def task_of(collection: Mapping[str, Any], datasets: Rows) -> str:
    """Task of all data sets of a checked collection."""
    return str(datasets[datasets_of(collection)[0]]["task"])


def _check_models(where: str, collection: Mapping[str, Any], models: Rows, imported: Rows) -> None:
    trained, others = collection["evaluated_models"], collection["imported_models"]
    if not trained and not others:
        raise UserError(f"{where}: no models to score; allowed: evaluated_models, imported_models or both; name some")
    if bool(trained) != bool(collection["training_sets"]):
        has, lacks = ("evaluated_models", "training_sets") if trained else ("training_sets", "evaluated_models")
        raise UserError(f"{where}: {has} without {lacks}; allowed: both or neither; add {lacks}")
    taken = sorted(set(others) & set(models))
    if taken:
        raise UserError(
            f"{where}: {taken[0]!r} is a row of the models tables and of the predictions tables; rename one of them"
        )
    for model in others:
        if not set(imported[model]["files"]) & set(evaluation_sets(collection)):
            raise UserError(
                f"{where}: imported model {model!r} has files for {allowed(imported[model]['files'], 5)}, none of which"
                f" is an evaluation set here; allowed: {allowed(evaluation_sets(collection), 20)}; correct one of them"
            )


def _check_predicted(where: str, collection: Mapping[str, Any], imported: Rows) -> None:
    """Refuse an evaluation set that no model of the collection has predictions on."""
    if collection["evaluated_models"]:
        return
    predicted = {dataset for model in collection["imported_models"] for dataset in imported[model]["files"]}
    lacking = [name for name in evaluation_sets(collection) if name not in predicted]
    if lacking:
        raise UserError(
            f"{where}: no model has predictions on {lacking[0]!r}; allowed: sets that an imported model has a file for,"
            " or any with evaluated_models; add its file, remove the set, or train models"
        )


def _check_tasks(where: str, collection: Mapping[str, Any], datasets: Rows) -> None:
    names = datasets_of(collection)
    first = datasets[names[0]]
    if first["task"] == MULTIPLE_CHOICE:
        raise UserError(
            f"{where}: {names[0]!r} has task multiple_choice; allowed: sequence_classification, extractive_qa;"
            " name other sets"
        )
    for name in names[1:]:
        row = datasets[name]
        if row["task"] != first["task"]:
            raise UserError(
                f"{where}: {names[0]!r} has task {first['task']}, {name!r} {row['task']}; allowed: one task in a"
                " collection; make two collections of it"
            )
        if set(row["label_order"]) != set(first["label_order"]):
            raise UserError(
                f"{where}: {name!r} has labels {allowed(row['label_order'])}, {names[0]!r}"
                f" {allowed(first['label_order'])}; allowed: the same names; map them in `labels` of one of the rows"
            )


def fine_tune_settings(config: Mapping[str, Any], collection: str, training_set: str, model: str) -> dict[str, Any]:
    """Fine-tuning settings of a model on a training set.

    The run's, over them what all data sets of the training set agree on, then the collection's,
    then the model row's.
    """
    part, known = config["collections"][collection], config["collected_rows"]
    rows = [known["datasets"][name]["fine_tune"] for name in part["training_sets"][training_set]["datasets"]]
    shared = {key: value for key, value in rows[0].items() if all(row.get(key) == value for row in rows)}
    return {
        **config["fine_tune"],
        **shared,
        **part["fine_tune"],
        **known["models"][model]["fine_tune"],
    }
