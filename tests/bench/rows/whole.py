"""A whole AFLite run on files, to its stop, against what scikit-learn would take for as many rounds."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import problems
from measure import cores
from rows.rounds import seconds_of_workers

FITS = 8
"""Fits of each of two rounds that stand for all of the peer's."""
SLICE_SIZE = 500


def run(*, small: bool) -> dict[str, Any]:
    from advsets.aflite.run import filter_files
    from advsets.aflite.settings import FilterSettings
    from advsets.io import read_table

    problem = problems.real()
    vectors = problems.vectors_file()
    settings = FilterSettings(train_size=problem.train_size, slice_size=SLICE_SIZE, max_rounds=1000)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        began = time.perf_counter()
        filter_files(vectors, None, out, settings, threads=cores(), device="cpu", progress=False)
        seconds = time.perf_counter() - began
        n_rounds = read_table(out / "rounds.parquet", "rounds").height
    masks = problem.draw()
    options = {"solver": "lbfgs", "tol": 1e-6}
    parts = [seconds_of_workers(problem, masks[start : start + FITS], options) for start in (0, FITS)]
    peer = sum(parts) / (2 * FITS) * len(masks) * n_rounds
    return {"ratio": peer / seconds, "ours_s": seconds, "peer_s": peer, "n_rounds": n_rounds, "n_peer_fits": 2 * FITS}
