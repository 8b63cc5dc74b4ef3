"""A slice of real data sets through the whole workflow: sentence pairs and multiple choice."""

from __future__ import annotations

import os

import polars as pl
import pytest

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.real_data,
    pytest.mark.skipif(not os.environ.get("ADVSETS_DATA_DIR"), reason="ADVSETS_DATA_DIR is not set: no real data"),
]


def test_slices_run_to_the_end(workspace) -> None:
    done = workspace.run("--cores", "2", "--configfile", "tests/config/real_slices.yaml")
    assert done.returncode == 0, done.stdout[-6000:]
    results = workspace.root / "results" / "slices"
    for dataset, has_annotators in (("snli_real", True), ("piqa_real", False), ("cosmosqa_real", False)):
        accuracy = pl.read_parquet(results / "evaluation" / dataset / "accuracy.parquet")
        (n_examples,) = set(accuracy.filter(pl.col("subset") == "full_set")["n_examples"])
        assert 110 <= n_examples <= 120, "at most so many, as groups stay whole"
        agreement = pl.read_parquet(results / "evaluation" / dataset / "agreement.parquet")
        flagged = agreement.filter((pl.col("subset") == "full_set") & pl.col("gold_label").is_null())
        assert (flagged["low_agreement_share"].null_count() == 0) == has_annotators
    embeddings = pl.read_parquet(results / "embeddings/cosmosqa_real/minilm_l1/seed0/evaluation.parquet")
    assert set(embeddings["candidates"].list.len()) == {4}
