"""Benchmarks: ratios against what a user would otherwise run, each measured in one run.

`python tests/bench [--small] [--row NAME …]` runs each row in a process of its own, prints a
table, and writes `results/bench/<all|small>.json` and a figure beside it. See `make bench`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from catalogue import ROWS, Row
from measure import cores, machine

import report

HERE = Path(__file__).resolve().parent
OUT = HERE.parents[1] / "results" / "bench"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS")


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench", description="Speed and memory against peers, as ratios.")
    parser.add_argument("--small", action="store_true", help="only the short rows, at their first size")
    parser.add_argument("--row", action="append", choices=[row.name for row in ROWS], help="only this row")
    parser.add_argument("--child", nargs=2, metavar=("ROW", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        name, path = arguments.child
        row = next(row for row in ROWS if row.name == name)
        Path(path).write_text(json.dumps(row.function()(small=arguments.small)), encoding="utf-8")
        return 0
    wanted = [row for row in ROWS if row.name in (arguments.row or [row.name]) and (row.short or not arguments.small)]
    OUT.mkdir(parents=True, exist_ok=True)
    results, failures = [], 0
    for row in wanted:
        outcome = _run(row, arguments.small)
        failures += "error" in outcome
        results.append(outcome)
        print(report.line(outcome), flush=True)
    name = "small" if arguments.small else "all"
    if arguments.row is None:
        report.write(results, OUT / f"{name}.json")
        print(report.table(results))
        print(f"{OUT / f'{name}.json'}\n{OUT / f'{name}.png'}")
    return 1 if failures else 0


def _run(row: Row, small: bool) -> dict:
    """Measure one row in a process of its own; an error is reported and ends no other row."""
    path = OUT / f".{row.name}.json"
    path.unlink(missing_ok=True)
    environment = {**os.environ, **({} if row.free_threads else dict.fromkeys(THREAD_VARIABLES, str(cores())))}
    command = [sys.executable, str(HERE), "--child", row.name, str(path), *(["--small"] if small else [])]
    done = subprocess.run(command, env=environment, stdout=sys.stderr, check=False)
    common = {"row": row.name, "what": row.what, "against": row.against, "goal": row.goal, "goal_is": row.goal_is}
    if done.returncode != 0 or not path.is_file():
        return {**common, "ratio": None, "met": False, "error": f"exit code {done.returncode}", "machine": machine()}
    found = json.loads(path.read_text(encoding="utf-8"))
    path.unlink()
    met = found["ratio"] >= row.goal if row.goal_is == "at least" else found["ratio"] <= row.goal
    met = met and found.pop("also_met", True)
    return {**common, "met": bool(met), "machine": machine(), **found}


if __name__ == "__main__":
    sys.exit(main())
