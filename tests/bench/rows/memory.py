"""Peak memory of a filtering run above that of the imports, in a process of its own.

A run of a few rows comes first: libraries load much of themselves when they are first used.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import problems

CHILD = """
import sys
from pathlib import Path
import numpy, polars, pyarrow.parquet, torch
import advsets.aflite.nodes, advsets.aflite.reading
from advsets.aflite.run import filter_files
from advsets.aflite.settings import FilterSettings

def peak():
    # The most that this process held; getrusage would count what its parent held before.
    line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024

def run(name):
    settings = FilterSettings(train_size=0.2, max_rounds=1)
    path = Path(name)
    filter_files(path, None, path.with_suffix(""), settings, device="cpu", progress=False)

run(sys.argv[1])
before = peak()
run(sys.argv[2])
print(peak() - before)
"""


def peak(*, small: bool) -> dict[str, Any]:
    return _peak(200_000, 768)


def peak_large(*, small: bool) -> dict[str, Any]:
    return _peak(500_000, 1024)


def _peak(n: int, d: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        few, many = Path(folder) / "few.parquet", Path(folder) / "many.parquet"
        _write(few, 500, d)
        _write(many, n, d)
        command = [sys.executable, "-c", CHILD, str(few), str(many)]
        above = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])
    x_bytes = n * d * 4
    return {"ratio": above / x_bytes, "peak_gib": above / 2**30, "x_gib": x_bytes / 2**30}


def _write(path: Path, n: int, d: int) -> None:
    """Embeddings in float16 and in row groups of 4,096 rows, as the embed step writes them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    problem = problems.synthetic(n, d, n // 5)
    schema = pa.schema([("example_id", pa.string()), ("label", pa.string()), ("embedding", pa.list_(pa.float16(), d))])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n, 4096):
            x = problem.x[start : start + 4096].astype(np.float16)
            columns = [
                pa.array([f"row-{i:07d}" for i in range(start, start + len(x))]),
                pa.array([str(label) for label in problem.y[start : start + len(x)]]),
                pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), d),
            ]
            writer.write_table(pa.table(columns, schema=schema))
