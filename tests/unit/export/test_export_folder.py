"""The folder loads with `datasets`, holds what was kept, and is replaced whole or not at all."""

from __future__ import annotations

import filecmp
import os
from pathlib import Path

import polars as pl
import pytest

from advsets.errors import UserError
from advsets.export import folder as folder_module
from advsets.io import read_table


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Load a folder as a user does, without network and with an own cache."""
    import datasets

    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    return lambda path: datasets.load_dataset(str(path), cache_dir=str(tmp_path / "cache"))


def test_loads_with_all_values(made, load, synthetic) -> None:
    examples = synthetic["nli"]()
    mask = synthetic["decisions"](examples)
    loaded = load(made(examples=examples, mask=mask))
    assert list(loaded) == ["validation"]
    rows = loaded["validation"]
    wanted = examples.join(mask.filter(pl.col("retained")), on="example_id", how="inner").sort("example_id")
    assert len(rows) == len(wanted) == 16
    assert rows.features["label"].names == ["entailment", "neutral", "contradiction"]
    assert [rows.features["label"].int2str(i) for i in rows["label"]] == wanted["label"].to_list()
    for column in ("example_id", "source_id", "text_a", "text_b", "group_id", "label_count", "agreement", "margin"):
        assert list(rows[column]) == wanted[column].to_list(), column
    assert None in list(rows["text_b"]) and 'Ein "Zitat", naïve – 😀 漢字' in list(rows["text_a"])
    assert "retained" not in rows.column_names and "candidates" not in rows.column_names


def test_multiple_choice_loads(made, load, synthetic, choice_row) -> None:
    examples = synthetic["choice"]()
    rows = load(made(choice_row, examples))["validation"]
    assert rows.features["label"].names == ["0", "1", "2", "3"]
    assert rows[0]["candidates"] == ["only", "", "three"] and rows[0]["label"] == 0
    assert rows[1]["candidates"] == [f"answer 2 {j} ä" for j in range(4)]
    assert rows[1]["candidates"][rows[1]["label"]] == "answer 2 2 ä"
    assert {"text_b", "label_count", "low_agreement"}.isdisjoint(rows.column_names)


def test_split_name_and_flag(made, load, synthetic, dataset_row) -> None:
    examples = synthetic["nli"](annotated=False).with_columns(low_agreement=pl.col("source_id") == "3")
    loaded = load(made(dataset_row(evaluation_split="test"), examples))
    assert list(loaded) == ["test"]
    assert sum(loaded["test"]["low_agreement"]) == 1
    assert "agreement" not in loaded["test"].column_names


def test_empty_set_is_written_and_says_so(made, synthetic, load) -> None:
    examples = synthetic["nli"]()
    out = made(mask=synthetic["decisions"](examples, keep=lambda i: False))
    assert pl.read_parquet(out / "data" / "validation-00000-of-00001.parquet").height == 0
    card = " ".join((out / "README.md").read_text(encoding="utf-8").replace("> ", "").split())
    assert "This set is empty" in card and "`load_dataset` cannot read a split without examples." in card
    with pytest.raises(ValueError, match="corresponds to no data"):
        load(out)


def test_masks_and_labels_for_own_predictions(made, synthetic) -> None:
    from advsets.evaluation.own_predictions import read_set

    examples = synthetic["nli"]()
    out = made(examples=examples)
    mask = read_table(out / "retained.parquet", "retained")
    assert mask.equals(synthetic["decisions"](examples).sort("example_id"))
    chosen = read_set(out)
    assert chosen.frame["example_id"].to_list() == examples["example_id"].to_list()
    assert chosen.frame["label"].to_list() == examples["label"].to_list()
    assert chosen.retained.tolist() == mask["retained"].to_list()
    assert sorted(str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()) == [
        "README.md",
        "data/validation-00000-of-00001.parquet",
        "evaluation_labels.parquet",
        "retained.parquet",
    ]


def test_the_set_of_an_ensemble_loads(made, load, synthetic, ensemble, tmp_path) -> None:
    examples = synthetic["nli"]()
    out = made(examples=examples, adversary=ensemble(), out=tmp_path / "filtered" / "nli" / "both")
    rows = load(out)["validation"]
    kept = synthetic["decisions"](examples).filter("retained")["example_id"].sort()
    assert list(rows["example_id"]) == kept.to_list()
    alone = made(examples=examples)
    for name in ("data/validation-00000-of-00001.parquet", "retained.parquet", "evaluation_labels.parquet"):
        assert filecmp.cmp(out / name, alone / name, shallow=False), "the card alone tells how a set was made"


def shuffled(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.sample(fraction=1, shuffle=True, seed=3)


def test_row_order_changes_no_byte(made, synthetic, tmp_path) -> None:
    examples = synthetic["nli"]()
    mask = synthetic["decisions"](examples)
    first = made(examples=examples, mask=mask, out=tmp_path / "a")
    second = made(examples=shuffled(examples), mask=shuffled(mask), out=tmp_path / "b")
    names = [str(p.relative_to(first)) for p in first.rglob("*") if p.is_file()]
    assert filecmp.cmpfiles(first, second, names, shallow=False)[0] == names


def test_an_earlier_folder_is_replaced(made, synthetic) -> None:
    out = made()
    (out / "data" / "stale.parquet").write_bytes(b"x")
    (out.parent / f".{out.name}.part").mkdir()
    (out.parent / f".{out.name}.part" / "left_over").write_bytes(b"x")
    examples = synthetic["nli"]()
    made(mask=synthetic["decisions"](examples, keep=lambda i: i == 7))
    assert [p.name for p in (out / "data").iterdir()] == ["validation-00000-of-00001.parquet"]
    assert pl.read_parquet(out / "data" / "validation-00000-of-00001.parquet")["example_id"].to_list() == ["e007"]
    assert [p.name for p in out.parent.iterdir()] == [out.name]
    mask = os.umask(0)
    os.umask(mask)
    assert out.stat().st_mode & 0o777 == 0o777 & ~mask


def test_a_failure_leaves_the_earlier_folder(made, monkeypatch) -> None:
    out = made()
    before = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}

    def broken(*args: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder_module, "card_text", broken)
    with pytest.raises(OSError, match="No space"):
        made()
    assert {p: p.read_bytes() for p in out.rglob("*") if p.is_file()} == before
    assert [p.name for p in out.parent.iterdir()] == [out.name]


def test_decisions_on_other_ids(made, synthetic) -> None:
    examples = synthetic["nli"]()
    short = synthetic["decisions"](examples).head(20)
    with pytest.raises(UserError, match=r"mask.parquet: example_id 'e02\d' .*4 without a decision, 0 unknown.*filter"):
        made(examples=examples, mask=short)
    with pytest.raises(UserError, match=r"0 without a decision, 1 unknown"):
        made(examples=examples.head(23), mask=synthetic["decisions"](examples))


def test_unknown_label(made, synthetic, dataset_row) -> None:
    with pytest.raises(UserError, match=r"examples.parquet: label 'neutral' is none of data set nli; allowed: ent"):
        made(dataset_row(label_order=["entailment", "contradiction"]), synthetic["nli"]())


def test_agreement_of_another_run(made, synthetic) -> None:
    with pytest.raises(UserError, match=r"agreement.parquet: no rows of adversary 'mini', seed 0; found: other"):
        made(agreement=synthetic["agreement"](adversary="other"))


def test_missing_file_names_it(made, tmp_path, dataset_row, ensemble) -> None:
    out = tmp_path / "x"
    with pytest.raises(UserError, match=r"absent.parquet: no such file"):
        folder_module.export_set(
            dataset_row(), ensemble(), Path(tmp_path / "absent.parquet"), tmp_path / "m", None, {}, {}, out
        )
    assert not out.exists()
