"""Local files and saved `datasets` folders: recorded by checksum, not copied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from advsets.datasets.checksums import content_sha256
from advsets.datasets.members import named, read_members
from advsets.datasets.raw import RawTable
from advsets.datasets.record import RECORD, describe_file
from advsets.datasets.saved import is_saved, read_saved, saved_splits
from advsets.datasets.tabular import read_rows
from advsets.errors import UserError, allowed
from advsets.io import local_path
from advsets.registry import DatasetRow

REUSABLE = False


def fetch(row: DatasetRow, folder: Path, earlier: dict[str, Any] | None) -> dict[str, Any]:
    """Path, size and checksum of every file that the source names."""
    files = []
    for key, text in named(row.source).items():
        path = local_path(text, f"data set {row.name}: source.{key}")
        if not path.is_file() and not is_saved(path):
            raise _unusable(path, f"data set {row.name}: source.{key}")
        files.append({"key": key, **describe_file(path, str(path))})
    return {"files": files}


def read(row: DatasetRow, folder: Path, record: dict[str, Any], wanted: dict[str, list[str]]) -> dict[str, RawTable]:
    """Tables of the recorded files, which must not have changed since."""
    split_of = _split_of(row)

    def read_any(path: Path, split: str, columns: list[str]) -> RawTable:
        return read_saved(path, split_of[split], columns) if path.is_dir() else read_rows(path, columns)

    return read_members(paths(row, folder, record), wanted, read_any)


def paths(row: DatasetRow, folder: Path, record: dict[str, Any]) -> dict[str, Path]:
    """Recorded files by key, unchanged since; of a folder with several data sets that of each split."""
    for entry in record["files"]:
        check_unchanged(entry, folder)
    found = {entry["key"]: Path(entry["name"]) for entry in record["files"]}
    if "evaluation" not in found and row.evaluation_split in saved_splits(found["train"]):
        found["evaluation"] = found["train"]
    split_of = _split_of(row)
    return {
        key: path / split_of[key] if split_of.get(key) in saved_splits(path) else path for key, path in found.items()
    }


def _split_of(row: DatasetRow) -> dict[str, str]:
    """Split of a saved folder that each key means."""
    return {"train": "train", "evaluation": row.evaluation_split}


def _unusable(path: Path, where: str) -> UserError:
    if not path.is_dir():
        return UserError(
            f"{where}: {path}: no such file or saved `datasets` folder; correct the path, or put the file there"
        )
    found = allowed(sorted(p.name for p in path.iterdir()), 6) or "nothing"
    return UserError(
        f"{where}: {path}: found a folder that holds {found}; allowed: a file, or a folder written by `save_to_disk`"
        " of `datasets` (with dataset_info.json or dataset_dict.json); name a file in it, or for a folder in the"
        " hub's format use `kind: hub`"
    )


def check_unchanged(entry: dict[str, Any], folder: Path) -> None:
    """Raise `UserError` when a recorded local file is gone or has another content."""
    path = Path(entry["name"])
    if not path.exists():
        raise UserError(
            f"{path}: no such file, though it was there when it was recorded; put it back, or correct the path"
        )
    if content_sha256(path) != entry["sha256"]:
        raise UserError(
            f"{path}: the content has changed since it was recorded; to use the new content delete"
            f" {folder / RECORD} and run again, otherwise put the old content back"
        )
