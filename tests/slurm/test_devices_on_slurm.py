"""Jobs that run at the same time have devices of their own, one or several, chosen by the scheduler."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slurm
PROJECT = Path(__file__).resolve().parents[2]
WANTED = [2, 1, 1, 1, 2, 1, 1]
"""Devices per job, as in devices.smk."""


def test_concurrent_jobs_share_no_device(cluster, tmp_path: Path) -> None:
    profile = [str(PROJECT / "profiles/slurm") if part == "profiles/slurm" else part for part in cluster.profile]
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(PROJECT / "tests/slurm/devices.smk"), *profile]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    notes = [json.loads(path.read_text()) for path in sorted((tmp_path / "held").glob("*.json"))]
    assert [len(note["held"]) for note in notes] == WANTED
    assert {note["device"] for note in notes} == {"cuda"}
    assert not (tmp_path / "locks").exists(), "with a scheduler no device is locked by us"
    at_once = [
        (one, other)
        for one, other in itertools.combinations(notes, 2)
        if one["started"] < other["ended"] and other["started"] < one["ended"]
    ]
    assert len(at_once) >= 3
    for one, other in at_once:
        assert not set(one["held"]) & set(other["held"]), (one, other)
    assert {device for note in notes for device in note["held"]} <= {"0", "1", "2", "3"}
