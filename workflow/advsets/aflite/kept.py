"""Finished nodes of an unfinished chain, out of reach of an engine that deletes them.

On a cluster the nodes of a chain are one submission. If that is killed, Snakemake deletes the files
of all its nodes, also of those that had ended, and makes every node again. So each node's files have
second names (hard links) in `nodes.work` beside `nodes`, with a key of all that decided them, until
the chain is collected; a node asked for again with the same key is copied from there.

Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from advsets.io import atomic_path, write_text

SUFFIXES = ("state.parquet", "scores.parquet", "json")
"""Files of a node; the record comes last, here as in `advsets.aflite.chain`."""


def key_of(read: Sequence[Path], watched: Sequence[Path], *values: object) -> str:
    """Key of a node: the bytes of the files `read`, size and time of the large ones `watched`, and `values`."""
    digest = blake2b(digest_size=16)
    for path in read:
        digest.update(blake2b(path.read_bytes()).digest())
    statuses = [path.stat() for path in watched]
    described = [[status.st_size, status.st_mtime_ns] for status in statuses], list(values)
    digest.update(json.dumps(described).encode())
    return digest.hexdigest()


def keep(node: Path, key: str) -> None:
    """Give the files of a node that is whole their second names. A disk that fails costs only this help."""
    folder = _folder(node)
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        _key_file(node).unlink(missing_ok=True)
        for suffix in SUFFIXES:
            name = f"{node.name}.{suffix}"
            (folder / name).unlink(missing_ok=True)
            _link(node.with_name(name), folder / name)
        write_text(_key_file(node), key)


def take(node: Path, key: str) -> bool:
    """Copy a node that was kept under `key` into place; False if there is none.

    Copied, not linked: a link would be older than its inputs.
    """
    try:
        if _key_file(node).read_text(encoding="utf-8") != key:
            return False
    except FileNotFoundError:
        return False
    for suffix in SUFFIXES:
        name = f"{node.name}.{suffix}"
        with atomic_path(node.with_name(name)) as temporary:
            shutil.copyfile(_folder(node) / name, temporary)
    return True


def forget(nodes: Path) -> None:
    """Remove what was kept of the chain whose nodes lie in the folder `nodes`."""
    shutil.rmtree(nodes.with_name(f"{nodes.name}.work"), ignore_errors=True)


def _folder(node: Path) -> Path:
    return node.parent.with_name(f"{node.parent.name}.work")


def _key_file(node: Path) -> Path:
    return _folder(node) / f"{node.name}.key"


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
