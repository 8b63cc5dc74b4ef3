"""`kill -9` at any stage: a rerun completes, with the same tables, and repeats no finished work."""

from __future__ import annotations

import contextlib
import random
from base64 import urlsafe_b64decode
from pathlib import Path

import pytest

pytestmark = pytest.mark.workflow
SMOKE = ("--cores", "2", "--configfile", "config/smoke.yaml")


def started(folder: Path, pattern: str, n: int = 1):
    """True once `n` logs or files of a stage exist."""
    return lambda: len(list(folder.glob(pattern))) >= n


def test_kills_at_every_stage(smoke, workspace) -> None:
    results = workspace.root / "results"
    generator = random.Random(5)
    moments = [
        ("download", started(results, "downloads/logs/fetch_dataset/*.log")),
        ("fine-tune", started(results, "smoke/models/*/*/*/*/checkpoint.work/*")),
        ("embed", started(results, "smoke/logs/embed/*/*/*/*.log")),
        *(
            ("filter", started(results, "smoke/aflite/*/*/*/nodes/*.scores.parquet", n))
            for n in sorted(generator.sample(range(1, 9), 3))
        ),
    ]
    finished: dict[Path, int] = {}
    for stage, moment in moments:
        assert workspace.kill_when(moment, *SMOKE), f"the run ended before {stage} could be killed"
        for path, written in finished.items():
            assert path.stat().st_mtime_ns == written, f"{path} was computed again"
        unfinished = incomplete(workspace.root)
        for path in [*results.glob("smoke/aflite/*/*/*/nodes/*.json"), *results.glob("smoke/models/*/*/*/*/*.parquet")]:
            if str(path.relative_to(workspace.root)) not in unfinished:
                finished[path] = path.stat().st_mtime_ns
        unlocked = workspace.run("--unlock", "--configfile", "config/smoke.yaml")
        assert unlocked.returncode == 0, unlocked.stdout
    done = workspace.run(*SMOKE)
    assert done.returncode == 0, done.stdout[-6000:]
    assert finished
    for path, written in finished.items():
        assert path.stat().st_mtime_ns == written, f"{path} was computed again"
    expected, found = smoke.tables("smoke"), workspace.tables("smoke")
    assert expected.keys() == found.keys()
    for path, frame in expected.items():
        assert frame.equals(found[path]), path
    leftovers = [p for p in results.rglob("*") if p.name.endswith((".part", ".work"))]
    assert not leftovers


def incomplete(root: Path) -> set[str]:
    """Outputs that the engine had not yet recorded as finished; it makes these again."""
    folder = root / ".snakemake" / "incomplete"
    names = set()
    for path in folder.rglob("*"):
        if path.is_file():
            parts = [part.removeprefix("@") for part in path.relative_to(folder).parts]
            with contextlib.suppress(ValueError):
                names.add(urlsafe_b64decode("".join(parts)).decode())
    return names
