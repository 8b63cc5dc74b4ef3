"""The output folder of a run: who may write to it, and what in it belongs to which run.

`<out>/.lock` is held while a run writes. `<out>/.rounds/` holds the rounds of an unfinished
run and the key of what they were computed from. `<out>/settings.json` is written last.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from advsets import __version__
from advsets.aflite.nodes import RESULT_FILES
from advsets.aflite.settings import FilterSettings
from advsets.errors import UserError
from advsets.io import read_json

LABELS_FILE = "evaluation_labels.parquet"
SETTINGS_FILE = "settings.json"
OUTPUT_FILES = (*RESULT_FILES, LABELS_FILE, SETTINGS_FILE)


@contextlib.contextmanager
def lock(out: Path) -> Iterator[None]:
    """Hold `<out>/.lock`, or raise `UserError` if another process does; the kernel frees it at a kill."""
    path = out / ".lock"
    while True:
        handle = path.open("w")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.close()
            raise UserError(
                f"{out}: another run is writing to this folder; wait until it has ended, or give another --out"
            ) from None
        if path.exists() and os.path.samestat(os.fstat(handle.fileno()), path.stat()):
            break
        handle.close()  # the run that held it has ended and removed the file in between
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        handle.close()


def describe_input(path: Path) -> dict[str, str]:
    """Path and content hash of an input file."""
    if not path.is_file():
        raise UserError(f"{path}: no such file; give the path of a Parquet file of embeddings")
    with path.open("rb") as handle:
        return {"path": str(path), "sha256": hashlib.file_digest(handle, "sha256").hexdigest()}


def run_key(inputs: dict[str, dict[str, str] | None], settings: FilterSettings, seed: int) -> str:
    """Hash of what decides the result: content of the inputs, settings, seed and our version."""
    content = {name: None if value is None else value["sha256"] for name, value in inputs.items()}
    text = json.dumps([content, settings.to_json(), int(seed), __version__], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def is_finished(out: Path, key: str) -> bool:
    """Whether `out` holds all results of the run with this key."""
    if not all((out / name).is_file() for name in OUTPUT_FILES):
        return False
    try:
        return bool(read_json(out / SETTINGS_FILE).get("key") == key)
    except UserError:
        return False


def rounds_folder(out: Path, key: str, say: Callable[[str], None]) -> Path:
    """Folder of the rounds of this key; rounds of another key and files left half-written go."""
    rounds = out / ".rounds"
    mark = rounds / "key"
    known = mark.read_text(encoding="utf-8") if mark.is_file() else None
    if known != key:
        if known is not None or (out / SETTINGS_FILE).is_file():
            say(f"{out}: holds a run on other input or settings; starting afresh")
        shutil.rmtree(rounds, ignore_errors=True)
        rounds.mkdir()
        mark.write_text(key, encoding="utf-8")
    for folder in (out, rounds):
        for leftover in folder.glob(".*.part"):
            leftover.unlink()
    return rounds
