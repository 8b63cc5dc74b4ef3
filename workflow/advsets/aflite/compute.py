"""Where and with how many threads to compute."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from advsets.errors import UserError


def resolve_device(device: str) -> str:
    """Torch device of "auto" (a GPU where there is one), or `device` if it can be used."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device.split(":")[0] == "cuda" and not torch.cuda.is_available():
        raise UserError("device: 'cuda' is not available here; allowed: auto, cpu; choose one of these")
    return device


@contextlib.contextmanager
def thread_limit(n_threads: int | None) -> Iterator[None]:
    """Let torch use `n_threads` CPU threads inside (None: as many as it uses already)."""
    if n_threads is not None and n_threads < 1:
        raise UserError(f"threads: {n_threads} is not allowed; allowed: an integer of at least 1; change it")
    before = torch.get_num_threads()
    torch.set_num_threads(before if n_threads is None else n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
