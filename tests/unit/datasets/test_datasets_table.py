"""The data sets that come with the project, and the real ones that tests use."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from advsets.config import load_datasets
from advsets.datasets.columns import wanted_columns
from advsets.labels import entropy_bits, modal_label

ROOT = Path(__file__).parents[3]
ROWS = load_datasets([ROOT / "config" / "datasets.yaml"])
REAL = load_datasets([ROOT / "tests" / "config" / "real_datasets.yaml"])


def test_shipped_rows_name_licence_citation_and_checksum() -> None:
    assert {"hutto_movies", "snli", "multinli_matched", "multinli_mismatched", "piqa", "cosmosqa"} <= set(ROWS)
    assert {"anli_r1", "anli_r2", "anli_r3", "squad", "drop", "natural_questions"} <= set(ROWS)
    assert {f"adversarialqa_{model}" for model in ("dbidaf", "dbert", "droberta")} <= set(ROWS)
    for row in ROWS.values():
        assert row.licence != "not stated" and row.citation and row.homepage, row.name
        # of the hub the commit is recorded, of the user's own files the checksum
        assert row.source["kind"] in ("hub", "file") or row.source["sha256"], row.name
        assert wanted_columns(row, "train"), row.name


@pytest.mark.real_data
@pytest.mark.skipif("ADVSETS_DATA_DIR" not in os.environ, reason="ADVSETS_DATA_DIR is not set")
@pytest.mark.parametrize(
    ("name", "n_train", "n_evaluation"),
    [
        ("snli_real", 18_000, 9_842),
        ("mnli_real", 9_887, 9_815),
        ("mnli_mismatched_real", 9_887, 917),
        ("piqa_real", 4_065, 1_838),
        ("cosmosqa_real", 3_578, 2_985),
        ("anli_r1_real", 5_470, 1_000),
        ("anli_r2_real", 5_787, 1_000),
        ("anli_r3_real", 6_000, 1_198),
    ],
)
def test_real_data(prepare: Callable[..., Any], name: str, n_train: int, n_evaluation: int) -> None:
    row = REAL[name]
    tables = prepare(row)
    assert (tables["train"].height, tables["evaluation"].height) == (n_train, n_evaluation)
    evaluation = tables["evaluation"]
    if row.is_multiple_choice:
        sizes = evaluation["candidates"].list.len().unique().to_list()
        assert sizes == [len(row.columns["candidates"])]
        assert evaluation["label"].n_unique() == sizes[0]
    else:
        assert set(evaluation["label"]) == set(row.label_order)
        assert (evaluation["low_agreement"].null_count() == 0) == (name in ("snli_real", "mnli_real"))


@pytest.mark.real_data
@pytest.mark.skipif("ADVSETS_DATA_DIR" not in os.environ, reason="ADVSETS_DATA_DIR is not set")
def test_snli_agreement_as_its_readme_states(prepare: Callable[..., Any]) -> None:
    evaluation = prepare(REAL["snli_real"])["evaluation"]
    listed = evaluation.filter(pl.col("label_count").is_not_null())
    votes = (listed["agreement"] * listed["label_count"].list.sum()).round().cast(pl.Int64)
    assert dict(votes.value_counts().rows()) == {3: 1514, 4: 746, 5: 1400}
    assert listed.filter((votes == 3) != listed["low_agreement"]).is_empty()
    assert evaluation["low_agreement"].sum() == 1514
    assert evaluation["source_id"].n_unique() == 9842


@pytest.mark.real_data
@pytest.mark.skipif("ADVSETS_DATA_DIR" not in os.environ, reason="ADVSETS_DATA_DIR is not set")
@pytest.mark.parametrize(("name", "file", "n"), [("snli_real", "snli", 1_514), ("mnli_real", "mnli_m", 1_599)])
def test_chaosnli_is_joined(prepare: Callable[..., Any], tmp_path: Path, name: str, file: str, n: int) -> None:
    """Every item finds its row by id: the texts are its own, and its old label is the gold label."""
    evaluation = prepare(REAL[name])["evaluation"]
    more = pl.read_parquet(tmp_path / "out" / "more_annotators.parquet")
    rows = more.join(evaluation, on="example_id").select("source_id", "label_count", "label", "text_b", "low_agreement")
    path = Path(os.environ["ADVSETS_DATA_DIR"]) / "chaosnli" / f"chaosNLI_{file}.jsonl"
    items = {item["uid"]: item for item in map(json.loads, path.read_text(encoding="utf-8").splitlines())}
    assert rows.height == more.height == len(items) == n
    assert set(more["label_count"].list.sum()) == {100}
    n_majority = 0
    for key, counts, label, hypothesis, low_agreement in rows.rows():
        item = items[key]
        assert label[0] == item["old_label"] and low_agreement
        assert hypothesis.split() == item["example"]["hypothesis"].split()
        assert entropy_bits(counts) == pytest.approx(item["entropy"])
        modal = modal_label(counts, REAL[name].label_order)
        n_majority += modal is not None
        assert modal is None or modal[0] == item["majority_label"]
    assert n - n_majority < 0.02 * n


@pytest.mark.real_data
@pytest.mark.skipif("ADVSETS_DATA_DIR" not in os.environ, reason="ADVSETS_DATA_DIR is not set")
@pytest.mark.parametrize(
    ("name", "votes"),
    [
        ("anli_r1_real", {2: 702, 3: 298}),
        ("anli_r2_real", {2: 710, 3: 290}),
        ("anli_r3_real", {2: 807, 3: 391}),
    ],
)
def test_verifiers_of_anli_are_joined(
    prepare: Callable[..., Any], tmp_path: Path, name: str, votes: dict[int, int]
) -> None:
    """Every accepted item has two or three verifiers' labels, two of which are its gold label."""
    tables = prepare(REAL[name])
    more = pl.read_parquet(tmp_path / "out" / "more_annotators.parquet")
    rows = more.join(tables["evaluation"], on="example_id").select("label_count", "label").rows()
    assert len(rows) == tables["evaluation"].height
    given = [(counts[REAL[name].label_order.index(label)], sum(counts)) for counts, label in rows]
    assert {n: sum(total == n for _, total in given) for n in votes} == votes
    assert {gold for gold, _ in given} == {2}
    unknown = tables["dropped"].filter(pl.col("reason") == "more annotators: ids that no row has")
    assert unknown["n_examples"].to_list() == [29_803 - len(rows)]


@pytest.mark.real_data
@pytest.mark.skipif("ADVSETS_DATA_DIR" not in os.environ, reason="ADVSETS_DATA_DIR is not set")
def test_lines_of_the_authors_archive(prepare: Callable[..., Any]) -> None:
    """A part of SNLI's own dev file, parse trees left out, read by the shipped row's columns."""
    real, folder = REAL["snli_real"], Path(os.environ["ADVSETS_DATA_DIR"]) / "snli"
    source = {**real.source, "evaluation": str(folder / "annotated_dev_sample.jsonl")}
    row = dataclasses.replace(real, source=source, evaluation_columns=ROWS["snli"].columns)
    tables = prepare(row)
    evaluation = tables["evaluation"]
    assert evaluation.height == 2_527
    assert ("validation", "no gold label", 39, True) in tables["dropped"].rows()
    assert set(evaluation["label_count"].list.sum()) <= {4, 5}
    assert evaluation["group_id"].n_unique() < evaluation["source_id"].n_unique() == 2_527
    votes = (evaluation["agreement"] * evaluation["label_count"].list.sum()).round()
    assert int((votes == 3).sum()) == 381
