"""SHA-256 of files and folders, and comparison with what is wanted."""

from __future__ import annotations

import hashlib
from pathlib import Path

from advsets.errors import UserError

_CHUNK = 1 << 20


def file_sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while chunk := handle.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def folder_sha256(folder: Path) -> str:
    """SHA-256 over the names and contents of all files below `folder`, hidden ones left out."""
    digest = hashlib.sha256()
    for path in folder_files(folder):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{file_sha256(path)}\n".encode())
    return digest.hexdigest()


def folder_files(folder: Path) -> list[Path]:
    """Files below `folder` in order of name, without those in hidden folders or with hidden names."""
    files = (p for p in folder.rglob("*") if p.is_file())
    return sorted(p for p in files if not any(part.startswith(".") for part in p.relative_to(folder).parts))


def content_sha256(path: Path) -> str:
    """SHA-256 of a file, or of a folder's contents."""
    return folder_sha256(path) if path.is_dir() else file_sha256(path)


def content_size(path: Path) -> int:
    """Bytes of a file, or of a folder's files together."""
    return sum(p.stat().st_size for p in folder_files(path)) if path.is_dir() else path.stat().st_size


def check_sha256(path: Path, wanted: str | None, name: str, advice: str) -> str:
    """SHA-256 of `path`; raises `UserError` when it is not `wanted` (None: anything is right; case does not count)."""
    found = file_sha256(path)
    if wanted is not None and found != wanted.lower():
        raise UserError(f"{name}: sha256 is {found}; allowed: {wanted}; {advice}")
    return found
