"""Take single named files out of zip and tar archives."""

from __future__ import annotations

import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from advsets.errors import UserError, allowed
from advsets.io import atomic_path

_CHUNK = 1 << 20
_SUFFIXES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
_ZIP_START = b"PK\x03\x04"
_FAULTS = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError)


def is_archive(path: Path) -> bool:
    """Whether the file's content is a zip or tar archive; false where its start or its directory is cut off."""
    try:
        return zipfile.is_zipfile(path) or tarfile.is_tarfile(path)
    except _FAULTS as error:
        _raise_disk_fault(error)
        return False


def looks_like_archive(name: str, start: bytes) -> bool:
    """Whether a file of this name and these first bytes is meant to be an archive."""
    return name.lower().endswith(_SUFFIXES) or start.startswith(_ZIP_START)


def archive_damage(archive: Path, members: Iterable[str]) -> str | None:
    """What is wrong with an archive whose `members` cannot be read to their ends, or None; absent ones are passed."""
    for member in members:
        try:
            with _opened(archive, member) as source:
                while source.read(_CHUNK):
                    pass
        except UserError:
            continue
        except _FAULTS as error:
            _raise_disk_fault(error)
            return f"an archive whose {member!r} cannot be read to its end ({_reason(error)})"
    return None


def extract_member(archive: Path, member: str, target: Path) -> None:
    """Write `member` of an archive to `target`, which the caller has chosen; nothing else is unpacked.

    Raises
    ------
    UserError
        If the archive has no such file or is damaged.
    """
    try:
        with _opened(archive, member) as source, atomic_path(target) as temporary, temporary.open("wb") as sink:
            shutil.copyfileobj(source, sink)
    except _FAULTS as error:
        _raise_disk_fault(error)
        raise UserError(f"{archive}: the archive is damaged ({_reason(error)}); delete it and fetch again") from None


def _raise_disk_fault(error: BaseException) -> None:
    """Faults of the disk have a number; damaged bzip2 and gzip data raise OSError without one."""
    if isinstance(error, OSError) and error.errno:
        raise error


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__


@contextmanager
def _opened(archive: Path, member: str) -> Iterator[IO[bytes]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as bundle:
            names = [info.filename for info in bundle.infolist() if not info.is_dir()]
            if member not in names:
                raise _missing(archive, member, names)
            with bundle.open(member) as source:
                yield source
        return
    with tarfile.open(archive) as tar:
        files = {info.name.removeprefix("./"): info for info in tar if info.isreg()}
        source_file = tar.extractfile(files[member]) if member in files else None
        if source_file is None:
            raise _missing(archive, member, list(files))
        yield source_file


def _missing(archive: Path, member: str, names: list[str]) -> UserError:
    found = allowed(sorted(names)) or "no files"
    return UserError(f"{archive}: holds no {member!r}; found: {found}; correct `source` of the data set")
