"""Record of what was fetched, from which a later run knows that nothing is left to do.

Conventions
-----------
`source.json` is written last, so its presence means that all files are whole. A copy,
`.fetched.json`, outlives a workflow that deletes `source.json` before it runs the step again:
the commit and checksums of the first download hold until the user deletes the folder.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from advsets import __version__
from advsets.datasets.checksums import content_sha256, content_size, file_sha256
from advsets.errors import UserError
from advsets.io import parse_json, write_json
from advsets.registry import DatasetRow

RECORD = "source.json"
_COPY = ".fetched.json"


def earlier_record(row: DatasetRow, folder: Path) -> dict[str, Any] | None:
    """Record of an earlier fetch of the same source, or None.

    Of another source (the row was edited) the files are removed, unless they have been replaced since.
    """
    for name in (_COPY, RECORD):
        path = folder / name
        if path.is_file():
            record = _load(path)
            if record["requested"] == row.source:
                return record
            _remove_files(record, folder)
            path.unlink()
    return None


def _remove_files(record: dict[str, Any], folder: Path) -> None:
    for entry in record["files"]:
        path = folder / entry["name"]
        if not Path(entry["name"]).is_absolute() and path.is_file() and file_sha256(path) == entry["sha256"]:
            path.unlink()


def is_complete(record: dict[str, Any], folder: Path) -> bool:
    """Whether every recorded file is there with its size."""
    paths = [(folder / entry["name"], entry["size"]) for entry in record["files"]]
    return all(path.exists() and content_size(path) == size for path, size in paths)


def describe_file(path: Path, name: str) -> dict[str, Any]:
    """Name, size and checksum of a file or folder."""
    return {"name": name, "size": content_size(path), "sha256": content_sha256(path)}


def write_record(row: DatasetRow, folder: Path, resolved: dict[str, Any]) -> None:
    """Write the record; `resolved` holds `files` and what else the source tells."""
    record = {"kind": row.source["kind"], "requested": row.source, "advsets": __version__, **resolved}
    write_json(folder / _COPY, record)
    write_json(folder / RECORD, record)


def read_record(row: DatasetRow, folder: Path) -> dict[str, Any]:
    """Record of the fetch, checked to be of this row's source.

    Raises
    ------
    UserError
        If nothing was fetched, or something else than the row now says.
    """
    path = folder / RECORD
    if not path.is_file():
        raise UserError(f"{path}: no such file; fetch data set {row.name!r} first")
    record = _load(path)
    if record["requested"] != row.source:
        raise UserError(
            f"{path}: the source of data set {row.name!r} has changed since; delete this file and fetch again"
        )
    return record


def _load(path: Path) -> dict[str, Any]:
    """Record at `path`; what is none of ours raises `UserError`, which tells to delete it."""
    try:
        record = parse_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON ({error}); delete this file and run again") from None
    if not _is_record(record):
        raise UserError(f"{path}: found no record of a fetch; delete this file and run again")
    whole: dict[str, Any] = record
    return whole


def _is_record(record: Any) -> bool:
    files = record.get("files") if isinstance(record, dict) and "requested" in record else None
    return isinstance(files, list) and all(isinstance(f, dict) and {"name", "size", "sha256"} <= set(f) for f in files)


def remove_parts(folder: Path) -> None:
    """Delete what an interrupted fetch left under temporary names."""
    for path in list(folder.rglob(".*.part")):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
