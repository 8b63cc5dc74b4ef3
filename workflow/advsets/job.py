"""What every workflow step needs around its work: a log, a lock, thread limits, clear errors."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from advsets.errors import user_errors

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "RAYON_NUM_THREADS",
)


class _Tee:
    """Text stream that writes to two streams; the log gets no redraws of progress bars.

    A log that cannot be written (full disk) is given up: the terminal says why the step failed.
    """

    def __init__(self, terminal: IO[str], log: IO[str]) -> None:
        self._terminal, self._log = terminal, log

    def write(self, text: str) -> int:
        self._terminal.write(text)
        self._terminal.flush()
        if not text.startswith("\r"):
            with contextlib.suppress(OSError):
                self._log.write(text)
                self._log.flush()
        return len(text)

    def flush(self) -> None:
        self._terminal.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._terminal, name)


@contextlib.contextmanager
def step(log: str | os.PathLike[str], threads: int, outputs: Sequence[str]) -> Iterator[None]:
    """Run one step: stderr also goes to `log`, threads are limited, `outputs` are locked.

    Must be entered before numpy, polars or torch is imported. A second writer of the same
    outputs (a job that a killed scheduler left behind) waits until the first has ended.
    A user's mistake becomes one line in both, a fault of ours a traceback in both.
    """
    for variable in _THREAD_VARIABLES:
        os.environ[variable] = str(max(1, threads))
    with user_errors(), _log_file(log) as handle:
        terminal, sys.stderr = sys.stderr, _Tee(sys.stderr, handle)
        try:
            with user_errors(), output_lock(outputs[0], Path(log).parent):
                yield
        except Exception:
            with contextlib.suppress(OSError):
                traceback.print_exc(file=handle)
            raise
        finally:
            sys.stderr = terminal


@contextlib.contextmanager
def _log_file(log: str | os.PathLike[str]) -> Iterator[IO[str]]:
    """Log to add to. A step that fails or is killed leaves it a second name, `<log>.attempt<n>.log`.

    Snakemake deletes a job's log when it tries the job again; the second name stays.
    """
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    handle = Path(log).open("a", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115 - closing a full disk's file fails too
    try:
        second = _second_name(Path(log))
        yield handle
        if second is not None:
            with contextlib.suppress(OSError):
                second.unlink()
    finally:
        with contextlib.suppress(OSError):
            handle.close()


def _second_name(log: Path) -> Path | None:
    """Hard link to `log` under the first free number, or None where the disk has no hard links."""
    for number in itertools.count(1):
        name = log.with_name(f"{log.stem}.attempt{number}.log")
        try:
            os.link(log, name)
        except FileExistsError:
            continue
        except OSError:
            return None
        return name
    return None


@contextlib.contextmanager
def output_lock(output: str | os.PathLike[str], folder: Path) -> Iterator[None]:
    """Hold an exclusive lock that stands for `output`, kept in `folder`; the kernel frees it when the process dies."""
    locks = folder / ".locks"
    locks.mkdir(parents=True, exist_ok=True)
    with (locks / blake2b(os.fsencode(output), digest_size=6).hexdigest()).open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"advsets: {os.fspath(output)}: another process is writing it; waiting", file=sys.stderr)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
