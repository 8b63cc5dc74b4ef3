"""Where and with how many threads to compute."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from numbers import Integral

import torch

from advsets.errors import UserError

MAX_THREADS = 1024
"""More are refused: torch takes any 32-bit number and then fails to start so many."""


def resolve_device(device: str) -> str:
    """Torch device of "auto" (a GPU where there is one), or `device` if it can be used."""
    n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device == "auto":
        return "cuda" if n_devices else "cpu"
    if device == "cpu":
        return device
    found = re.fullmatch(r"cuda(?::(\d+))?", device) if isinstance(device, str) else None
    if found is None:
        raise UserError(f"device: {device!r} is not allowed; allowed: auto, cpu, cuda; choose one of these")
    if int(found.group(1) or 0) >= n_devices:
        choices = ", ".join(["auto", "cpu", *(["cuda"] if n_devices else [])])
        raise UserError(f"device: {device!r} is not available here; allowed: {choices}; choose one of these")
    return device


def devices_of(device: str) -> list[str]:
    """Torch devices that `device` stands for: every visible GPU for "cuda"."""
    n_devices = torch.cuda.device_count() if device == "cuda" else 0
    return [f"cuda:{index}" for index in range(n_devices)] if n_devices > 1 else [device]


@contextlib.contextmanager
def thread_limit(n_threads: int | None, name: str = "threads") -> Iterator[None]:
    """Let torch use `n_threads` CPU threads inside (None: as many as it uses already); `name` is for messages."""
    is_count = isinstance(n_threads, Integral) and not isinstance(n_threads, bool)
    if n_threads is not None and not (is_count and 1 <= n_threads <= MAX_THREADS):
        raise UserError(f"{name}: {n_threads!r} is not allowed; allowed: an integer from 1 to {MAX_THREADS}; change it")
    before = torch.get_num_threads()
    torch.set_num_threads(before if n_threads is None else int(n_threads))
    try:
        yield
    finally:
        torch.set_num_threads(before)
