"""The hub, played by a server on 127.0.0.1, and local folders in its format.

The address of the hub is read when `huggingface_hub` is imported, so each case runs in a process of its own.
"""

from __future__ import annotations

import gzip
import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from advsets.datasets import sources
from advsets.errors import UserError
from advsets.io import read_json

COMMITS = {"old": "a" * 40, "new": "b" * 40}


def jsonl(stem: str, n: int) -> bytes:
    return "".join(json.dumps({"text": f"{stem}{i}", "label": i % 2}) + "\n" for i in range(n)).encode()


CONTENT = {
    commit: {"train.jsonl": jsonl(f"{name} train ", 20), "validation.jsonl": jsonl(f"{name} dev ", 6)}
    for name, commit in COMMITS.items()
}


class Hub(http.server.BaseHTTPRequestHandler):
    """The few addresses of the hub that loading a data set of plain files asks for."""

    commits_of_main: list[str] = []

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        kind, _, rest = path.removeprefix("/api").partition("/me/toy/")
        where, _, tail = rest.partition("/")
        if where == "revision":
            commit = Hub.commits_of_main.pop() if tail == "main" else tail
            files = CONTENT.get(commit)
            if files is not None:
                return self.send({"id": "me/toy", "sha": commit, "siblings": [{"rfilename": f} for f in files]})
        if where == "tree" and tail in CONTENT:
            files = CONTENT[tail]
            return self.send([{"type": "file", "path": f, "size": len(b), "oid": sha1(b)} for f, b in files.items()])
        commit, _, name = tail.partition("/")
        if where == "resolve" and name in CONTENT.get(commit, {}):
            body = CONTENT[commit][name]
            return self.reply(200, body, {"ETag": f'"{sha1(body)}"', "X-Repo-Commit": commit})
        self.reply(404, b"{}", {"X-Error-Code": "RevisionNotFound" if where == "revision" else "EntryNotFound"})

    do_HEAD = do_GET

    def send(self, value: Any) -> None:
        self.reply(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def reply(self, code: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


def sha1(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()


@pytest.fixture
def hub() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


FETCH = """
import json, sys
from pathlib import Path
from advsets.datasets.sources import fetch
from advsets.errors import user_errors
from advsets.registry import DatasetRow
row, folders = json.loads(sys.argv[1])
for folder in map(Path, folders):
    with user_errors():
        for name in ("source.json", "train.parquet", "evaluation.parquet"):
            (folder / name).unlink(missing_ok=True)
        fetch(DatasetRow(**row), folder)
"""


def fetch(row: Any, folders: list[Path], home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Fetch into each folder in turn, after deleting all but the record of an earlier fetch."""
    argument = json.dumps([vars(row), [str(folder) for folder in folders]])
    env = {**os.environ, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1", **environment}
    return subprocess.run([sys.executable, "-c", FETCH, argument], capture_output=True, text=True, env=env, timeout=100)


SOURCE = {"kind": "hub", "repo": "me/toy", "train": "train", "evaluation": "validation"}


def test_commit_is_resolved_recorded_and_kept_when_the_branch_moves(make_row: Any, hub: str, tmp_path: Path) -> None:
    row = make_row(SOURCE, labels={"0": "no", "1": "yes"})
    first, later = tmp_path / "first", tmp_path / "later"
    Hub.commits_of_main = [COMMITS["new"], COMMITS["old"]]
    done = fetch(row, [first, later, first], tmp_path / "home", HF_ENDPOINT=hub)
    assert done.returncode == 0, done.stderr
    assert read_json(first / "source.json")["commit"] == COMMITS["old"]
    assert read_json(later / "source.json")["commit"] == COMMITS["new"]
    wanted = {"train": ["text"], "evaluation": ["text"]}
    assert sources.read(row, first, wanted)["evaluation"].columns["text"] == [f"old dev {i}" for i in range(6)]
    assert sources.read(row, later, wanted)["train"].columns["text"] == [f"new train {i}" for i in range(20)]


@pytest.mark.parametrize(
    ("environment", "source", "message"),
    [
        ({"HF_ENDPOINT": "http://127.0.0.1:9"}, {}, "the hub is unreachable ([Errno 111] Connection refused); check"),
        ({"HF_HUB_OFFLINE": "1"}, {}, "HF_HUB_OFFLINE is set; unset it, or on a machine with network run `hf download"),
        ({}, {"revision": "gone"}, "cannot load me/toy at revision gone: 404 Client Error. Revision Not Found"),
        ({}, {"repo": "no such/id/at all"}, "neither a folder here nor a hub id"),
    ],
)
def test_failures_are_one_line_at_once(
    make_row: Any, hub: str, tmp_path: Path, environment: dict[str, str], source: dict[str, str], message: str
) -> None:
    row = make_row({**SOURCE, **source})
    done = fetch(row, [tmp_path / "raw"], tmp_path / "home", **{"HF_ENDPOINT": hub, **environment})
    assert done.returncode == 2
    assert done.stderr.startswith("advsets: error: data set toy: ") and done.stderr.count("\n") == 1
    assert message in done.stderr
    assert not (tmp_path / "raw" / "source.json").exists()


@pytest.mark.parametrize(
    ("name", "body", "reason"),
    [
        ("train.jsonl", jsonl("cut", 9)[:-9], "JSON parse error"),
        ("train.json", b"<html>log in</html>", "JSON parse error"),
        ("train.jsonl", b"", "a file is empty"),
        ("train.jsonl.gz", gzip.compress(jsonl("cut", 9))[:-12], "Compressed file ended"),
        ("train.zip", b"PK\x03\x04half", "File is not a zip file"),
        ("train.parquet", b"PAR1 half", "Parquet magic bytes not found"),
    ],
)
def test_damaged_files_are_told_and_nothing_is_kept(
    make_row: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, body: bytes, reason: str
) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / name).write_bytes(body)
    row = make_row({"kind": "hub", "repo": str(tmp_path / "toy"), "train": "train"})
    with pytest.raises(UserError) as caught:
        sources.fetch(row, tmp_path / "raw")
    assert reason in str(caught.value) and "where files are damaged mend its files" in str(caught.value)
    assert list((tmp_path / "raw").iterdir()) == []


def test_local_folder_in_the_hubs_format(
    make_row: Any, prepare: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "toy"
    folder.mkdir()
    for name, body in CONTENT[COMMITS["old"]].items():
        (folder / name).write_bytes(body)
    source = {**SOURCE, "repo": str(folder)}
    labels = {"0": "no", "1": "yes"}
    tables = prepare(make_row(source, labels=labels))
    assert (tables["train"].height, tables["evaluation"].height) == (20, 6)
    record = read_json(tmp_path / "raw" / "source.json")
    assert len(record["content_sha256"]) == 64 and set(record["libraries"]) == {"datasets", "huggingface_hub"}
    with pytest.raises(UserError, match="splits nowhere, validation: .*correct `source`"):
        sources.fetch(make_row({**source, "train": "nowhere"}), tmp_path / "other")
