"""Folders written by `save_to_disk` of the `datasets` library."""

from __future__ import annotations

from pathlib import Path

from advsets.datasets.raw import RawTable
from advsets.datasets.tabular import arrow_table
from advsets.errors import UserError, allowed, reason
from advsets.io import read_json

_DATASET, _DATASETS = "dataset_info.json", "dataset_dict.json"


def is_saved(path: Path) -> bool:
    """Whether `path` is a folder with a saved data set, or with several by split."""
    return (path / _DATASET).is_file() or (path / _DATASETS).is_file()


def saved_splits(path: Path) -> list[str]:
    """Splits of a folder that holds several data sets; empty for anything else."""
    if not (path / _DATASETS).is_file():
        return []
    content = read_json(path / _DATASETS)
    splits = content.get("splits") if isinstance(content, dict) else None
    if not isinstance(splits, list) or not all(isinstance(split, str) for split in splits):
        raise UserError(f"{path / _DATASETS}: names no list of splits; save the data set again")
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
    except Exception as error:  # whatever damaged metadata or tables raise
        raise UserError(f"{folder}: not a readable `datasets` folder ({reason(error)}); save it again") from None
    names = list(dataset.column_names)
    table = dataset.select_columns([n for n in names if n in set(wanted)]).with_format("arrow")[:]
    return arrow_table(str(folder), table, len(dataset), names)
