"""Folders written by `save_to_disk` of the `datasets` library."""

from __future__ import annotations

import json
from pathlib import Path

from advsets.datasets.raw import RawTable
from advsets.datasets.tabular import arrow_table
from advsets.errors import UserError, allowed

_DATASET, _DATASETS = "dataset_info.json", "dataset_dict.json"


def is_saved(path: Path) -> bool:
    """Whether `path` is a folder with a saved data set, or with several by split."""
    return (path / _DATASET).is_file() or (path / _DATASETS).is_file()


def saved_splits(path: Path) -> list[str]:
    """Splits of a folder that holds several data sets; empty for anything else."""
    if not (path / _DATASETS).is_file():
        return []
    splits: list[str] = json.loads((path / _DATASETS).read_text(encoding="utf-8"))["splits"]
    return splits


def read_saved(path: Path, split: str, wanted: list[str]) -> RawTable:
    """Table of a saved data set; of several, the one that is called `split`.

    Raises
    ------
    UserError
        If the folder holds no such split or cannot be read.
    """
    from datasets import Dataset

    splits = saved_splits(path)
    if splits and split not in splits:
        raise UserError(f"{path}: no split {split!r}; found: {allowed(splits)}; give the folder of the split you mean")
    folder = path / split if splits else path
    try:
        dataset = Dataset.load_from_disk(str(folder))
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{folder}: not a readable `datasets` folder ({error}); save it again") from None
    names = list(dataset.column_names)
    table = dataset.select_columns([n for n in names if n in set(wanted)]).with_format("arrow")[:]
    return arrow_table(str(folder), table, len(dataset), names)
