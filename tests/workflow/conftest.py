"""Workspaces in which the real workflow runs: links to the project, results of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

PROJECT = Path(__file__).resolve().parents[2]


class Workspace:
    """Folder with links to the project's workflow and configuration, and results of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        for name in ("Snakefile", "workflow", "config", "profiles", "envs", "tests"):
            if not (root / name).exists():
                (root / name).symlink_to(PROJECT / name)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "snakemake", *arguments]

    def run(self, *arguments: str, timeout: float = 1200) -> subprocess.CompletedProcess[str]:
        """Run snakemake to its end; stdout and stderr together in `stdout`."""
        return subprocess.run(
            self.command(*arguments),
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )

    def kill_when(self, ready: Callable[[], bool], *arguments: str, timeout: float = 600) -> bool:
        """Start snakemake and kill it with all its jobs once `ready`; False if it ended before."""
        process = subprocess.Popen(
            self.command(*arguments),
            cwd=self.root,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + timeout
        while process.poll() is None and time.monotonic() < deadline:
            if ready():
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return True
            time.sleep(0.02)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise AssertionError("the moment to kill never came")
        return False

    def tables(self, run: str) -> dict[str, pl.DataFrame]:
        """Every final Parquet table of a run without its `*_s` columns, by relative path."""
        folder = self.root / "results" / run
        return {
            str(path.relative_to(folder)): without_durations(pl.read_parquet(path))
            for path in sorted(folder.rglob("*.parquet"))
            if "nodes" not in path.parts and not any(part.endswith(".work") for part in path.parts)
        }


def without_durations(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select([name for name in frame.columns if not name.endswith("_s")])


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Workspace in which the smoke configuration has run to its end."""
    workspace = Workspace(tmp_path_factory.mktemp("smoke"))
    done = workspace.run("--cores", "2", "--configfile", "config/smoke.yaml")
    assert done.returncode == 0, done.stdout[-6000:]
    return workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Workspace without results."""
    return Workspace(tmp_path)
