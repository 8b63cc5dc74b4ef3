"""Rows of sets that people wrote against a model, on folders of exactly the hub's format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from miniature import collected as miniature

from advsets.datasets import sources
from advsets.datasets.prepare import prepare
from advsets.datasets.questions.prepare import prepare_questions
from advsets.registry import DatasetRow
from advsets.schemas import validate

SPLIT: dict[str, Any] = {"seed": 0, "drop_train_duplicates": True, "max_train": None, "max_evaluation": None}
N_TRAIN, N_EVALUATION = 60, 24
Tables = dict[str, pl.DataFrame]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hub")
    miniature.write_hub(folder, n_train=N_TRAIN, n_evaluation=N_EVALUATION)
    return folder


@pytest.fixture
def tables_of(hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Tables]:
    """Fetch and prepare a row of the project's table."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    rows = validate(miniature.dataset_rows(hub), "datasets", "table")

    def run(name: str) -> Tables:
        row, raw, out = DatasetRow.from_config(name, rows[name]), tmp_path / "raw", tmp_path / "out"
        sources.fetch(row, raw)
        if row.is_extractive_qa:
            prepare_questions(row, raw, out, **SPLIT)
        else:
            prepare(row, raw, out, adversary_fraction=0.5, **SPLIT)
        return {path.stem: pl.read_parquet(path) for path in out.glob("*.parquet")}

    return run


@pytest.mark.parametrize("collection_round", [1, 2, 3])
def test_rounds_of_anli(collection_round: int, tables_of: Callable[[str], Tables]) -> None:
    tables = tables_of(f"anli_r{collection_round}")
    for table, split, n in (("train", "train", N_TRAIN), ("evaluation", "dev", N_EVALUATION)):
        wanted = {row["uid"]: row for row in miniature.pairs(f"r{collection_round} {split}", n)}
        found = tables[table]
        assert set(found["source_id"]) == set(wanted) and found.height == n
        for key, premise, hypothesis, label in found.select("source_id", "text_a", "text_b", "label").rows():
            row = wanted[key]
            assert (premise, hypothesis) == (row["premise"], row["hypothesis"])
            assert label == miniature.LABELS[row["label"]], "the hub's integers are named in its own order"


@pytest.mark.parametrize("config", list(miniature.LOOPS))
def test_adversarialqa_reads_the_configuration_of_its_row(config: str, tables_of: Callable[[str], Tables]) -> None:
    tables = tables_of(f"adversarialqa_{config}")
    for table, split, n in (("train", "train", N_TRAIN), ("evaluation", "validation", N_EVALUATION)):
        wanted = {row["id"]: row for row in miniature.questions(f"{config} {split}", n)}
        found = tables[table]
        assert set(found["source_id"]) == set(wanted)
        for key, context, answers, starts in found.select("source_id", "context", "answers", "answer_starts").rows():
            assert context == wanted[key]["context"]
            assert {"text": answers, "answer_start": starts} == wanted[key]["answers"]
    assert tables["mismatches"].is_empty()


def test_squad_keeps_several_answers(tables_of: Callable[[str], Tables]) -> None:
    tables = tables_of("squad")
    assert (tables["train"].height, tables["evaluation"].height) == (N_TRAIN, N_EVALUATION)
    assert set(tables["evaluation"]["answers"].list.len()) == {3}
    titles = {row["title"] for row in miniature.questions("squad train", N_TRAIN)}
    assert set(tables["train"]["document_id"]) == titles


def test_halves_of_squad_choose_and_are_reported(tables_of: Callable[[str], Tables]) -> None:
    halves = tables_of("squad_halves")["evaluation"]
    assert dict(halves["split"].value_counts().rows()) == {half: N_EVALUATION // 2 for half in ("validation", "test")}
    assert halves.group_by("passage_id").agg(pl.col("split").n_unique())["split"].to_list() == [1] * (N_EVALUATION // 3)
    wanted = {row["id"]: row["answers"]["text"][0] for row in miniature.questions("squad validation", N_EVALUATION)}
    given = {key: answers for key, answers in halves.select("source_id", "answers").rows()}
    assert given == {key: [answer] for key, answer in wanted.items()}, "two of three people gave the first answer"
