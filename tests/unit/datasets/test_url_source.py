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


HTML = b"\n<!DOCTYPE html><html><title>Log in</title></html>"
TAR = tarred({name: content * 40 for name, content in FILES.items()})
BAD_CRC = ZIP.replace(b"piqa/dev-labels.lst", b"piqa/dev-labels.lst", 1)[:150] + b"\0\0" + ZIP[152:]
CUT_GZIP = gzip.compress(FILES["piqa/train.jsonl"])[:-20]
UNREADABLE = [
    ("p.zip", ZIP[: len(ZIP) // 2], "bytes that are no whole zip or tar archive (cut off or damaged)"),
    ("p.zip", b"", "0 bytes"),
    ("p.zip", HTML, "an HTML page (of a login, a proxy or an error)"),
    ("p.zip", b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer in place of the file"),
    ("p.zip", BAD_CRC, "an archive whose 'piqa/train.jsonl' cannot be read to its end"),
    ("p.tar.gz", TAR[: len(TAR) // 2], "an archive whose 'piqa/train.jsonl' cannot be read to its end"),
    ("p.tar.gz", TAR[:30], "30 bytes that are no whole zip or tar archive"),
    ("p", ZIP[:-30], "bytes that are no whole zip or tar archive"),
    ("folder/train.jsonl", HTML, "an HTML page"),
    ("folder/train.jsonl", FILES["piqa/train.jsonl"][:-9], "no readable table (train.jsonl, line 20: not valid JSON"),
    ("folder/train.jsonl.gz", CUT_GZIP, "no readable table (train.jsonl.gz: the gzip file is cut off"),
    ("folder/train.parquet", b"PAR1 half", "no readable table (train.parquet: not a readable Parquet file"),
]


@pytest.mark.parametrize(("name", "content", "message"), UNREADABLE)
def test_what_cannot_be_read_is_not_kept_and_is_asked_for_again(
    make_row: Any, site: Any, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    in_folder = name.startswith("folder/")
    url = f"{site.url}/folder/" if in_folder else f"{site.url}/{name}"
    members = {"train": name.removeprefix("folder/")} if in_folder else MEMBERS
    row = make_row({"kind": "url", "url": url, **members}, **CHOICE)
    site.files[f"/{name}"], site.tells_length = content, False
    raw = tmp_path / "raw"
    with pytest.raises(UserError) as caught:
        sources.fetch(row, raw)
    text = str(caught.value)
    assert text.startswith(f"data set toy: {site.url}/{name}: found ") and message in text and "\n" not in text
    assert "nothing is kept" in text and "run again, or put" in text and ".part" not in text
    assert list(raw.iterdir()) == []
    path = raw / name.removeprefix("folder/")
    path.write_bytes(content)
    with pytest.raises(UserError, match="delete the file and run again"):
        sources.fetch(row, raw)
    path.unlink()
    whole = {".gz": TAR, ".zip": ZIP, "": ZIP, ".jsonl": FILES["piqa/train.jsonl"]}.get(Path(name).suffix)
    if whole is not None and not name.endswith(".jsonl.gz"):
        site.files[f"/{name}"] = whole
        sources.fetch(row, raw)
        assert path.read_bytes() == whole and (raw / "source.json").is_file()


def test_a_length_that_is_not_told_is_warned_of(make_row: Any, site: Any, tmp_path: Path, capsys: Any) -> None:
    site.files["/p.zip"] = ZIP
    source = {"kind": "url", "url": f"{site.url}/p.zip", **MEMBERS}
    sources.fetch(make_row(source, **CHOICE), tmp_path / "a")
    site.tells_length = False
    sources.fetch(make_row({**source, "sha256": sha(ZIP)}, **CHOICE), tmp_path / "b")
    assert "tells no length" not in capsys.readouterr().err
    sources.fetch(make_row(source, **CHOICE), tmp_path / "c")
    assert "p.zip: the server tells no length" in capsys.readouterr().err


def test_checksums_in_capitals_and_of_other_files(make_row: Any, site: Any, tmp_path: Path) -> None:
    site.files = {"/p.zip": ZIP, "/d/train.jsonl": FILES["piqa/train.jsonl"]}
    source = {"kind": "url", "url": f"{site.url}/p.zip", **MEMBERS, "sha256": sha(ZIP).upper()}
    sources.fetch(make_row(source, **CHOICE), tmp_path / "a")
    folder = {"kind": "url", "url": f"{site.url}/d/", "train": "train.jsonl"}
    right = {"train.jsonl": sha(site.files["/d/train.jsonl"]).upper()}
    sources.fetch(make_row({**folder, "sha256": right}, **CHOICE), tmp_path / "b")
    with pytest.raises(UserError, match="source.sha256: found a checksum of 'dev.jsonl'; allowed: .* train.jsonl; rem"):
        sources.fetch(make_row({**folder, "sha256": {**right, "dev.jsonl": "0" * 64}}, **CHOICE), tmp_path / "c")


RECORDS = [
    b'{"kind": "u',
    b"",
    b"[1]",
    b'{"a": 1}',
    b"\xff\xfe\x00",
    b'{"requested": {}, "files": [{"name": 3}]}',
    b"[" * 100_000,
]


@pytest.mark.parametrize("name", [".fetched.json", "source.json"])
@pytest.mark.parametrize("content", RECORDS)
def test_a_damaged_record_is_to_be_deleted(make_row: Any, site: Any, tmp_path: Path, name: str, content: bytes) -> None:
    site.files["/p.zip"] = ZIP
    row = make_row({"kind": "url", "url": f"{site.url}/p.zip", **MEMBERS}, **CHOICE)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        sources.fetch(row, tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / name}: ") and "delete this file and run again" in str(
        caught.value
    )
    (tmp_path / name).unlink()
    sources.fetch(row, tmp_path)


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
        ({"url": "cut.zip"}, "cut.zip: found 200 bytes that are no whole zip or tar archive (cut off or damaged); not"),
        ({"url": "[::1/p.zip"}, "source.url: http://[::1/p.zip is no address (Invalid IPv6 URL); allowed: http://"),
        ({"url": "[::1/folder/"}, "source.url: http://[::1/folder/ is no address"),
        ({"url": "host:99999/p.zip"}, "is no address (Port out of range"),
        ({"url": "empty.zip"}, "holds no 'piqa/train.jsonl'; found: no files;"),
        ({"url": "ftp.invalid"}, "is no address"),
        ({"sha256": "0" * 64}, "sha256 is"),
        ({"sha256": {"p.zip": "0" * 64}}, "source.sha256: allowed: one checksum for a file"),
    ],
)
def test_bad_sources(make_row: Any, site: Any, tmp_path: Path, change: dict[str, str], message: str) -> None:
    site.files = {"/p.zip": ZIP, "/plain.jsonl": FILES["piqa/train.jsonl"], "/cut.zip": ZIP[:200]}
    site.files["/empty.zip"] = zipped({})
    source = {"kind": "url", "url": f"{site.url}/p.zip", **MEMBERS, **change}
    if "url" in change:
        root = "" if change["url"] == "ftp.invalid" else "http://" if ":" in change["url"] else f"{site.url}/"
        source["url"] = root + change["url"]
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
    dev.append({**SNLI, "gold_label": "contradiction", "sentence2": "z"})
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
