"""The output folder of a run: who may write to it, and what in it belongs to which run.

`<out>/.lock` is held while a run writes. `<out>/.rounds/` holds the rounds of an unfinished
run and, in `run.json`, what they are computed from. `<out>/settings.json` is written last and
records the size and hash of every table. A run is told from others by its key: see `describe_run`.
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
from typing import Any

from advsets import __version__
from advsets.aflite.members import Files, as_pairs
from advsets.aflite.nodes import RESULT_FILES
from advsets.aflite.settings import MEAN, FilterSettings
from advsets.errors import UserError, allowed
from advsets.io import check_file, read_json, readable, write_json

LABELS_FILE = "evaluation_labels.parquet"
TABLE_FILES = (*RESULT_FILES, LABELS_FILE)
SETTINGS_FILE = "settings.json"
OUTPUT_FILES = (*TABLE_FILES, SETTINGS_FILE)
ROUNDS_FOLDER = ".rounds"
RUN_FILE = "run.json"
_SETS = {"train": "training set", "evaluation": "evaluation set"}


@contextlib.contextmanager
def made_folder(out: Path) -> Iterator[None]:
    """Make `out` and the folders above it; those that were missing go again if nothing stands in them."""
    missing, folder = [], out
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    out.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            for folder in missing:
                folder.rmdir()


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


def describe_run(
    train: Files, evaluation: Files | None, settings: FilterSettings, seed: int, combination: str = MEAN
) -> dict[str, Any]:
    """What a run is computed from, with paths for reading and, as `key`, a hash of what decides the result.

    Of an ensemble, `inputs` has the further members as `also`, and the run its `combination`.
    """
    inputs, *also = [_describe_pair(*pair) for pair in as_pairs(train, evaluation)]
    content, *more = [_content(pair) for pair in (inputs, *also)]
    ensemble = {"also": more, "combination": combination} if also else None
    decides = [content, settings.to_json(), int(seed), __version__, *([ensemble] if ensemble else [])]
    return {
        "key": hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest(),
        "inputs": {**inputs, "also": also} if also else inputs,
        **({"combination": combination} if also else {}),
        "settings": settings.to_json(),
        "seed": int(seed),
        "version": __version__,
    }


def _describe_pair(train: Path, evaluation: Path | None) -> dict[str, dict[str, str] | None]:
    return {
        "train": _describe_input(train),
        "evaluation": None if evaluation is None else _describe_input(evaluation),
    }


def _content(pair: dict[str, Any]) -> dict[str, str | None]:
    """Hashes of a pair of inputs, as described; None for what is not there."""
    return {name: (pair.get(name) or {}).get("sha256") for name in _SETS}


def _describe_input(path: Path) -> dict[str, str]:
    """Path and content hash of an input file."""
    check_file(path, "a Parquet file of embeddings")
    return {"path": readable(path), "sha256": _sha256(path)}


def _sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def describe_tables(out: Path) -> dict[str, dict[str, Any]]:
    """Size in bytes and hash of every table of a run that ends."""
    return {name: {"size": (out / name).stat().st_size, "sha256": _sha256(out / name)} for name in TABLE_FILES}


def is_finished(out: Path, run: dict[str, Any]) -> bool:
    """Whether `out` holds all tables of this run, as they were written."""
    found = _record(out / SETTINGS_FILE)
    return found is not None and found["key"] == run["key"] and not _damaged(out, found)


def _damaged(out: Path, found: dict[str, Any]) -> list[str]:
    """Tables of a finished run that are missing or not as they were written."""
    whole = found.get("tables")
    tables = whole if isinstance(whole, dict) else {}
    return [name for name in TABLE_FILES if not _is_whole(out / name, tables.get(name))]


def _is_whole(path: Path, wanted: Any) -> bool:
    if not path.is_file() or not isinstance(wanted, dict):
        return False
    return path.stat().st_size == wanted.get("size") and _sha256(path) == wanted.get("sha256")


def check_free(out: Path, run: dict[str, Any], *, overwrite: bool) -> None:
    """Raise `UserError` if `out` holds another run, or files that no run has written."""
    unfinished, finished = _record(out / ROUNDS_FOLDER / RUN_FILE), _record(out / SETTINGS_FILE)
    if overwrite or (unfinished is not None and unfinished["key"] == run["key"]):
        return
    for what, found in (("a finished", finished), ("an unfinished", unfinished)):
        if found is not None and found["key"] != run["key"]:
            raise UserError(
                f"{out}: holds {what} run on other input or settings ({allowed(_differences(found, run), 3)});"
                " choose another --out, or pass --overwrite to replace that run"
            )
    foreign = [name for name in OUTPUT_FILES if os.path.lexists(out / name)]
    if foreign and finished is None and unfinished is None:
        raise UserError(
            f"{out / foreign[0]}: stands there already and is not of a run of `advsets filter`;"
            " choose another --out, move the file away, or pass --overwrite to replace it"
        )


def _record(path: Path) -> dict[str, Any] | None:
    """What run a `settings.json` or `run.json` is of; None if there is none, or it is not ours."""
    try:
        found = read_json(path)
    except (UserError, FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    is_ours = isinstance(found, dict) and isinstance(found.get("key"), str)
    is_ours = is_ours and all(isinstance(found.get(name), dict) for name in ("inputs", "settings"))
    return found if is_ours else None


def _differences(found: dict[str, Any], run: dict[str, Any]) -> list[str]:
    """What tells this run from the one found, each with the value here and there."""
    here, there = ([side["inputs"], *side["inputs"].get("also", [])] for side in (run, found))
    texts = [] if len(here) == len(there) else [f"{len(here)} adversaries here and {len(there)} there"]
    for number, (one, other) in enumerate(zip(map(_content, here), map(_content, there), strict=False), start=1):
        owner = f" of adversary {number}" if len(here) > 1 else ""
        texts += [f"other content of the {_SETS[name]}{owner}" for name in _SETS if one[name] != other[name]]
    settings = [
        (name, value, found["settings"].get(name))
        for name, value in run["settings"].items()
        if value != found["settings"].get(name)
    ]
    others = ("combination", "seed", "version") if len(here) == len(there) else ("seed", "version")
    settings += [(name, run.get(name), found.get(name)) for name in others if run.get(name) != found.get(name)]
    return texts + [f"{name} {value} here and {other} there" for name, value, other in settings]


@contextlib.contextmanager
def rounds_folder(out: Path, run: dict[str, Any], say: Callable[[str], None]) -> Iterator[Path]:
    """Folder of the rounds of this run, gone once the run has ended, or failed before its first round.

    Rounds of another run and files left half-written go.
    """
    rounds = out / ROUNDS_FOLDER
    _say_what_is_replaced(out, run, say)
    known = _record(rounds / RUN_FILE)
    if known is None or known["key"] != run["key"]:
        shutil.rmtree(rounds, ignore_errors=True)
    try:
        rounds.mkdir(exist_ok=True)
        for folder in (out, rounds):
            for leftover in folder.glob(".*.part"):
                leftover.unlink()
        write_json(rounds / RUN_FILE, run)
        yield rounds
    except BaseException:
        if last_round(out, run) == 0:
            shutil.rmtree(rounds, ignore_errors=True)
        raise
    shutil.rmtree(rounds)


def _say_what_is_replaced(out: Path, run: dict[str, Any], say: Callable[[str], None]) -> None:
    found = _record(out / SETTINGS_FILE)
    if found is not None and found["key"] == run["key"]:
        say(f"{out}: {allowed(_damaged(out, found))} missing or not as written; computing again")
    elif any(os.path.lexists(out / name) for name in OUTPUT_FILES):
        say(f"{out}: replacing what stands there")


def last_round(out: Path, run: dict[str, Any]) -> int:
    """Last whole round that an unfinished run has left in `out`; 0 if there is none."""
    rounds = out / ROUNDS_FOLDER
    known = _record(rounds / RUN_FILE)
    if known is None or known["key"] != run["key"]:
        return 0
    return max((int(path.stem) for path in rounds.glob("[0-9]*.json")), default=0)
