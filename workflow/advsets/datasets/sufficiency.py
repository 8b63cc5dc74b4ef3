"""Whether what is left of a data set can be filtered, and which setting took the rest.

Conventions
-----------
A fact is one step that took rows, in words, with the key that decides it and how many rows it
left; facts close the messages, so that a sample that is too small is not blamed on the data.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import polars as pl

from advsets.errors import UserError
from advsets.registry import DatasetRow


def check_split(row: DatasetRow, frame: pl.DataFrame, split: str, facts: Sequence[str]) -> None:
    """Raise `UserError` when no rows are left in `train` or `evaluation`, or rows of one class only."""
    if frame.is_empty():
        raise UserError(
            f"data set {row.name}: no {split} rows are left{_because(facts)}; give more rows, or change what took them"
        )
    labels = frame["label"].unique().to_list()
    if len(labels) < 2 and not row.is_multiple_choice:
        raise UserError(
            f"data set {row.name}: all {frame.height} {split} rows have the label {labels[0]!r}{_because(facts)};"
            " allowed: two classes or more; check `columns.label`, or take more rows"
        )


def check_parts(
    row: DatasetRow, train: pl.DataFrame, evaluation: pl.DataFrame, adversary_fraction: float, facts: Sequence[str]
) -> None:
    """Raise `UserError` when a part of train is empty or of one class, or lacks a label of the evaluation set.

    Parameters
    ----------
    train : DataFrame
        With `train_role`. The evaluation set is filtered by classifiers of the rows of role
        `filtering`, so these must have its labels (multiple choice: labels are positions).
    """
    parts = {role: train.filter(pl.col("train_role") == role) for role in ("adversary", "filtering")}
    share = f"`split.adversary_fraction` {adversary_fraction}"
    for role, part in parts.items():
        if part.is_empty():
            raise UserError(
                f"data set {row.name}: {share} leaves no {role} rows of {train.height} training rows"
                f" ({_n_units(train)} groups){_because(facts)}; take more rows or groups, or change the fraction"
            )
    if row.is_multiple_choice:
        return
    drawn = [f"{share} gives {parts['adversary'].height} of {train.height} training rows to the adversary", *facts]
    for role, part in parts.items():
        if part["label"].n_unique() < 2:
            raise UserError(
                f"data set {row.name}: all {part.height} {role} rows of train have the label {part['label'][0]!r}"
                f"{_because(drawn)}; allowed: two classes or more; take more rows or groups, or change the fraction or"
                " `seed`"
            )
    _check_labels(row, train, parts["filtering"], evaluation, drawn)


def _check_labels(
    row: DatasetRow, train: pl.DataFrame, filtering: pl.DataFrame, evaluation: pl.DataFrame, facts: Sequence[str]
) -> None:
    """Refuse a label of the evaluation set that classifiers never see; warn of one that is not evaluated."""
    known, asked = set(filtering["label"]), set(evaluation["label"])
    for label in sorted(known - asked):
        print(
            f"advsets: warning: data set {row.name}: no evaluation row has label {label!r}; nothing is measured for it",
            file=sys.stderr,
        )
    for label in sorted(asked - known):
        n_train, n_evaluation = (int((frame["label"] == label).sum()) for frame in (train, evaluation))
        raise UserError(
            f"data set {row.name}: label {label!r} has {n_evaluation} evaluation rows and no filtered train rows (train"
            f" {n_train} in all){_because(facts)}; allowed: labels that filtered train rows have; move it from"
            " `label_order` to `other_labels` (its rows are dropped), map it to another in `labels`, take more rows, or"
            " use another split or `seed`"
        )


def _because(facts: Sequence[str]) -> str:
    return f": {', '.join(facts)}" if facts else ""


def _n_units(frame: pl.DataFrame) -> int:
    return frame.select(pl.col("group_id").fill_null(pl.col("example_id"))).to_series().n_unique()
