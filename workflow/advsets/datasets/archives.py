"""Take single named files out of zip and tar archives."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from advsets.errors import UserError, allowed
from advsets.io import atomic_path


def is_archive(path: Path) -> bool:
    """Whether the file's content is a zip or tar archive."""
    return zipfile.is_zipfile(path) or tarfile.is_tarfile(path)


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
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError) as error:
        raise UserError(f"{archive}: the archive is damaged ({error}); delete it and fetch again") from None


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
    return UserError(
        f"{archive}: holds no {member!r}; found: {allowed(sorted(names))}; correct `source` of the data set"
    )
