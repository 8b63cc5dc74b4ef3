"""Rows of the data sets table, and servers on 127.0.0.1 that stand for the network."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from advsets.datasets import prepare as preparing
from advsets.datasets import sources
from advsets.registry import DatasetRow
from advsets.schemas import validate

SETTINGS: dict[str, Any] = {
    "seed": 0,
    "adversary_fraction": 0.5,
    "drop_train_duplicates": True,
    "max_train": None,
    "max_evaluation": None,
}


@pytest.fixture
def make_row() -> Callable[..., DatasetRow]:
    """Row as a user writes it, validated and filled."""

    def make(source: dict[str, Any], **keys: Any) -> DatasetRow:
        row = {
            "title": "Toy",
            "task": "sequence_classification",
            "label_order": ["no", "yes"],
            **keys,
            "source": source,
        }
        return DatasetRow.from_config("toy", validate({"toy": row}, "datasets", "table")["toy"])

    return make


@pytest.fixture
def prepare(tmp_path: Path) -> Callable[..., dict[str, pl.DataFrame]]:
    """Fetch and prepare a row; returns the three tables by name."""

    def run(row: DatasetRow, **settings: Any) -> dict[str, pl.DataFrame]:
        raw, out = tmp_path / "raw", tmp_path / "out"
        sources.fetch(row, raw)
        preparing.prepare(row, raw, out, **{**SETTINGS, **settings})
        return {name: pl.read_parquet(out / f"{name}.parquet") for name in ("train", "evaluation", "dropped")}

    return run


@pytest.fixture
def write_jsonl(tmp_path: Path) -> Callable[..., str]:
    """Write records, one a line; returns the path."""

    def write(name: str, records: list[Any]) -> str:
        path = tmp_path / name
        path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
        return str(path)

    return write


class Site:
    """A web site with the given files.

    `cut` ends each transfer after that many bytes, with `stall` it halts there; `tells_length` is whether
    the server says how long a file is.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files, self.cut, self.requests = files, None, []
        self.tells_length = True
        self.stall = threading.Event()
        self.resumed = threading.Event()
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.requests.append(self.path)
                body = site.files.get(self.path)
                self.send_response(404 if body is None else 200)
                if site.tells_length:
                    self.send_header("Content-Length", str(len(body or b"")))
                self.send_header("Content-Type", "text/html" if self.path.endswith("/") else "application/octet-stream")
                self.end_headers()
                self.wfile.write((body or b"")[: site.cut])
                self.wfile.flush()
                if site.stall.is_set():
                    site.resumed.wait(30)
                self.close_connection = True

            def log_message(self, *args: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    files: dict[str, bytes]
    cut: int | None
    tells_length: bool
    requests: list[str]


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site({})
    yield made
    made.server.shutdown()
    made.server.server_close()
