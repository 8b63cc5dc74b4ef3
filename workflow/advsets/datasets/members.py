"""The files that a source names for each split: rows, and labels where they stand apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from advsets.datasets.raw import RawTable
from advsets.datasets.tabular import read_label_file
from advsets.errors import UserError

SPLITS = ("train", "evaluation")
KEYS = ("train", "evaluation", "train_labels", "evaluation_labels", "file")


def named(source: dict[str, Any]) -> dict[str, str]:
    """Keys of `KEYS` that the source gives, with their values."""
    return {key: source[key] for key in KEYS if source.get(key)}


def read_members(
    paths: dict[str, Path],
    wanted: dict[str, list[str]],
    read: Callable[[Path, str, list[str]], RawTable],
) -> dict[str, RawTable]:
    """Raw table per split of the files in `paths`, keyed as in `KEYS`; `read` takes path, split and columns."""
    tables: dict[str, RawTable] = {}
    for split in SPLITS:
        if split in paths:
            table = read(paths[split], split, wanted[split])
            labels = paths.get(f"{split}_labels")
            tables[split] = table if labels is None else _with_labels(table, labels)
    return tables


def _with_labels(table: RawTable, path: Path) -> RawTable:
    labels = read_label_file(path)
    if labels.n_rows != table.n_rows:
        raise UserError(
            f"{path}: found {labels.n_rows} labels; allowed: {table.n_rows}, one for each row of {table.where};"
            " give the labels that belong to the file"
        )
    return replace(table, labels=labels)
