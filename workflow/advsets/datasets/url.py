"""Archives and files by address, with checksums; files that are there already are used.

Conventions
-----------
A file gets its name when its checksum is right or, where none is known, when it can be read to
its end; so what a cut transfer or a login page left is not kept, and is asked for again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from advsets.datasets.archives import extract_member, is_archive
from advsets.datasets.checksums import check_sha256
from advsets.datasets.download import download
from advsets.datasets.firstlook import fault_of
from advsets.datasets.members import named, read_members
from advsets.datasets.raw import RawTable
from advsets.datasets.record import describe_file
from advsets.datasets.tabular import read_rows
from advsets.errors import UserError, allowed
from advsets.registry import DatasetRow

REUSABLE = True
_SCHEMES = ("http", "https", "ftp", "file")


def fetch(row: DatasetRow, folder: Path, earlier: dict[str, Any] | None) -> dict[str, Any]:
    """Download what the source names into `folder`, check it, and unpack the members that are named."""
    source, members = row.source, named(row.source)
    _check_address(source["url"], f"data set {row.name}: source.url")
    for key, member in members.items():
        _check_relative(member, f"data set {row.name}: source.{key}")
    sums = {entry["name"]: entry["sha256"] for entry in (earlier or {"files": []})["files"]}
    is_folder = source["url"].endswith("/")
    if source["sha256"] is not None and isinstance(source["sha256"], dict) != is_folder:
        raise UserError(
            f"data set {row.name}: source.sha256: allowed: one checksum for a file or archive, a mapping of file to"
            " checksum for a folder (an url that ends in `/`), or null; correct it"
        )
    if is_folder:
        given = source["sha256"] or {}
        unknown = sorted(set(given) - set(members.values()))
        if unknown:
            raise UserError(
                f"data set {row.name}: source.sha256: found a checksum of {unknown[0]!r}; allowed: those of the files"
                f" that the source names, {allowed(members.values())}; remove it"
            )
        for member in members.values():
            _obtain(row, urljoin(source["url"], member), folder, member, given.get(member) or sums.get(member))
        return {"files": [{"key": k, **describe_file(folder / m, m)} for k, m in members.items()]}
    return _fetch_one(row, folder, sums)


def read(row: DatasetRow, folder: Path, record: dict[str, Any], wanted: dict[str, list[str]]) -> dict[str, RawTable]:
    """Tables of the recorded members."""
    return read_members(paths(row, folder, record), wanted, lambda path, split, columns: read_rows(path, columns))


def paths(row: DatasetRow, folder: Path, record: dict[str, Any]) -> dict[str, Path]:
    """Recorded members by key."""
    return {entry["key"]: folder / entry["name"] for entry in record["files"] if "key" in entry}


def _fetch_one(row: DatasetRow, folder: Path, sums: dict[str, str]) -> dict[str, Any]:
    source, members = row.source, named(row.source)
    name = PurePosixPath(unquote(urlsplit(source["url"]).path)).name
    if not name:
        raise UserError(
            f"data set {row.name}: source.url {source['url']}: names no file; end it in `/` if it is a folder"
        )
    archive = _obtain(row, source["url"], folder, name, source["sha256"] or sums.get(name))
    if is_archive(archive):
        for member in members.values():
            extract_member(archive, member, folder / member)
        files = [{"key": k, **describe_file(folder / m, m)} for k, m in members.items()]
        return {"files": [describe_file(archive, name), *files]}
    if list(members.values()) != [name]:
        raise UserError(
            f"data set {row.name}: {name} is one file, no archive (zip, tar); allowed:"
            f" source.{next(iter(members))} {name!r} and nothing else; correct `source`, or end the url in `/`"
            " if its files are fetched one by one"
        )
    return {"files": [{"key": next(iter(members)), **describe_file(archive, name)}]}


def _obtain(row: DatasetRow, url: str, folder: Path, name: str, sha256: str | None) -> Path:
    """`folder / name`, downloaded unless it is there, with its checksum checked."""
    target, what, members = folder / name, f"data set {row.name}", named(row.source)
    by_hand = (
        f"put {name}{f' (sha256 {sha256})' if sha256 else ''} from {url} into {target.parent.resolve()} and run again"
    )
    if target.is_file():
        check_sha256(target, sha256, str(target), "delete the file and run again")
        fault = None if sha256 else fault_of(target, members)
        if fault:
            raise UserError(f"{what}: {target}: found {fault}; delete the file and run again, or replace it")
        return target
    with _staged(target) as new:
        download(url, new, sha256, what, by_hand)
        fault = None if sha256 else fault_of(new, members)
        if fault:
            raise UserError(
                f"{what}: {url}: found {fault}; nothing is kept: see what the address sends (a login, a wrong"
                f" address, a cut transfer) and run again, or {by_hand}"
            )
        os.replace(new, target)
    return target


@contextmanager
def _staged(target: Path) -> Iterator[Path]:
    """Path of the same name in a folder of its own beside `target`, which is removed at the end."""
    stage = target.with_name(f".{target.name}.part")
    try:
        yield stage / target.name
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _check_address(url: str, where: str) -> None:
    try:
        parts, reason = urlsplit(url), ""
        port = parts.port
        if parts.scheme not in _SCHEMES:
            reason = f"scheme {parts.scheme!r}, port {port}"
    except ValueError as error:
        reason = str(error)
    if reason:
        schemes = allowed(f"{scheme}://…" for scheme in _SCHEMES)
        raise UserError(f"{where}: {url} is no address ({reason}); allowed: {schemes}; correct it")


def _check_relative(name: str, where: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name:
        raise UserError(f"{where}: {name!r}; allowed: a path inside the archive without `..`; correct it")
