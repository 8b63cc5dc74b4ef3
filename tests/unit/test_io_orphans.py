"""Temporary files of killed writers do not pile up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from advsets.io import atomic_path


def test_next_writer_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    code = (
        "import os, sys; from advsets.io import atomic_path\n"
        "with atomic_path(sys.argv[1]) as temporary:\n"
        "    temporary.write_text('half'); os.kill(os.getpid(), 9)"
    )
    target = tmp_path / "table.parquet"
    subprocess.run([sys.executable, "-c", code, str(target)], check=False)
    (left,) = tmp_path.iterdir()
    assert left.name.endswith(".part") and not target.exists()
    with atomic_path(target) as temporary, atomic_path(target) as other:
        assert not left.exists()
        assert temporary.exists() and other.exists()
    assert [p.name for p in tmp_path.iterdir()] == ["table.parquet"]
