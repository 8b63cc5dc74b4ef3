"""The study's rows of the data sets table, on files of exactly their authors' formats."""

from __future__ import annotations

import csv
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from miniature import data as miniature

from advsets.config import load_datasets, read_rows
from advsets.datasets.sources import fetch
from advsets.io import read_json
from advsets.registry import DatasetRow

ROOT = Path(__file__).parents[3]
ROWS = load_datasets([ROOT / "config" / "datasets.yaml"])
NLI = ["snli", "multinli_matched", "multinli_mismatched"]
Tables = dict[str, pl.DataFrame]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    miniature.write_files(folder)
    return folder


@pytest.fixture(scope="module")
def archives(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archives")
    miniature.write_archives(folder, files)
    return folder


def from_here(row: DatasetRow, archives: Path) -> DatasetRow:
    """The row with addresses of files made here, whose checksums nobody knows yet."""

    def moved(source: dict[str, Any]) -> dict[str, Any]:
        name = source["url"].rstrip("/").rsplit("/", 1)[-1]
        here = archives / {"data": "cosmosqa"}.get(name, name)
        return {**source, "url": f"file://{here}{'/' * source['url'].endswith('/')}", "sha256": None}

    more = row.more_annotators
    return dataclasses.replace(
        row,
        source=moved(row.source),
        more_annotators=None if more is None else {**more, "source": moved(more["source"])},
    )


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def counted(tables: Tables, split: str, reason: str) -> tuple[int, bool]:
    row = tables["dropped"].filter((pl.col("split") == split) & (pl.col("reason") == reason)).to_dicts()
    return (row[0]["n_examples"], row[0]["dropped"]) if row else (0, True)


@pytest.mark.parametrize("name", NLI)
def test_pairs_with_five_labels(name: str, files: Path, archives: Path, prepare: Callable[..., Tables]) -> None:
    row = from_here(ROWS[name], archives)
    tables = prepare(row)
    for split, member in (("train", row.source["train"]), ("evaluation", row.source["evaluation"])):
        lines = records(files / member)
        golden = [line for line in lines if line["gold_label"] != "-"]
        assert (split == "evaluation") <= len(lines) - len(golden) < 40
        stored = "train" if split == "train" else "validation"
        assert counted(tables, stored, "no gold label") == (len(lines) - len(golden), True)
        found = tables[split].sort("source_id")
        golden.sort(key=lambda line: line["pairID"])
        assert found["source_id"].to_list() == [line["pairID"] for line in golden]
        assert found["text_a"].to_list() == [line["sentence1"] for line in golden]
        assert found["text_b"].to_list() == [line["sentence2"] for line in golden]
        assert found["label"].to_list() == [line["gold_label"] for line in golden]
        key = "captionID" if name == "snli" else "promptID"
        assert found["group_id"].to_list() == [line[key] for line in golden]
        wanted = [[line["annotator_labels"].count(label) for label in miniature.LABELS] for line in golden]
        assert found["label_count"].to_list() == wanted
    assert set(tables["evaluation"]["label_count"].list.sum()) == {5}
    assert set(tables["evaluation"]["agreement"]) == {0.6, 0.8, 1.0}
    roles = tables["train"].group_by("group_id").agg(pl.col("train_role").n_unique())
    assert set(roles["train_role"]) == {1}


@pytest.mark.parametrize(
    ("name", "file"), [("snli", "chaosNLI_snli.jsonl"), ("multinli_matched", "chaosNLI_mnli_m.jsonl")]
)
def test_a_hundred_annotators_are_joined_by_id_and_name(
    name: str, file: str, files: Path, archives: Path, prepare: Callable[..., Tables], tmp_path: Path
) -> None:
    tables = prepare(from_here(ROWS[name], archives))
    more = pl.read_parquet(tmp_path / "out" / "more_annotators.parquet")
    lines = {line["uid"]: line for line in records(files / "chaosNLI_v1.0" / file)}
    joined = more.join(tables["evaluation"].select("example_id", "source_id", "agreement", "label"), on="example_id")
    assert joined.height == more.height == len(lines) > 20
    assert set(joined["agreement"]) == {0.6}
    for key, counts, label in joined.select("source_id", "label_count", "label").rows():
        assert dict(zip("enc", counts, strict=True)) == {**dict.fromkeys("enc", 0), **lines[key]["label_counter"]}
        assert label[0] == lines[key]["old_label"]
    assert counted(tables, "validation", "more annotators: rows joined") == (len(lines), False)


def test_mismatched_rows_have_no_more_annotators(
    archives: Path, prepare: Callable[..., Tables], tmp_path: Path
) -> None:
    tables = prepare(from_here(ROWS["multinli_mismatched"], archives))
    assert pl.read_parquet(tmp_path / "out" / "more_annotators.parquet").is_empty()
    assert not tables["dropped"]["reason"].str.starts_with("more annotators").any()
    matched = dataclasses.asdict(ROWS["multinli_matched"])
    mismatched = dataclasses.asdict(ROWS["multinli_mismatched"])
    assert {key for key in matched if matched[key] != mismatched[key]} == {"name", "title", "source", "more_annotators"}


def test_physical_choices(files: Path, archives: Path, prepare: Callable[..., Tables]) -> None:
    tables = prepare(from_here(ROWS["piqa"], archives))
    for split, name in (("train", "train"), ("evaluation", "dev")):
        lines = records(files / "physicaliqa-train-dev" / f"{name}.jsonl")
        labels = (files / "physicaliqa-train-dev" / f"{name}-labels.lst").read_text(encoding="utf-8").split()
        wanted = {(r["goal"], r["sol1"], r["sol2"], label) for r, label in zip(lines, labels, strict=True)}
        found = tables[split]
        rows = zip(found["text_a"], found["candidates"], found["label"], strict=True)
        assert {(goal, *answers, label) for goal, answers, label in rows} == wanted
        assert found["group_id"].to_list() == found["text_a"].to_list()
    assert tables["train"]["group_id"].n_unique() < tables["train"].height
    assert tables["evaluation"]["label_count"].null_count() == tables["evaluation"].height


def test_physical_choices_of_the_hubs_parquet_branch(
    files: Path, prepare: Callable[..., Tables], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `refs/convert/parquet` holds them: a folder per configuration and split, labels as integers."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    for split, name in (("train", "train"), ("validation", "dev")):
        place = tmp_path / "piqa" / "plain_text" / split
        place.mkdir(parents=True)
        lines = records(files / "physicaliqa-train-dev" / f"{name}.jsonl")
        labels = (files / "physicaliqa-train-dev" / f"{name}-labels.lst").read_text(encoding="utf-8").split()
        frame = pl.DataFrame(lines).with_columns(pl.Series("label", list(map(int, labels)), pl.Int64))
        frame.write_parquet(place / "0000.parquet")
    source = {"kind": "hub", "repo": str(tmp_path / "piqa"), "config": None, "revision": "main"}
    row = dataclasses.replace(ROWS["piqa"], source={**source, "train": "train", "evaluation": "validation"})
    tables = prepare(row)
    assert (tables["train"].height, tables["evaluation"].height) == (360, 180)
    assert set(tables["train"]["label"]) == {"0", "1"}


def test_questions_with_four_answers(files: Path, archives: Path, prepare: Callable[..., Tables]) -> None:
    tables = prepare(from_here(ROWS["cosmosqa"], archives))
    for split, name in (("train", "train"), ("evaluation", "valid")):
        with (files / "cosmosqa" / f"{name}.csv").open(encoding="utf-8", newline="") as handle:
            wanted = {line["id"]: line for line in csv.DictReader(handle)}
        found = tables[split]
        assert set(found["source_id"]) == set(wanted) and found.height == len(wanted)
        for key, text, answers, label in found.select("source_id", "text_a", "candidates", "label").rows():
            line = wanted[key]
            assert text == f"{line['context']} {line['question']}" and "\n" in text
            assert (answers, label) == ([line[f"answer{i}"] for i in range(4)], line["label"])
        assert found["group_id"].n_unique() == found.height / 2, "two questions a context"
        assert all(len(group) == 16 for group in found["group_id"])


def test_first_checksum_is_recorded_and_only_named_members_are_unpacked(archives: Path, tmp_path: Path) -> None:
    fetch(from_here(ROWS["snli"], archives), tmp_path)
    record = read_json(tmp_path / "source.json")
    by_name = {entry["name"]: entry for entry in record["files"]}
    assert set(by_name) == {"snli_1.0.zip", ROWS["snli"].source["train"], ROWS["snli"].source["evaluation"]}
    assert all(len(entry["sha256"]) == 64 for entry in by_name.values())
    assert not (tmp_path / "__MACOSX").exists()
    (more,) = read_json(tmp_path / "more_annotators" / "source.json")["files"]
    assert more["name"] == "chaosNLI_snli.jsonl" and len(more["sha256"]) == 64


def test_settings_are_scaled_to_the_size_of_the_set() -> None:
    halves = {"snli": 549_367 / 2, "multinli_matched": 392_702 / 2, "piqa": 16_113 / 2, "cosmosqa": 25_262 / 2}
    assert set(halves) <= set(ROWS)
    for name, n in halves.items():
        row = ROWS[name]
        size, step = row.filter["train_size"], row.filter["slice_size"]
        assert 1_000 < size * n < 26_000 and 100 < step * n < 5_200
        slices = (1 - size / 0.8) / step
        assert slices <= row.filter["max_rounds"] < slices + 2, "as many rounds as can be needed"
    rates = {
        name: (ROWS[name].fine_tune["learning_rate"], ROWS[name].fine_tune["epochs"]) for name in ROWS if name in halves
    }
    nli = (1e-5, 3)
    assert rates == {"snli": nli, "multinli_matched": nli, "piqa": (5e-6, 10), "cosmosqa": (1e-5, 10)}


def test_the_miniature_table_reads_its_files(prepare: Callable[..., Tables], tmp_path: Path) -> None:
    path = miniature.write_table(tmp_path / "mini")
    assert set(read_rows([path], "datasets")) == set(miniature.NAMES)
    rows = load_datasets([path])
    for name, row in rows.items():
        assert row.columns == ROWS[name].columns and row.source["kind"] == "file"
        assert row.filter["max_rounds"] <= 4
    tables = prepare(rows["snli"])
    assert (tables["train"].height, tables["evaluation"].height) > (300, 150)
    assert pl.read_parquet(tmp_path / "out" / "more_annotators.parquet").height > 20


def test_miniature_files_are_the_same_each_time(files: Path, tmp_path: Path) -> None:
    miniature.write_files(tmp_path)
    made = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert len(made) == 13
    assert all((tmp_path / path).read_bytes() == (files / path).read_bytes() for path in made)
