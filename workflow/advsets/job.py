"""What every workflow step needs around its work: a log, a lock, thread limits, clear errors."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from advsets.errors import user_errors

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "POLARS_MAX_THREADS")


class _Tee:
    """Text stream that writes to two streams; the second gets no progress redraws."""

    def __init__(self, terminal: IO[str], log: IO[str]) -> None:
        self._streams = (terminal, log)

    def write(self, text: str) -> int:
        for stream in self._streams:
            stream.write(text)
            stream.flush()
        return len(text)

    def flush(self) -> None:
        for stream in self._streams:
            stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._streams[0], name)


@contextlib.contextmanager
def step(log: str | os.PathLike[str], threads: int, outputs: Sequence[str]) -> Iterator[None]:
    """Run one step: stderr also goes to `log`, threads are limited, `outputs` are locked.

    Must be entered before numpy, polars or torch is imported. A second writer of the same
    outputs (a job that a killed scheduler left behind) waits until the first has ended.
    """
    for variable in _THREAD_VARIABLES:
        os.environ[variable] = str(max(1, threads))
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    with user_errors(), Path(log).open("a", encoding="utf-8") as handle:
        terminal, sys.stderr = sys.stderr, _Tee(sys.stderr, handle)  # type: ignore[assignment]
        try:
            with user_errors(), output_lock(outputs[0]):
                yield
        finally:
            sys.stderr = terminal


@contextlib.contextmanager
def output_lock(output: str | os.PathLike[str]) -> Iterator[None]:
    """Hold an exclusive lock that stands for `output`; the kernel frees it when the process dies."""
    path = Path(output)
    folder = path.parent / ".locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / blake2b(path.name.encode(), digest_size=6).hexdigest()).open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"advsets: {path}: another process is writing it; waiting", file=sys.stderr)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
