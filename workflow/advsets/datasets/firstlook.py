"""First look at a file that no checksum vouches for: is it what was asked for, and whole?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from advsets.datasets.archives import archive_damage, is_archive, looks_like_archive
from advsets.datasets.tabular import is_table, read_label_file, read_rows, read_text
from advsets.errors import UserError
from advsets.io import parse_json

_N_START = 512
_PAGE = "an HTML page (of a login, a proxy or an error)"
_STARTS = {
    b"<!doctype html": _PAGE,
    b"<html": _PAGE,
    b"<?xml": "an XML page (of an error)",
    b"version https://git-lfs": "a Git LFS pointer in place of the file",
}


def fault_of(path: Path, members: Mapping[str, str]) -> str | None:
    """What was found in place of a readable file, or None when all of it can be read.

    Parameters
    ----------
    members : mapping of str to str
        What the source names, by key (`train`, `train_labels`, …): members of an archive, or the file itself.
    """
    with path.open("rb") as handle:
        start = handle.read(_N_START)
    if not start:
        return "0 bytes"
    begin = start.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    for known, meaning in _STARTS.items():
        if begin.startswith(known):
            return meaning
    if is_archive(path):
        return archive_damage(path, members.values())
    if looks_like_archive(path.name, start):
        return f"{path.stat().st_size} bytes that are no whole zip or tar archive (cut off or damaged)"
    return _table_fault(path, members)


def _table_fault(path: Path, members: Mapping[str, str]) -> str | None:
    keys = [key for key, member in members.items() if Path(member).name == path.name]
    try:
        if any(key.endswith("_labels") for key in keys):
            read_label_file(path)
        elif is_table(path.name):
            read_rows(path, ())
    except UserError as error:
        if not _is_document(path):
            return f"no readable table ({str(error).replace(str(path), path.name)})"
    return None


def _is_document(path: Path) -> bool:
    """Whether a file is one JSON object over several lines, as questions on passages come."""
    if not path.name.lower().removesuffix(".gz").endswith(".json"):
        return False
    try:
        return isinstance(parse_json(read_text(path)), dict)
    except (UserError, ValueError):
        return False
