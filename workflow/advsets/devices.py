"""GPU slots of one machine: device locks for jobs that share it without a scheduler.

A job that asks for GPUs locks one file per device and sees only these devices. The kernel frees the locks when
the process dies, however it dies, and with it the processes to which it gave the locks. Devices that
CUDA_VISIBLE_DEVICES names are the ones to choose from; where it names no more than the job asks for, it is a
scheduler's choice for this job and is left alone. Must be entered before torch is imported.

Conventions
-----------
Jobs that wait stand in one queue: its head alone takes devices, and keeps those it has until it has enough. So a
job that asks for several is not passed for ever by jobs that ask for one, and two such jobs never wait for each other:
whoever holds a device and does not wait will give it back.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from advsets.errors import UserError

_POLL_S = 0.5
_HIDDEN = ("", "-1", "NoDevFiles")
_QUEUE = "queue"


def list_devices(root: Path = Path("/dev")) -> list[str]:
    """CUDA indices of the NVIDIA devices that this machine or container shows, as strings.

    CUDA counts what it sees from 0: a container that was given /dev/nvidia3 alone has device 0.
    """
    found = [p for p in root.glob("nvidia[0-9]*") if p.name.removeprefix("nvidia").isdigit()]
    return [str(index) for index in range(len(found))]


@contextlib.contextmanager
def device_for(
    n_gpus: int, locks: Path | None = None, devices: list[str] | None = None, *, wanted: str = "auto"
) -> Iterator[str]:
    """Device to compute on, "cuda" or "cpu", held while the block runs.

    A scheduler that hides every device (CUDA_VISIBLE_DEVICES empty, -1 or NoDevFiles) gives "cpu".

    Parameters
    ----------
    n_gpus : int
        GPUs that the job was granted; 0 gives "cpu".
    locks : Path, optional
        Folder of the lock files; by default one per user (and SLURM job) in the temporary folder.
    devices : list of str, optional
        Device indices; by default those of this machine.
    wanted : {"auto", "cpu", "cuda"}
        What the configuration asks for.

    Raises
    ------
    UserError
        If "cuda" is wanted and no device is here.
    """
    indices = list_devices() if devices is None else devices
    if wanted == "cuda" and not indices:
        raise UserError("device: found no CUDA device on this machine; allowed: auto, cpu; set device: cpu or auto")
    if n_gpus == 0 or not indices:
        yield "cpu"
        return
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        indices = given.split(",")
        if given in _HIDDEN or len(indices) <= n_gpus:
            yield "cpu" if given in _HIDDEN else "cuda"
            return
    folder = _lock_folder(numbered_anew=given is not None) if locks is None else locks
    folder.mkdir(parents=True, exist_ok=True)
    held = _take(folder, indices, min(n_gpus, len(indices)))
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(held)
    try:
        yield "cuda"
    finally:
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)
        if given is not None:
            os.environ["CUDA_VISIBLE_DEVICES"] = given
        for handle in held.values():
            handle.close()


def _lock_folder(*, numbered_anew: bool) -> Path:
    """Folder of the locks: one per SLURM job if it numbers the devices that it gave to the job from 0."""
    job = os.environ.get("SLURM_JOB_ID") if numbered_anew else None
    name = f"advsets-devices-{os.getuid()}" + (f"-slurm-{job}" if job else "")
    return Path(tempfile.gettempdir()) / name


def _take(folder: Path, indices: list[str], n_gpus: int) -> dict[str, IO[str]]:
    """Lock `n_gpus` devices, in turn with the other jobs that wait; in the order of `indices`."""
    held: dict[str, IO[str]] = {}
    with (folder / _QUEUE).open("w") as queue:
        fcntl.flock(queue, fcntl.LOCK_EX)
        while True:
            for index in indices:
                if index not in held and len(held) < n_gpus:
                    _try_lock(folder, index, held)
            if len(held) == n_gpus:
                return {index: held[index] for index in indices if index in held}
            time.sleep(_POLL_S)


def _try_lock(folder: Path, index: str, held: dict[str, IO[str]]) -> None:
    handle: IO[str] = (folder / index.replace("/", "_")).open("w")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.close()
    else:
        os.set_inheritable(handle.fileno(), True)
        held[index] = handle
