"""Timing: interleaved repeats, pinned threads, and the line that names the machine."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Key = TypeVar("Key", str, int)


def interleaved(functions: dict[Key, Callable[[], object]], repeats: int) -> dict[Key, float]:
    """Median seconds of each function, called in turn `repeats` times after one call that does not count.

    A function that returns a float has measured (or extrapolated) its seconds itself.
    """
    seconds: dict[Key, list[float]] = {name: [] for name in functions}
    for repeat in range(repeats + 1):
        for name, function in functions.items():
            began = time.perf_counter()
            own = function()
            if repeat:
                seconds[name].append(time.perf_counter() - began if not isinstance(own, float) else own)
    return {name: statistics.median(values) for name, values in seconds.items()}


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine() -> dict[str, str | int]:
    """CPU, threads, BLAS libraries and versions."""
    import numpy
    import sklearn
    import torch
    from threadpoolctl import threadpool_info

    blas = sorted(
        {f"{lib['internal_api']} {lib.get('version')}" for lib in threadpool_info() if lib["user_api"] == "blas"}
    )
    return {
        "cpu": _cpu(),
        "threads": cores(),
        "blas": ", ".join([*blas, f"torch: {'MKL' if torch.backends.mkl.is_available() else 'other'}"]),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "scikit-learn": sklearn.__version__,
        "python": platform.python_version(),
    }


def _cpu() -> str:
    path = Path("/proc/cpuinfo")
    names = (
        [line.split(":", 1)[1].strip() for line in path.read_text().splitlines() if line.startswith("model name")]
        if path.is_file()
        else []
    )
    return names[0] if names else platform.processor() or platform.machine()
