"""What a `filter` job needs before it computes, against the import of torch alone."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from measure import interleaved

JOB = """
import sys
from pathlib import Path
from advsets.aflite.chain import run_node

folder = Path(sys.argv[1])
run_node(folder / "000", folder / "train.parquet", None, folder / "001", n_rounds=1, threads=1, device="cpu")
"""


def filter_job(*, small: bool) -> dict[str, Any]:
    """A whole round of a tiny problem: its arithmetic is nothing beside the start."""
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder))
        found = interleaved(
            {
                "ours": lambda: _run("-c", JOB, folder),
                "peer": lambda: _run("-c", "import torch"),
            },
            3 if small else 9,
        )
    return {"ratio": found["ours"] / found["peer"], "ours_s": found["ours"], "peer_s": found["peer"]}


def _run(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True)


def _write(folder: Path) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from advsets.aflite.chain import start_node

    x = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
    columns = {
        "example_id": [f"row-{i}" for i in range(64)],
        "label": [str(i % 2) for i in range(64)],
        "embedding": x.tolist(),
    }
    pq.write_table(pa.table(columns), folder / "train.parquet")
    settings = {"train_size": 16, "slice_size": 4, "n_partitions": 4}
    start_node(folder / "train.parquet", None, folder / "000", settings=settings, seed=0)
