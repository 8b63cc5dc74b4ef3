"""Fetch a data set's raw files, and read them back, by the kind of its source."""

from __future__ import annotations

import dataclasses
from importlib import import_module
from pathlib import Path
from types import ModuleType

from advsets.datasets.raw import RawTable
from advsets.datasets.record import RECORD, earlier_record, is_complete, read_record, remove_parts, write_record
from advsets.errors import UserError, allowed
from advsets.registry import DatasetRow

MORE_ANNOTATORS = "more_annotators"
"""Folder, below a data set's raw files, of the file that its `more_annotators` names."""
KINDS = ("pypi", "hub", "url", "file")


def fetch(row: DatasetRow, folder: Path) -> None:
    """Bring the raw files of `row` into `folder` and write `source.json` last.

    A second call does nothing. Files under their final names are whole and checked. The file of
    `more_annotators` goes into a folder of its own below, with a `source.json` there.

    Raises
    ------
    UserError
        In one line: what cannot be had, and where to put it by hand.
    """
    extra = more_annotators_row(row)
    if extra is not None:
        fetch(extra, folder / MORE_ANNOTATORS)
    folder.mkdir(parents=True, exist_ok=True)
    remove_parts(folder)
    kind = _module(row)
    earlier = earlier_record(row, folder)
    if earlier is not None and kind.REUSABLE and is_complete(earlier, folder):
        if not (folder / RECORD).is_file():
            write_record(row, folder, earlier)
        return
    write_record(row, folder, kind.fetch(row, folder, earlier))


def more_annotators_row(row: DatasetRow) -> DatasetRow | None:
    """The file of more annotators as a data set of its own, of which only the source counts; None without any."""
    if row.more_annotators is None:
        return None
    return dataclasses.replace(
        row, name=f"{row.name}, more_annotators", source=row.more_annotators["source"], more_annotators=None
    )


def read(row: DatasetRow, folder: Path, wanted: dict[str, list[str]]) -> dict[str, RawTable]:
    """Raw tables of a fetched data set: `train` and, if the source has it, `evaluation`.

    Parameters
    ----------
    wanted : mapping of `train` and `evaluation` to list of str
        Columns that are needed of each; others are not kept.
    """
    return _module(row).read(row, folder, read_record(row, folder), wanted)


def paths(row: DatasetRow, folder: Path) -> dict[str, Path] | None:
    """Files of a fetched data set by key of its source (`train`, `evaluation`, …).

    None where they are inside an archive of which a reader makes tables.
    """
    module = _module(row)
    return module.paths(row, folder, read_record(row, folder)) if hasattr(module, "paths") else None


def _module(row: DatasetRow) -> ModuleType:
    kind = row.source.get("kind")
    if kind not in KINDS:
        raise UserError(f"data set {row.name}: source kind {kind!r}; allowed: {allowed(KINDS)}; correct `source.kind`")
    return import_module(f"advsets.datasets.{kind}")
