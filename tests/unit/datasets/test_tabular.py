"""Readers of every format, and what they say of broken files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from advsets.datasets.tabular import read_label_file, read_rows
from advsets.errors import UserError

ROWS = [{"text": 'He said "no", then left.', "label": 1}, {"text": "Über\u2028uns", "label": 0}]
CSV = 'text,label\n"He said ""no"", then left.",1\nÜber\u2028uns,0\n'
TSV = 'text\tlabel\nHe said "no", then left.\t1\nÜber\u2028uns\t0\n'
JSONL = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in ROWS)


def texts(path: Path) -> list[object]:
    return read_rows(path, ["text", "label"]).columns["text"]


@pytest.mark.parametrize("gz", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", CSV), ("a.tsv", TSV), ("a.jsonl", JSONL), ("a.json", json.dumps(ROWS)), ("a.ndjson", JSONL)],
)
def test_formats_give_equal_rows(tmp_path: Path, name: str, content: str, gz: str) -> None:
    path = tmp_path / (name + gz)
    data = content.encode()
    path.write_bytes(gzip.compress(data) if gz else data)
    table = read_rows(path, ["text", "label"])
    assert table.columns["text"] == [r["text"] for r in ROWS]
    assert [int(v) for v in table.columns["label"]] == [1, 0]
    assert list(table.found) == ["text", "label"]


@pytest.mark.parametrize("gz", ["", ".gz"])
def test_parquet(tmp_path: Path, gz: str) -> None:
    frame = pl.DataFrame({"text": [r["text"] for r in ROWS], "label": [1, 0], "votes": [["a", "b"], None]})
    path = tmp_path / f"a.parquet{gz}"
    frame.write_parquet(tmp_path / "plain")
    data = (tmp_path / "plain").read_bytes()
    path.write_bytes(gzip.compress(data) if gz else data)
    table = read_rows(path, ["text", "votes", "absent"])
    assert table.columns == {"text": [r["text"] for r in ROWS], "votes": [["a", "b"], None]}
    assert table.n_rows == 2 and list(table.found) == ["text", "label", "votes"]


def test_byte_columns_are_text_where_all_are_utf8(tmp_path: Path) -> None:
    good, bad = ["Über", None, "b"], [b"a", b"\xff", b"c"]
    frame = pl.DataFrame({"text": good, "votes": [["ä"], None, []], "label": bad})
    frame = frame.with_columns(pl.col("text").cast(pl.Binary), pl.col("votes").cast(pl.List(pl.Binary)))
    frame.write_parquet(tmp_path / "a.parquet")
    columns = read_rows(tmp_path / "a.parquet", frame.columns).columns
    assert columns == {"text": good, "votes": [["ä"], None, []], "label": bad}


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl"])
def test_byte_order_mark_and_crlf(tmp_path: Path, name: str) -> None:
    content = {
        "a.csv": "text,label\r\none,1\r\n",
        "a.tsv": "text\tlabel\r\none\t1\r\n",
        "a.jsonl": '{"text": "one"}\r\n',
    }
    path = tmp_path / name
    path.write_bytes(b"\xef\xbb\xbf" + content[name].encode())
    assert texts(path) == ["one"]


def test_tsv_with_unbalanced_quotes_keeps_every_row(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text('text\tlabel\n"open\t1\nclose"\t0\n5" pipe\t1\n', encoding="utf-8")
    assert texts(path) == ['"open', 'close"', '5" pipe']


def test_csv_field_over_lines_and_the_line_of_the_next_row(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('text,label\n"two\nlines",1\n\nlast,0\n', encoding="utf-8")
    table = read_rows(path, ["text"])
    assert table.columns["text"] == ["two\nlines", "last"]
    assert table.at(0).endswith("line 2")


def test_jsonl_keys_may_be_absent_and_empty_lines_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n\n{"label": 1}\n{"text": "c", "label": 0}\n', encoding="utf-8")
    table = read_rows(path, ["text", "label"])
    assert table.columns == {"text": ["a", None, "c"], "label": [None, 1, 0]}
    assert table.at(1).endswith("line 3")


def test_label_file(tmp_path: Path) -> None:
    path = tmp_path / "labels.lst"
    path.write_bytes(b"0\r\n1\r\n1\r\n\r\n")
    assert read_label_file(path).columns["label"] == ["0", "1", "1"]


BROKEN = [
    ("a.csv", b"", "the file is empty"),
    ("a.csv", b"text,label\nfine,1\nragged,1,2\n", "line 3: found 3 fields; allowed: 2"),
    ("a.tsv", b"text\tlabel\nragged\n", "line 2: found 1 fields; allowed: 2"),
    ("a.csv", b'text,label\n"never closed,1\n', "line 2: not valid CSV"),
    ("a.csv", b"text,text\na,b\n", "column 'text' stands twice"),
    ("a.csv", b"text,label\ncaf\xe9,1\n", "byte 0xe9, which is not UTF-8"),
    ("a.jsonl", b'{"text": "a"}\n{"text": \n', "line 2: not valid JSON"),
    ("a.jsonl", b"[1, 2]\n", "line 1: found a list; allowed: an object"),
    ("a.json", b'"text"', "found a JSON str; allowed: an array"),
    ("a.json", b"[{}, 3]", "row 2: found a int"),
    ("a.jsonl.gz", b'{"text": "a"}\n', "ends in .gz but is not a gzip file"),
    ("a.jsonl.gz", gzip.compress(b'{"text": "a"}\n' * 99)[:-12], "cut off or damaged"),
    ("a.jsonl.gz", gzip.compress(b"{}\n")[:-8] + b"\0" * 8, "the gzip file is damaged (CRC check failed"),
    ("a.jsonl.gz", gzip.compress(b"{}\n") + b"garbage", "the gzip file is damaged (other bytes follow its end)"),
    ("a.json", b"[" * 100_000, "not valid JSON (brackets are nested too deep)"),
    ("a.jsonl", b'{"text": ' + b"[" * 100_000, "line 1: not valid JSON (brackets are nested too deep)"),
    ("a.jsonl", b'{"label": ' + b"9" * 5000 + b"}", "line 1: not valid JSON (Exceeds the limit"),
    ("a.parquet", b"PAR1 no", "not a readable Parquet file"),
    ("a.xlsx", b"", "ends in '.xlsx'; allowed: .jsonl"),
]


def test_a_parquet_column_that_stands_twice_or_is_damaged_is_told(tmp_path: Path) -> None:
    column = pa.array([f"text {i}" for i in range(2000)])
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table([column, column], names=["text", "text"]), path)
    with pytest.raises(UserError, match=r"a.parquet: column 'text' stands twice in the header; rename one of them"):
        read_rows(path, ["text"])
    pq.write_table(pa.table({"text": column}), path)
    content = bytearray(path.read_bytes())
    content[60:600] = bytes(255 - byte for byte in content[60:600])
    path.write_bytes(bytes(content))
    with pytest.raises(UserError, match=r"a.parquet: not a readable Parquet file \(.*\); write it again") as caught:
        read_rows(path, ["text"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "content", "message"), BROKEN)
def test_broken_files_are_told_in_one_line(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_rows(path, ["text", "label"])
    assert message in str(caught.value) and str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_missing_file_and_missing_column(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.csv: no such file"):
        read_rows(tmp_path / "none.csv", ["text"])
    path = tmp_path / "a.csv"
    path.write_text("sentence,gold\na,1\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"column 'text' \(text_a\) is missing; found: sentence, gold"):
        read_rows(path, ["text"]).column("text", "text_a")
