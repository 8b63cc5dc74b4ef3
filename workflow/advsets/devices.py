"""One job, one GPU: device locks for jobs that share a machine without a scheduler.

A job that asks for a GPU locks a file that stands for one device and sees only that device.
The kernel frees the lock when the process dies, however it dies. Where a scheduler has set
CUDA_VISIBLE_DEVICES its choice is left alone. Must be entered before torch is imported.
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
        Folder of the lock files; by default one per user in the temporary folder.
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
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        yield "cpu" if os.environ["CUDA_VISIBLE_DEVICES"] in ("", "-1", "NoDevFiles") else "cuda"
        return
    folder = locks or Path(tempfile.gettempdir()) / f"advsets-devices-{os.getuid()}"
    folder.mkdir(parents=True, exist_ok=True)
    held = _take(folder, indices, min(n_gpus, len(indices)))
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(held)
    try:
        yield "cuda"
    finally:
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)
        for handle in held.values():
            handle.close()


def _take(folder: Path, indices: list[str], n_gpus: int) -> dict[str, IO[str]]:
    """Lock `n_gpus` free devices, waiting until so many are free at once."""
    while True:
        held: dict[str, IO[str]] = {}
        for index in indices:
            handle: IO[str] = (folder / index).open("w")
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held[index] = handle
            except BlockingIOError:
                handle.close()
            if len(held) == n_gpus:
                return held
        for handle in held.values():
            handle.close()
        time.sleep(_POLL_S)
