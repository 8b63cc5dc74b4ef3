"""How the seconds of a pass grow with rows, partitions and features: the slope of their logarithms."""

from __future__ import annotations

from typing import Any

import numpy as np
import problems
from rows.passes import median_pass

N, M, D = 10_000, 64, 384
REPEATS = 5


def rows(*, small: bool) -> dict[str, Any]:
    return _growth({n: problems.synthetic(n, D, n * 2 // 5, M) for n in (N, 2 * N, 4 * N)})


def partitions(*, small: bool) -> dict[str, Any]:
    return _growth({m: problems.synthetic(2 * N, D, N * 4 // 5, m) for m in (16, 64, 256)})


def features(*, small: bool) -> dict[str, Any]:
    return _growth({d: problems.synthetic(2 * N, d, N * 4 // 5, M) for d in (384, 768, 1536)})


def _growth(by_size: dict[int, problems.Problem]) -> dict[str, Any]:
    seconds = {size: median_pass(problem, REPEATS) for size, problem in by_size.items()}
    slope = np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)[0]
    return {"ratio": float(slope), "seconds_by_size": {str(size): value for size, value in seconds.items()}}
