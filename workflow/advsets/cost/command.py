"""`advsets cost`: plan a run without starting it, and print what it will cost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from advsets.cost.report import HEAD
from advsets.errors import UserError


def print_cost(configs: Sequence[Path], stream: TextIO) -> None:
    """Print the cost of what the run of `configs` still has to do; the plan is Snakemake's own.

    Raises
    ------
    UserError
        If this is not the project's folder, or the run cannot be planned.
    """
    if not Path("Snakefile").is_file():
        raise UserError(f"{Path.cwd()}: no Snakefile here; run `advsets cost` in the project's folder")
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--quiet", "all", "--configfile", *map(str, configs)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    lines = done.stdout.splitlines()
    if done.returncode:
        said = [line.strip() for line in [*lines, *done.stderr.splitlines()] if line.strip()]
        raise UserError(f"{', '.join(map(str, configs))}: the run cannot be planned: {' '.join(said[-4:])}")
    starts = [i for i, line in enumerate(lines) if line.startswith(HEAD)]
    print(*(lines[starts[0] :] if starts else ["Nothing is left to run."]), sep="\n", file=stream)
