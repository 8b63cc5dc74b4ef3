"""What a row of a predictions table must be beyond its schema: its parts fit together, its names are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from advsets.errors import UserError, allowed
from advsets.io import check_file, local_path
from advsets.registry import EXTRACTIVE_QA
from advsets.schemas import did_you_mean

ADDRESSES = ("https://", "http://", "file://")
"""What a file that is fetched starts with."""

Rows = Mapping[str, Mapping[str, Any]]


def check_imported(name: str, row: Mapping[str, Any], datasets: Rows, models: Rows) -> None:
    """Refuse an imported model whose row cannot be meant.

    Parameters
    ----------
    row : mapping
        Validated and filled row.
    datasets, models : mapping
        All rows of the data sets and models tables.

    Raises
    ------
    UserError
        In one line, if it names a data set, model or family of no table, is in the loop of a set
        without a model in the loop, its columns or the order of its probabilities do not fit
        the task, or labels are mapped to none.
    """
    where = f"imported model {name}"
    for key in ("files", "sha256", "saw", "in_the_loop_of"):
        for dataset in row[key]:
            _check_name(f"{where}: {key}", dataset, datasets, "row", "data sets tables")
    for dataset in row["in_the_loop_of"]:
        if datasets[dataset].get("model_in_the_loop") is None:
            raise UserError(
                f"{where}: in_the_loop_of: {dataset!r} has no model_in_the_loop; allowed: sets that people wrote"
                " against a model; remove it, or add model_in_the_loop to the row of the data set"
            )
    base = [] if row["base_model"] is None else [row["base_model"]]
    _check_family(f"{where}: ", "base_model", base, "base_model ", row["family"], models)
    for dataset in row["sha256"]:
        if not row["files"].get(dataset, "").startswith(ADDRESSES):
            raise UserError(
                f"{where}: sha256.{dataset}: `files` has no address for {dataset!r}; allowed: checksums of files that"
                " are fetched; remove it, or correct `files`"
            )
    for dataset, file in row["files"].items():
        _check_file(f"{where}: files.{dataset}", file)
        _check_columns(where, row, dataset, datasets[dataset])


def check_loop(name: str, row: Mapping[str, Any], models: Rows) -> None:
    """Refuse a data set whose model in the loop is of no models table, or of another family than it says.

    Raises
    ------
    UserError
        In one line, naming the data set, if `models` or `family` cannot be meant.
    """
    loop = row["model_in_the_loop"]
    if loop is None:
        return
    _check_family(f"data set {name}: model_in_the_loop.", "models", loop["models"], "", loop["family"], models)


def _check_family(where: str, key: str, names: Iterable[str], called: str, family: str | None, models: Rows) -> None:
    """Refuse models of no models table, and a family that is not theirs, or no model's."""
    families = {model: row["family"] for model, row in models.items()}
    for name in names:
        _check_name(f"{where}{key}", name, models, "row", "models tables")
        if family != families[name]:
            raise UserError(
                f"{where}family: found {family!r}; allowed: {families[name]!r}, that of {called}{name!r}; correct one"
                " of them"
            )
    if family is not None:
        _check_name(f"{where}family", family, sorted(set(families.values())), "family", "models tables")


def _check_name(where: str, name: str, known: Iterable[str], what: str, tables: str) -> None:
    if name not in known:
        near = did_you_mean(name, known) or "; correct it or name the table that has it"
        raise UserError(f"{where}: no {what} {name!r} in the {tables}; allowed: {allowed(known, 20)}{near}")


def _check_file(where: str, file: str) -> None:
    """Refuse what is neither a path nor an address that can be fetched; a file is kept by the name in its address."""
    is_address = file.startswith(ADDRESSES)
    if not file.strip() or ("://" in file and not is_address):
        raise UserError(
            f"{where}: found {file!r}; allowed: a path, or an address that starts with {allowed(ADDRESSES)}; correct it"
        )
    try:
        names_file = not is_address or bool(PurePosixPath(urlsplit(file).path).suffix)
    except ValueError:  # brackets of a host that is none
        names_file = False
    if not names_file:
        raise UserError(
            f"{where}: found {file!r}, which names no file; allowed: an address that ends in a file's name, such as"
            " predictions.csv; correct it"
        )


def _check_columns(where: str, row: Mapping[str, Any], dataset: str, of: Mapping[str, Any]) -> None:
    columns, is_qa = row["columns"], of["task"] == EXTRACTIVE_QA
    for key in ("predicted_label", "probabilities") if is_qa else ("answer",):
        if columns[key]:
            other = "answer" if is_qa else "predicted_label, probabilities"
            raise UserError(
                f"{where}: columns.{key}: found {columns[key]!r}, but {dataset!r} has task {of['task']}; allowed:"
                f" {other}; remove it, or correct `files`"
            )
    given = ("answer",) if is_qa else ("predicted_label", "probabilities")
    if columns["id"] and not any(columns[key] for key in given):
        raise UserError(
            f"{where}: columns: found id {columns['id']!r} and no column of predictions; allowed on {dataset!r}:"
            f" {allowed(given)}; name it"
        )
    if not is_qa:
        _check_order(where, row, dataset, of)
    for raw, label in (row["labels"] or {}).items():
        if not is_qa and label not in of["label_order"]:
            raise UserError(
                f"{where}: labels maps {raw!r} to {label!r}, which {dataset!r} has not; allowed:"
                f" {allowed(of['label_order'])}; correct one of them"
            )


def _check_order(where: str, row: Mapping[str, Any], dataset: str, of: Mapping[str, Any]) -> None:
    """Refuse an order of probabilities that has not as many labels as the data set, or as the columns named."""
    order, columns, n_labels = row["probability_order"], row["columns"]["probabilities"], len(of["label_order"])
    for key, given in (("probability_order", order), ("columns.probabilities", columns)):
        if isinstance(given, list) and given and len(given) != n_labels:
            raise UserError(
                f"{where}: {key}: found {len(given)} entries ({allowed(given)}), but {dataset!r} has {n_labels} labels;"
                f" allowed: one for each of {allowed(of['label_order'])}; correct it"
            )


def local_file(where: str, file: str) -> str:
    """Absolute path of a file of predictions on disk.

    Raises
    ------
    UserError
        If it is not there or no file.
    """
    path = local_path(file, where)
    try:
        check_file(path, "a file of predictions")
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    return str(path)
