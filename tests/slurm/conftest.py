"""A real SLURM of one node for the session, and what a test may ask of it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).resolve().parent
SWITCH = "ADVSETS_TEST_SLURM"


def _module(name: str, path: Path) -> ModuleType:
    """Module from a file, as folders of tests are no packages."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


one_node = _module("advsets_one_node", HERE / "one_node.py")
_workspaces = _module("advsets_workspaces", HERE.parent / "workflow" / "conftest.py")
smoke = _workspaces.smoke


@dataclass(frozen=True)
class Submission:
    """One `sbatch`, as the scheduler remembers it."""

    job: str
    name: str
    state: str
    partition: str
    memory_mb: int
    minutes: int
    n_gpus: int
    n_cpus: int

    @classmethod
    def from_line(cls, line: str) -> Submission:
        """From a line of `scontrol show job -o`; `name` is the rule, or the group, with its wildcards."""
        fields = dict(part.split("=", 1) for part in line.split() if "=" in part)
        hours, minutes, _ = (int(part) for part in fields["TimeLimit"].split(":"))
        memory = re.fullmatch(r"(\d+)([MG])", fields["MinMemoryNode"])
        gpus = re.fullmatch(r"gres:gpu:(\d+)", fields.get("TresPerJob", ""))
        assert memory is not None, line
        return cls(
            job=fields["JobId"],
            name=fields["Comment"].removeprefix("rule_"),
            state=fields["JobState"],
            partition=fields["Partition"],
            memory_mb=int(memory.group(1)) * (1024 if memory.group(2) == "G" else 1),
            minutes=60 * hours + minutes,
            n_gpus=int(gpus.group(1)) if gpus else 0,
            n_cpus=int(fields["NumCPUs"]),
        )


class Watcher(threading.Thread):
    """Calls `act`, which gives numbers of jobs, until `n_wanted` different ones have come or it is stopped."""

    def __init__(self, act: Callable[[], list[str]], n_wanted: int) -> None:
        super().__init__(daemon=True)
        self.act, self.n_wanted = act, n_wanted
        self.jobs: list[str] = []
        self.over = threading.Event()
        self.start()

    def run(self) -> None:
        while len(self.jobs) < self.n_wanted and not self.over.is_set():
            self.jobs += [job for job in self.act() if job not in self.jobs]
            time.sleep(0.3)

    def stop(self) -> list[str]:
        self.over.set()
        self.join()
        return self.jobs


class Cluster:
    """The scheduler as a user and its jobs' processes as an ill wind."""

    profile = ("--workflow-profile", "profiles/slurm", "--slurm-init-seconds-before-status-checks", "2")
    """The profile as a user takes it, but asking for the state of jobs more often."""
    smoke_run = (*profile, "--configfile", "config/smoke.yaml", "tests/slurm/smoke.yaml")

    def workspace(self, root: Path) -> _workspaces.Workspace:
        return _workspaces.Workspace(root)

    def submissions(self) -> list[Submission]:
        """All that were ever made, in their order."""
        found = [Submission.from_line(line) for line in self._ask("scontrol", "show", "job", "-o") if "JobId=" in line]
        return sorted(found, key=lambda submission: int(submission.job))

    def kill(self, *marks: str) -> list[str]:
        """Send SIGKILL to every process of the running jobs whose command lines hold all `marks`; their numbers."""
        found = self._running(marks)
        for processes in found.values():
            for pid in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return list(found)

    def cancel(self, *marks: str) -> list[str]:
        """`scancel` the running jobs whose command lines hold all `marks`; their numbers."""
        found = list(self._running(marks))
        if found:
            subprocess.run(["scancel", *found], check=True)
        return found

    def watch(self, act: Callable[[], list[str]], n_wanted: int) -> Watcher:
        return Watcher(act, n_wanted)

    def _running(self, marks: tuple[str, ...]) -> dict[str, dict[int, str]]:
        """Processes of running jobs, with their command lines."""
        jobs = {job: self._processes(job) for job in self._ask("squeue", "-h", "-t", "R", "-o", "%i")}
        return {
            job: processes
            for job, processes in jobs.items()
            if any(all(mark in command for mark in marks) for command in processes.values())
        }

    def _processes(self, job: str) -> dict[int, str]:
        found = {}
        for pid in {line.split()[0] for line in self._ask("scontrol", "listpids", job)}:
            with contextlib.suppress(OSError, ValueError):
                command = Path(f"/proc/{int(pid)}/cmdline").read_bytes().replace(b"\0", b" ")
                found[int(pid)] = command.decode(errors="replace")
        return found

    def _ask(self, *command: str) -> list[str]:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
        return [line for line in done.stdout.splitlines() if line.strip()]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """SLURM that is up; the test is skipped where it cannot be had."""
    if not os.environ.get(SWITCH):
        pytest.skip(f"installs and starts a SLURM: make test-slurm, or {SWITCH}=1")
    try:
        one_node.up()
    except one_node.Unavailable as error:
        pytest.skip(str(error))
    yield Cluster()
    one_node.down()


@pytest.fixture(scope="session")
def local_run(cluster: Cluster, request: pytest.FixtureRequest) -> _workspaces.Workspace:
    """Workspace in which the smoke configuration has run to its end without a scheduler; only where there is one."""
    return request.getfixturevalue("smoke")
