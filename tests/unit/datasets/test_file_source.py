"""Local files and saved folders: recorded, not copied, and checked for changes."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from advsets.datasets import sources
from advsets.errors import UserError
from advsets.io import read_json

ROWS = [{"text": f"t{i}", "label": ["no", "yes"][i % 2]} for i in range(30)]


def test_record_holds_path_size_and_checksum_and_nothing_is_copied(
    make_row: Any, write_jsonl: Any, tmp_path: Path
) -> None:
    path = write_jsonl("a.jsonl", ROWS)
    raw = tmp_path / "raw"
    sources.fetch(make_row({"kind": "file", "train": path}), raw)
    content = Path(path).read_bytes()
    entry = read_json(raw / "source.json")["files"][0]
    assert entry == {"key": "train", "name": path, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    assert [p.name for p in raw.iterdir() if not p.name.startswith(".")] == ["source.json"]


def test_variables_are_expanded(
    make_row: Any, write_jsonl: Any, prepare: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_jsonl("a.jsonl", ROWS)
    monkeypatch.setenv("MY_DATA", str(tmp_path))
    source = {"kind": "file", "train": "${MY_DATA}/a.jsonl"}
    assert prepare(make_row(source, evaluation_fraction=0.4))["train"].height > 0
    monkeypatch.delenv("MY_DATA")
    with pytest.raises(UserError, match="environment variable MY_DATA is not set"):
        sources.fetch(make_row(source), tmp_path / "other")


def test_changed_content_is_told(make_row: Any, write_jsonl: Any, prepare: Any, tmp_path: Path) -> None:
    from advsets.datasets.prepare import prepare as prepare_only
    from advsets.datasets.sources import fetch

    row = make_row({"kind": "file", "train": write_jsonl("a.jsonl", ROWS)}, evaluation_fraction=0.4)
    raw = tmp_path / "raw"
    settings = {"seed": 0, "adversary_fraction": 0.5, "drop_train_duplicates": True, "max_train": None}
    fetch(row, raw)
    write_jsonl("a.jsonl", ROWS[:-1])
    with pytest.raises(UserError, match=r"a\.jsonl: the content has changed since it was recorded.*source\.json"):
        prepare_only(row, raw, tmp_path / "out", max_evaluation=None, **settings)
    fetch(row, raw)
    prepare_only(row, raw, tmp_path / "out", max_evaluation=None, **settings)


def test_edited_row_needs_a_new_fetch(make_row: Any, write_jsonl: Any, tmp_path: Path) -> None:
    sources.fetch(make_row({"kind": "file", "train": write_jsonl("a.jsonl", ROWS)}), tmp_path / "raw")
    other = make_row({"kind": "file", "train": write_jsonl("b.jsonl", ROWS)})
    with pytest.raises(UserError, match="the source of data set 'toy' has changed since"):
        sources.read(other, tmp_path / "raw", {"train": ["text"], "evaluation": []})


def test_missing_file_and_record(make_row: Any, tmp_path: Path) -> None:
    row = make_row({"kind": "file", "train": str(tmp_path / "none.csv")})
    with pytest.raises(UserError, match=r"source\.train: .*none\.csv: no such file or saved `datasets` folder"):
        sources.fetch(row, tmp_path / "raw")
    assert not (tmp_path / "raw" / "source.json").exists()
    with pytest.raises(UserError, match="fetch data set 'toy' first"):
        sources.read(row, tmp_path / "raw", {"train": [], "evaluation": []})


def test_folder_that_is_no_saved_data_set(make_row: Any, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    row = make_row({"kind": "file", "train": str(folder)})
    with pytest.raises(
        UserError, match=r"source\.train: .*/folder: found a folder that holds nothing; allowed: a file"
    ):
        sources.fetch(row, tmp_path / "raw")
    (folder / "train.csv").write_text("text,label\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"holds train\.csv; allowed: .*save_to_disk.*use `kind: hub`"):
        sources.fetch(row, tmp_path / "raw")


def test_labels_in_a_file_of_their_own(make_row: Any, write_jsonl: Any, prepare: Any, tmp_path: Path) -> None:
    texts = [{"text": f"t{i}", "label": "not this"} for i in range(30)]
    (tmp_path / "a.lst").write_text("0\n1\n" * 15, encoding="utf-8")
    (tmp_path / "b.lst").write_text("0\n1\n2\n", encoding="utf-8")
    source = {
        "kind": "file",
        "train": write_jsonl("a.jsonl", texts),
        "train_labels": str(tmp_path / "a.lst"),
        "evaluation": write_jsonl("b.jsonl", [{"text": "u0"}, {"text": "u1"}]),
        "evaluation_labels": str(tmp_path / "a.lst"),
    }
    labels = {"0": "no", "1": "yes"}
    with pytest.raises(UserError, match=r"a\.lst: found 30 labels; allowed: 2, one for each row of .*b\.jsonl"):
        prepare(make_row(source, labels=labels))
    (tmp_path / "b.lst").write_text("1\n5\n", encoding="utf-8")
    source["evaluation_labels"] = str(tmp_path / "b.lst")
    with pytest.raises(UserError, match=r"b\.lst, line 2: label '5' is not in the mapping"):
        prepare(make_row(source, labels=labels))
    (tmp_path / "b.lst").write_text("1\n0\n", encoding="utf-8")
    tables = prepare(make_row(source, labels=labels))
    assert dict(tables["evaluation"].select("text_a", "label").rows()) == {"u0": "yes", "u1": "no"}
    assert dict(tables["train"].select("text_a", "label").rows())["t3"] == "yes"


def test_saved_folders(make_row: Any, prepare: Any, tmp_path: Path) -> None:
    from datasets import Dataset, DatasetDict

    parts = {"train": Dataset.from_list(ROWS[:20]), "validation": Dataset.from_list(ROWS[20:])}
    DatasetDict(parts).save_to_disk(str(tmp_path / "both"))
    tables = prepare(make_row({"kind": "file", "train": str(tmp_path / "both")}))
    assert (tables["train"].height, tables["evaluation"].height) == (20, 10)
    sub = {
        "kind": "file",
        "train": str(tmp_path / "both" / "train"),
        "evaluation": str(tmp_path / "both" / "validation"),
    }
    again = prepare(make_row(sub))
    assert again["train"].equals(tables["train"]) and again["evaluation"].equals(tables["evaluation"])
    test_only = {"kind": "file", "train": str(tmp_path / "both"), "evaluation": str(tmp_path / "both")}
    with pytest.raises(UserError, match="no split 'test'; found: train, validation"):
        prepare(make_row(test_only, evaluation_split="test"))
    (tmp_path / "both" / "train" / "dataset_info.json").write_text("[1", encoding="utf-8")
    with pytest.raises(UserError, match="both/train: not a readable `datasets` folder"):
        prepare(make_row(sub))
    for content, message in (("{", "not valid JSON"), ('{"splits": 3}', "names no list of splits")):
        (tmp_path / "both" / "dataset_dict.json").write_text(content, encoding="utf-8")
        with pytest.raises(UserError, match=f"dataset_dict.json: {message}"):
            prepare(make_row({"kind": "file", "train": str(tmp_path / "both")}))
