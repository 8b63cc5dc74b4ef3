"""Run a function on several devices of this machine at once, in a process for each.

Conventions
-----------
The processes are the ranks of `advsets.models.ranks`. Each ends when its parent does, however
that ends, so none goes on computing on a device that the job no longer holds; until the last has
ended they keep the job's device locks. What they write to stderr goes to the parent's.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from advsets.errors import EXIT_USER_ERROR, UserError, describe_os_error
from advsets.io import write_text

_POLL_S = 0.1
_REMOVAL_S = 5.0
_ROOT = Path(__file__).resolve().parents[2]


def devices_of(device: str, n_granted: int) -> list[str]:
    """Torch devices of a job that holds `device` ("cpu" or "cuda") and was granted `n_granted` GPUs."""
    if device != "cuda" or n_granted <= 1:
        return [device]
    import torch

    n_devices = min(n_granted, torch.cuda.device_count())
    return [f"cuda:{index}" for index in range(n_devices)] if n_devices > 1 else [device]


def run_on(devices: list[str], function: Callable[..., None], *arguments: Any, **keywords: Any) -> None:
    """Call `function(*arguments, **keywords, device=...)`, in a process per device where there are several.

    Parameters
    ----------
    function : callable
        Importable by its name, like everything in `arguments` and `keywords`.

    Raises
    ------
    UserError
        That a process raised; the others are ended.
    RuntimeError
        If a process failed otherwise.
    """
    if len(devices) == 1:
        function(*arguments, **keywords, device=devices[0])
        return
    with tempfile.TemporaryDirectory(prefix="advsets-ranks-") as name:
        folder = Path(name)
        (folder / "job").write_bytes(pickle.dumps((devices, function, arguments, keywords)))
        with _processes(folder, len(devices)) as processes:
            failed = _first_failure(processes)
        if failed is not None:
            _tell_failure(folder, failed, len(devices))


@contextlib.contextmanager
def _processes(folder: Path, n: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes of all ranks, whose stderr is passed on; at the end they are killed if need be."""
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    processes, readers = [], []
    try:
        for rank in range(n):
            process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(folder), str(rank)],
                stdin=subprocess.PIPE,  # never written to: its end tells that the parent has ended
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                close_fds=False,  # device locks are made to be inherited
                env={**os.environ, "PYTHONPATH": path},
            )
            processes.append(process)
            readers.append(threading.Thread(target=_pass_on, args=(process, sys.stderr), daemon=True))
            readers[-1].start()
        yield processes
    finally:
        for process in processes:
            process.kill()
        for process, reader in zip(processes, readers, strict=False):
            reader.join()
            with process:  # waits, and closes its pipes
                pass


def _pass_on(process: subprocess.Popen[str], stream: Any) -> None:
    for line in process.stderr or ():
        stream.write(line)


def _first_failure(processes: list[subprocess.Popen[str]]) -> tuple[int, int] | None:
    """Rank and exit status of the first process that fails; None when all have ended well."""
    while True:
        states = [process.poll() for process in processes]
        for rank, status in enumerate(states):
            if status:
                return rank, status
        if None not in states:
            return None
        time.sleep(_POLL_S)


def _tell_failure(folder: Path, failed: tuple[int, int], n: int) -> None:
    """Raise what went wrong; a user's mistake in any rank comes first, as the others fail for want of that rank."""
    for path in sorted(folder.glob("*.error")):
        raise UserError(path.read_text(encoding="utf-8"))
    rank, status = failed
    how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    raise RuntimeError(f"process {rank + 1} of {n} ended with {how}; what it wrote stands above")


def _end_with_parent(folder: Path) -> None:
    while os.read(0, 1):  # not through sys.stdin, whose lock Python wants at its end
        pass
    deadline = time.monotonic() + _REMOVAL_S
    while folder.exists() and time.monotonic() < deadline:  # other ranks may still add to it
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def _main(folder: Path, rank: int) -> None:
    threading.Thread(target=_end_with_parent, args=(folder,), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which ends its ranks
    import torch

    from advsets.models import ranks

    devices, function, arguments, keywords = pickle.loads((folder / "job").read_bytes())
    torch.set_num_threads(max(1, torch.get_num_threads() // len(devices)))
    os.environ["RAYON_NUM_THREADS"] = str(torch.get_num_threads())
    try:
        ranks.join(rank, len(devices), devices[rank], folder / "meeting")
        function(*arguments, **keywords, device=devices[rank])
        ranks.leave()
    except (UserError, OSError) as error:
        write_text(folder / f"{rank}.error", describe_os_error(error) if isinstance(error, OSError) else str(error))
        _leave_at_once(EXIT_USER_ERROR)
    except BaseException:
        traceback.print_exc()
        _leave_at_once(1)


def _leave_at_once(status: int) -> None:
    """End without the clean-up in which ranks would wait for each other."""
    sys.stderr.flush()
    if select.select([0], [], [], 0)[0]:  # the parent has ended: the thread that tidies up ends this process
        threading.Event().wait()
    os._exit(status)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), int(sys.argv[2]))
