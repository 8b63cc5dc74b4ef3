"""Operations and bytes of jobs, worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from advsets.aflite.settings import Counts
from advsets.cost.job import Job
from advsets.cost.sizes import DatasetSize, ModelSize, dataset_size, model_size
from advsets.cost.work import Work, rows_by_round, work_of

PAIRS = DatasetSize(adversary=500, filtering=500, evaluation=200, n_candidates=1, n_outputs=2, tokens=20)


def job(rule: str, **wildcards: str) -> Job:
    return Job(rule, wildcards, None, 1, 2, True)


def work(config: dict[str, Any], rule: str, **wildcards: str) -> Work | None:
    model = next(wildcards[key] for key in ("model", "adversary", "evaluated_model") if key in wildcards)
    data = dataset_size(config, wildcards["dataset"], Path("nowhere")) if "dataset" in wildcards else None
    return work_of(job(rule, **wildcards), config, data, model_size(config, model))


def test_sizes_stand_in_the_rows(config: dict[str, Any]) -> None:
    assert dataset_size(config, "pairs", Path("nowhere")) == PAIRS
    assert dataset_size(config, "choices", Path("nowhere")) == DatasetSize(200, 200, 100, 4, 1, 300)
    assert dataset_size(config, "unknown", Path("nowhere")) is None
    assert model_size(config, "plain") == ModelSize(100e6, 100e6, 10)
    assert model_size(config, "shared") == ModelSize(10e6, 100e6, 10)
    assert model_size(config, "unknown_size") is None
    assert model_size(config, "both") == ModelSize(0, 0, 20)
    assert model_size(config, "half_known") is None


def test_limits_of_the_split_count(config: dict[str, Any]) -> None:
    config["split"] |= {"max_train": 300, "max_evaluation": 50, "adversary_fraction": 0.4}
    size = dataset_size(config, "pairs", Path("nowhere"))
    assert size is not None and (size.adversary, size.filtering, size.evaluation) == (120, 180, 50)


def test_prepared_tables_go_before_the_row(config: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "results" / "tiny" / "data" / "unknown"
    folder.mkdir(parents=True)
    pl.DataFrame({"x": range(60)}).write_parquet(folder / "train.parquet")
    assert dataset_size(config, "unknown", tmp_path) is None
    pl.DataFrame({"x": range(9)}).write_parquet(folder / "evaluation.parquet")
    assert dataset_size(config, "unknown", tmp_path) == DatasetSize(30, 30, 9, 1, 1, config["cost"]["tokens"])
    (folder / "evaluation.parquet").write_bytes(b"cut")
    assert dataset_size(config, "unknown", tmp_path) is None


def test_fine_tuning(config: dict[str, Any]) -> None:
    # 3 epochs x 20 tokens x 1e8 parameters x (6 x 450 trained + 2 x 50 selecting rows)
    found = work(config, "fine_tune", dataset="pairs", role="adversary", model="plain", seed="0")
    assert found == Work(flop=pytest.approx(1.68e13), half=True, steps=3 * 29, disk=4e8, scratch=1.6e9)
    # all 1,000 rows: 6 x 900 + 2 x 100
    found = work(config, "fine_tune", dataset="pairs", role="evaluated_model", model="plain", seed="0")
    assert found is not None and found.flop == pytest.approx(3.36e13)
    # one epoch; weights that layers share are stored once; 32 bits; 4 candidates cut to 64 tokens: 6 x 180 + 2 x 20
    found = work(config, "fine_tune", dataset="choices", role="adversary", model="shared", seed="0")
    assert found == Work(flop=pytest.approx(256 * 1e8 * 1120), half=False, steps=12, disk=4e7, scratch=1.6e8)


def test_gradient_checkpointing_computes_each_layer_again(config: dict[str, Any]) -> None:
    config["fine_tune"]["gradient_checkpointing"] = True
    found = work(config, "fine_tune", dataset="pairs", role="adversary", model="plain", seed="0")
    assert found is not None and found.flop == pytest.approx(3 * 20 * 1e8 * (8 * 450 + 2 * 50))


def test_rows_that_fine_tuning_is_limited_to(config: dict[str, Any]) -> None:
    config["fine_tune"]["max_train_examples"] = 100
    found = work(config, "fine_tune", dataset="pairs", role="evaluated_model", model="plain", seed="0")
    assert found is not None and found.flop == pytest.approx(3 * 20 * 1e8 * (6 * 90 + 2 * 10))


def test_embeddings_and_predictions(config: dict[str, Any]) -> None:
    found = work(config, "embed", dataset="pairs", adversary="plain", seed="0", split="train")
    assert found == Work(flop=2e12, read=4e8, disk=500 * 10 * 2)
    found = work(config, "embed", dataset="choices", adversary="plain", seed="0", split="evaluation")
    assert found == Work(flop=2 * 100 * 256 * 1e8, read=4e8, disk=100 * 4 * 10 * 2)
    config["embed"]["dtype"] = "float32"
    found = work(config, "embed", dataset="pairs", adversary="plain", seed="0", split="evaluation")
    assert found is not None and found.disk == 200 * 10 * 4
    found = work(config, "predict", dataset="pairs", evaluated_model="plain", seed="0")
    assert found == Work(flop=8e11, read=4e8, disk=200 * 22)


def test_a_chain(config: dict[str, Any]) -> None:
    # 500 training rows, 50 a round down to 300: 4 rounds, of 700, 650, 600 and 550 rows with the evaluation set
    chain = {"dataset": "pairs", "adversary": "plain", "seed": "0"}
    assert work(config, "filter_start", **chain) == Work(read=700 * 10 * 2, disk=14 * 700)
    # 10 features x 2 contrasts x 4 classifiers; fits 4 x 10 passes x 100 rows; predictions 2 per row
    first = work(config, "filter_rounds", **chain, node="001")
    assert first == Work(flop=80 * (2 * 4000 + 2 * 1350), read=14_000, disk=14 * 700 + 13 * 1350)
    second = work(config, "filter_rounds", **chain, node="002")
    assert second == Work(flop=80 * (2 * 4000 + 2 * 1150), read=14_000, disk=14 * 700 + 13 * 1150)
    assert work(config, "filter_rounds", **chain, node="003") == Work(disk=14 * 700)
    assert work(config, "filter_collect", **chain) == Work(read=13 * 2500, disk=13 * 2500 + 12 * 700)


def test_the_chain_of_an_ensemble_reads_all_its_members(config: dict[str, Any]) -> None:
    found = work(config, "filter_rounds", dataset="pairs", adversary="both", seed="0", node="001")
    assert found == Work(flop=160 * (2 * 4000 + 2 * 1350), read=28_000, disk=14 * 700 + 13 * 1350)


def test_a_filter_with_one_setting_changed_is_one_job(config: dict[str, Any]) -> None:
    # all 4 rounds of the chain above; with 8 classifiers instead of 4 twice the work
    chain = {"dataset": "pairs", "adversary": "plain"}
    seed = work(config, "filter_variant", **chain, setting="seed", value="5")
    assert seed == Work(flop=80 * (4 * 4000 + 2 * 2500), read=14_000, disk=12 * 200)
    found = work(config, "filter_variant", **chain, setting="n_partitions", value="8")
    assert found is not None and found.flop == 2 * seed.flop


def test_rounds_end_at_max_rounds_or_min_retained() -> None:
    counts = Counts(n_train=100, n_evaluation=10, train_size=20, slice_size=30, min_retained=30, target_size=None)
    assert rows_by_round(counts, 50) == [110, 80, 50]
    assert rows_by_round(counts, 2) == [110, 80]


def test_settings_that_the_filter_will_refuse_have_no_work(config: dict[str, Any]) -> None:
    config["dataset_rows"]["pairs"]["filter"]["train_size"] = 5000
    assert work(config, "filter_rounds", dataset="pairs", adversary="plain", seed="0", node="001") is None
    assert work(config, "filter_collect", dataset="pairs", adversary="plain", seed="0") is None


def test_what_is_not_known(config: dict[str, Any]) -> None:
    assert work(config, "fetch_model", model="plain") == Work(disk=4e8)
    assert work(config, "fetch_model", model="unknown_size") is None
    assert work(config, "predict", dataset="pairs", evaluated_model="unknown_size", seed="0") is None
    assert work(config, "export_set", dataset="pairs", adversary="plain") is None
