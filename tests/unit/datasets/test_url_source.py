"""Archives and files by address, from a server on 127.0.0.1."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from advsets.datasets import sources
from advsets.datasets.archives import extract_member
from advsets.errors import UserError
from advsets.io import read_json

TRAIN = [{"goal": f"g{i}", "sol1": f"a{i}", "sol2": f"b{i}"} for i in range(20)]
DEV = [{"goal": f"h{i}", "sol1": f"a{i}", "sol2": f"b{i}"} for i in range(6)]


def jsonl(rows: list[Any]) -> bytes:
    return "".join(json.dumps(r) + "\n" for r in rows).encode()


FILES = {
    "piqa/train.jsonl": jsonl(TRAIN),
    "piqa/train-labels.lst": b"0\n1\n" * 10,
    "piqa/dev.jsonl": jsonl(DEV),
    "piqa/dev-labels.lst": b"1\n" * 6,
    "piqa/unwanted.txt": b"not needed",
}
MEMBERS = {
    "train": "piqa/train.jsonl",
    "train_labels": "piqa/train-labels.lst",
    "evaluation": "piqa/dev.jsonl",
    "evaluation_labels": "piqa/dev-labels.lst",
}
CHOICE = {"task": "multiple_choice", "label_order": [], "columns": {"text_a": "goal", "candidates": ["sol1", "sol2"]}}


def zipped(files: dict[str, bytes] = FILES) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def tarred(files: dict[str, bytes] = FILES) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(f"./{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


ZIP = zipped()


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(("name", "content"), [("p.zip", ZIP), ("p.tar.gz", tarred())])
def test_members_of_an_archive(
    make_row: Any, prepare: Any, site: Any, tmp_path: Path, name: str, content: bytes
) -> None:
    site.files[f"/{name}"] = content
    row = make_row({"kind": "url", "url": f"{site.url}/{name}", "sha256": sha(content), **MEMBERS}, **CHOICE)
    tables = prepare(row)
    assert tables["train"].height == 20 and set(tables["evaluation"]["label"]) == {"1"}
    assert not (tmp_path / "raw/piqa/unwanted.txt").exists()
    record = read_json(tmp_path / "raw/source.json")
    assert {f["name"]: f["sha256"] for f in record["files"]} == {
        name: sha(content),
        **{m: sha(FILES[m]) for m in MEMBERS.values()},
    }
    sources.fetch(row, tmp_path / "raw")
    assert len(site.requests) == 1


def test_file_address_and_compressed_file(make_row: Any, prepare: Any, tmp_path: Path) -> None:
    rows = [{"text": f"t{i}", "label": ["no", "yes"][i % 2]} for i in range(40)]
    (tmp_path / "my rows.jsonl.gz").write_bytes(gzip.compress(jsonl(rows)))
    source = {"kind": "url", "url": f"file://{tmp_path}/my%20rows.jsonl.gz", "train": "my rows.jsonl.gz"}
    tables = prepare(make_row(source, evaluation_fraction=0.4))
    assert tables["train"].height + tables["evaluation"].height == 40


def test_folder_of_files(make_row: Any, prepare: Any, site: Any, tmp_path: Path) -> None:
    site.files = {
        "/data/train.csv": b"text,label\na,no\nb,yes\nc,no\nd,yes\ne,no\nf,yes\n",
        "/data/dev.csv": b"text,label\nx,no\ny,yes\n",
    }
    source = {"kind": "url", "url": f"{site.url}/data/", "train": "train.csv", "evaluation": "dev.csv"}
    assert prepare(make_row(source))["evaluation"].height == 2
    wrong = make_row({**source, "sha256": {"dev.csv": "0" * 64}})
    with pytest.raises(UserError, match="dev.csv: sha256 is .*; allowed: 0000"):
        sources.fetch(wrong, tmp_path / "other")


def test_cut_connection_leaves_no_file_and_a_second_call_completes(make_row: Any, site: Any, tmp_path: Path) -> None:
    site.files["/p.zip"] = ZIP
    row = make_row({"kind": "url", "url": f"{site.url}/p.zip", **MEMBERS}, **CHOICE)
    site.cut = 100
    with pytest.raises(UserError, match=f"the connection was cut after 100 of {len(ZIP)} bytes"):
        sources.fetch(row, tmp_path / "raw")
    assert list((tmp_path / "raw").iterdir()) == []
    site.cut = None
    sources.fetch(row, tmp_path / "raw")
    assert (tmp_path / "raw/p.zip").read_bytes() == ZIP


def test_killed_download_leaves_no_file_and_a_second_call_completes(make_row: Any, site: Any, tmp_path: Path) -> None:
    site.files["/p.zip"] = ZIP
    site.cut = 100
    site.stall.set()
    row = make_row({"kind": "url", "url": f"{site.url}/p.zip", **MEMBERS}, **CHOICE)
    raw = tmp_path / "raw"
    code = (
        "import json, sys\nfrom pathlib import Path\nfrom advsets.datasets.sources import fetch\n"
        "from advsets.registry import DatasetRow\nfetch(DatasetRow(**json.loads(sys.argv[1])), Path(sys.argv[2]))"
    )
    child = subprocess.Popen([sys.executable, "-c", code, json.dumps(vars(row)), str(raw)])
    deadline = time.monotonic() + 30
    while not site.requests and time.monotonic() < deadline:
        time.sleep(0.02)
    assert site.requests, "the download never began"
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert all(p.name.endswith(".part") for p in raw.iterdir())
    site.cut = None
    site.stall.clear()
    site.resumed.set()
    sources.fetch(row, raw)
    assert (raw / "p.zip").read_bytes() == ZIP and not list(raw.rglob("*.part"))


def test_first_checksum_is_kept(make_row: Any, site: Any, tmp_path: Path) -> None:
    site.files["/p.zip"] = ZIP
    row = make_row({"kind": "url", "url": f"{site.url}/p.zip", **MEMBERS}, **CHOICE)
    sources.fetch(row, tmp_path)
    for name in ("p.zip", "source.json"):
        (tmp_path / name).unlink()
    site.files["/p.zip"] = zipped({**FILES, "piqa/dev-labels.lst": b"0\n" * 6})
    with pytest.raises(UserError, match=f"allowed: {sha(ZIP)}; the file there has changed"):
        sources.fetch(row, tmp_path)
    assert not (tmp_path / "source.json").exists() and not (tmp_path / "p.zip").exists()
    (tmp_path / "p.zip").write_bytes(ZIP)
    sources.fetch(row, tmp_path)
    assert read_json(tmp_path / "source.json")["files"][0]["sha256"] == sha(ZIP)


def test_unreachable_address_says_what_to_put_where(make_row: Any, site: Any, tmp_path: Path) -> None:
    row = make_row({"kind": "url", "url": f"{site.url}/none.zip", "sha256": sha(ZIP), **MEMBERS}, **CHOICE)
    with pytest.raises(UserError) as caught:
        sources.fetch(row, tmp_path)
    for part in (f"{site.url}/none.zip", "Not Found", f"put none.zip (sha256 {sha(ZIP)})", str(tmp_path)):
        assert part in str(caught.value)
    refused = make_row({"kind": "url", "url": "http://127.0.0.1:9/none.zip", **MEMBERS}, **CHOICE)
    with pytest.raises(UserError, match="cannot fetch http://127.0.0.1:9/none.zip .*refused"):
        sources.fetch(refused, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train": "../outside.jsonl"}, "allowed: a path inside the archive"),
        ({"train": "/etc/passwd"}, "allowed: a path inside the archive"),
        ({"train": "piqa/absent.jsonl"}, "holds no 'piqa/absent.jsonl'; found: piqa/dev-labels.lst"),
        ({"url": "plain.jsonl"}, "plain.jsonl is one file, no archive"),
        ({"url": "cut.zip"}, "cut.zip is one file, no archive"),
        ({"url": "ftp.invalid"}, "is no address"),
        ({"sha256": "0" * 64}, "sha256 is"),
        ({"sha256": {"p.zip": "0" * 64}}, "source.sha256: allowed: one checksum for a file"),
    ],
)
def test_bad_sources(make_row: Any, site: Any, tmp_path: Path, change: dict[str, str], message: str) -> None:
    site.files = {"/p.zip": ZIP, "/plain.jsonl": FILES["piqa/train.jsonl"], "/cut.zip": ZIP[:200]}
    source = {"kind": "url", "url": f"{site.url}/p.zip", **MEMBERS, **change}
    if "url" in change:
        source["url"] = f"{site.url}/{change['url']}" if change["url"] != "ftp.invalid" else "ftp.invalid"
    with pytest.raises(UserError) as caught:
        sources.fetch(make_row(source, **CHOICE), tmp_path)
    assert message in str(caught.value)
    assert not (tmp_path / "source.json").exists()


def test_links_in_a_tar_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        info = tarfile.TarInfo("train.jsonl")
        info.type, info.linkname = tarfile.SYMTYPE, str(tmp_path / "secret")
        archive.addfile(info)
    with pytest.raises(UserError, match="holds no 'train.jsonl'"):
        extract_member(tmp_path / "a.tar", "train.jsonl", tmp_path / "out" / "train.jsonl")


def test_damaged_member_is_told_and_not_written(tmp_path: Path) -> None:
    data = bytearray(zipped({"a.jsonl": b"x" * 50_000 + b"y"}))
    data[45] ^= 0xFF
    (tmp_path / "a.zip").write_bytes(bytes(data))
    with pytest.raises(UserError, match="the archive is damaged"):
        extract_member(tmp_path / "a.zip", "a.jsonl", tmp_path / "a.jsonl")
    assert not (tmp_path / "a.jsonl").exists()


SNLI = {
    "gold_label": "neutral",
    "annotator_labels": ["neutral", "entailment", "neutral", "neutral", "neutral"],
    "sentence1": "A person stands.",
    "sentence2": "A tall person stands.",
    "captionID": "1.jpg#0",
    "pairID": "1.jpg#0r1n",
    "sentence1_binary_parse": "( ( A person ) ( stands . ) )",
}


def test_nli_rows_as_their_authors_wrote_them(make_row: Any, prepare: Any, site: Any) -> None:
    names = ("entailment", "neutral", "contradiction")
    train = [
        {
            **SNLI,
            "gold_label": names[i % 3],
            "annotator_labels": [names[i % 3]],
            "sentence2": f"s{i}",
            "captionID": f"c{i // 3}",
        }
        for i in range(30)
    ]
    dev = [SNLI, {**SNLI, "gold_label": "-", "sentence2": "x"}, {**SNLI, "gold_label": "entailment", "sentence2": "y"}]
    site.files["/snli_1.0.zip"] = zipped(
        {"snli_1.0/snli_1.0_train.jsonl": jsonl(train), "snli_1.0/snli_1.0_dev.jsonl": jsonl(dev)}
    )
    source = {
        "kind": "url",
        "url": f"{site.url}/snli_1.0.zip",
        "train": "snli_1.0/snli_1.0_train.jsonl",
        "evaluation": "snli_1.0/snli_1.0_dev.jsonl",
    }
    columns = {
        "source_id": "pairID",
        "text_a": "sentence1",
        "text_b": "sentence2",
        "label": "gold_label",
        "group_id": "captionID",
        "annotator_labels": "annotator_labels",
    }
    tables = prepare(make_row(source, label_order=list(names), columns=columns))
    first = tables["evaluation"].filter(tables["evaluation"]["label"] == "neutral").row(0, named=True)
    assert first["label_count"] == [1, 4, 0] and first["agreement"] == 0.8 and first["group_id"] == "1.jpg#0"
    assert first["source_id"] == "1.jpg#0r1n" and first["text_b"] == "A tall person stands."
    assert ("validation", "no gold label", 1, True) in tables["dropped"].rows()
