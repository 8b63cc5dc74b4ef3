"""The data sets that come with the project, and the real ones that tests use."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from advsets.config import load_datasets
from advsets.datasets.columns import wanted_columns

ROOT = Path(__file__).parents[3]
ROWS = load_datasets([ROOT / "config" / "datasets.yaml"])
REAL = load_datasets([ROOT / "tests" / "config" / "real_datasets.yaml"])


def test_shipped_rows_name_licence_citation_and_checksum() -> None:
    assert {"hutto_movies", "snli", "multinli_matched", "piqa", "cosmosqa"} <= set(ROWS)
    for row in ROWS.values():
        assert row.licence != "not stated" and row.citation and row.homepage, row.name
        assert row.source["sha256"], row.name
        assert wanted_columns(row, "train"), row.name


@pytest.mark.real_data
@pytest.mark.skipif("ADVSETS_DATA_DIR" not in os.environ, reason="ADVSETS_DATA_DIR is not set")
@pytest.mark.parametrize(
    ("name", "n_train", "n_evaluation"),
    [
        ("snli_real", 18_000, 9_842),
        ("mnli_real", 9_887, 9_815),
        ("piqa_real", 4_065, 1_838),
        ("cosmosqa_real", 3_578, 2_985),
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
        assert evaluation["low_agreement"].null_count() == 0


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
