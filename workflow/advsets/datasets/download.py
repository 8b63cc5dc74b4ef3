"""Download one file over HTTP(S) or from `file://`, checked before it gets its name."""

from __future__ import annotations

import http.client
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, Any

from advsets import __version__
from advsets.datasets.checksums import check_sha256
from advsets.errors import UserError
from advsets.io import atomic_path

_CHUNK = 1 << 18
_TIMEOUT_S = 60
_PROGRESS_EVERY_S = 2.0
_MB = 1e6


def download(url: str, target: Path, sha256: str | None, what: str, by_hand: str) -> None:
    """Write the file at `url` to `target`, whole and with the right checksum, or not at all.

    Proxies are taken from the environment. Progress goes to standard error.

    Parameters
    ----------
    what : str
        Opens messages, e.g. "data set snli".
    by_hand : str
        What the user can do without the network.

    Raises
    ------
    UserError
        If the address cannot be reached, the transfer is cut, or the checksum differs.
    """
    headers = {"User-Agent": f"advsets/{__version__}", "Accept-Encoding": "identity"}
    with atomic_path(target) as temporary:
        try:
            request = urllib.request.Request(url, headers=headers)
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response, temporary.open("wb") as sink:
                _copy(response, sink, target.name)
                if sha256 is None and not _is_measured(response):
                    _warn_unmeasured(target.name)
        except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError, _CutOff) as error:
            reason = getattr(error, "reason", None) or error
            raise UserError(f"{what}: cannot fetch {url} ({reason}); check network and address, or {by_hand}") from None
        except ValueError as error:
            raise UserError(f"{what}: {url} is no address ({error}); correct the address") from None
        check_sha256(
            temporary, sha256, f"{what}: {url}", f"the file there has changed: correct the `sha256`, or {by_hand}"
        )


class _CutOff(Exception):
    """The connection ended before all bytes were there."""


def _copy(response: Any, sink: IO[bytes], name: str) -> None:
    length = response.headers.get("Content-Length")
    total = int(length) if length and length.isdecimal() else None
    done, told = 0, time.monotonic()
    while chunk := response.read(_CHUNK):
        sink.write(chunk)
        done += len(chunk)
        if time.monotonic() - told > _PROGRESS_EVERY_S:
            told = time.monotonic()
            _tell(name, done, total)
    if total is not None and done != total:
        raise _CutOff(f"the connection was cut after {done} of {total} bytes")
    _tell(name, done, total)


def _is_measured(response: Any) -> bool:
    """Whether a cut transfer would have been noticed."""
    return bool(response.headers.get("Content-Length")) or bool(getattr(response, "chunked", False))


def _warn_unmeasured(name: str) -> None:
    print(
        f"{name}: the server tells no length, so that a cut transfer may go unnoticed; give its `sha256`",
        file=sys.stderr,
        flush=True,
    )


def _tell(name: str, done: int, total: int | None) -> None:
    of = f" of {total / _MB:.1f}" if total else ""
    print(f"{name}: {done / _MB:.1f}{of} MB", file=sys.stderr, flush=True)
