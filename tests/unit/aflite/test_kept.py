"""Nodes of a chain whose submission was killed are not computed again, unless something they hang on changed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from advsets.aflite import kept, rounds
from advsets.aflite.chain import collect, node_file, run_node, start_node

SETTINGS = {"n_partitions": 8, "slice_size": 0.2, "max_rounds": 3, "threshold": 0.6}


class Chain:
    """Chain of three nodes that an engine may delete, and the rounds computed so far."""

    def __init__(self, folder: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.files, self.n_computed = folder, files, 0
        self.nodes = [folder / "nodes" / f"{n:03d}" for n in range(4)]
        compute = rounds.run_rounds

        def counted(*arguments: Any, **options: Any) -> Any:
            self.n_computed += 1
            return compute(*arguments, **options)

        monkeypatch.setattr(rounds, "run_rounds", counted)

    def run(self, n_nodes: int = 3, code: str | None = "code") -> None:
        start_node(*self.files, self.nodes[0], settings=SETTINGS, seed=7)
        for previous, node in zip(self.nodes[:n_nodes], self.nodes[1 : n_nodes + 1], strict=True):
            run_node(previous, *self.files, node, n_rounds=1, threads=1, device="cpu", code=code)

    def delete(self) -> dict[str, bytes]:
        """Do what the engine does to a group that failed; what the files held."""
        held = {path.name: path.read_bytes() for path in (self.folder / "nodes").iterdir()}
        shutil.rmtree(self.folder / "nodes")
        return held


@pytest.fixture
def chain(tmp_path: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Chain:
    return Chain(tmp_path / "chain", files, monkeypatch)


def test_nodes_of_a_killed_chain_are_taken(chain: Chain, capsys: pytest.CaptureFixture[str]) -> None:
    chain.run(2)
    held = chain.delete()
    chain.run()
    assert chain.n_computed == 3  # two before the kill, one after it
    assert capsys.readouterr().err.count("kept from an attempt that did not end") == 2
    for name, content in held.items():
        assert (chain.folder / "nodes" / name).read_bytes() == content
    taken = node_file(chain.nodes[2], "state.parquet")
    assert taken.stat().st_mtime_ns > node_file(chain.nodes[0], "json").stat().st_mtime_ns
    collect(chain.nodes, chain.folder)
    assert sorted(path.name for path in chain.folder.iterdir() if path.is_dir()) == ["nodes"]


def test_without_a_kill_nothing_is_taken_and_without_code_nothing_is_kept(chain: Chain) -> None:
    chain.run(code=None)
    assert chain.n_computed == 3 and not (chain.folder / "nodes.work").exists()


def test_other_code_is_computed_anew(chain: Chain) -> None:
    chain.run()
    chain.delete()
    chain.run(code="other")
    assert chain.n_computed == 6


def test_other_embeddings_are_computed_anew(chain: Chain) -> None:
    chain.run()
    chain.delete()
    path = chain.files[1]
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 1))
    chain.run()
    assert chain.n_computed == 6


def test_a_node_half_kept_is_not_taken(chain: Chain) -> None:
    chain.run(1)
    chain.delete()
    (chain.folder / "nodes.work" / "001.key").unlink()
    chain.run(1)
    assert chain.n_computed == 2


def test_a_disk_without_hard_links_keeps_copies(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(kept.os, "link", refuse)
    chain.run(1)
    chain.delete()
    chain.run(1)
    assert chain.n_computed == 1
