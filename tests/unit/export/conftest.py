"""Small evaluation sets with the filter's decisions, and the rows of the configuration."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from advsets.io import polars_dtype, write_table
from advsets.registry import DatasetRow, ModelRow
from advsets.tables import TABLES

NLI = {
    "title": "Inference | test",
    "task": "sequence_classification",
    "label_order": ["entailment", "neutral", "contradiction"],
    "other_labels": ["unclear"],
    "labels": None,
    "source": {"kind": "file", "train": "/home/someone/secret/train.jsonl"},
    "columns": {},
    "evaluation_columns": {},
    "evaluation_split": "validation",
    "evaluation_fraction": None,
    "licence": "CC BY-SA 4.0",
    "citation": '@article{x,\n  title={Über: "naïve" – # tests}\n}',
    "homepage": "https://example.org/data?x=1#top",
    "language": "en",
    "more_annotators": None,
    "model_in_the_loop": None,
    "questions": {},
    "filter": {},
    "fine_tune": {},
}
MODEL = {
    "title": "Mini: 'small' model",
    "source": {"kind": "hub", "repo": "org/mini", "revision": "main"},
    "family": "mini",
    "objective": "masked tokens",
    "parameters_m": 22.7,
    "n_layers": None,
    "random_init": False,
    "config_overrides": {},
    "freeze": "none",
    "pooling": "mean",
    "precision": "auto",
    "gpus": 1,
    "fine_tune": {},
    "licence": "Apache-2.0",
}
SETTINGS = {
    "seed": 0,
    "adversary_seed": 0,
    "adversary_fraction": 0.35,
    "filter": {
        "n_partitions": 64,
        "threshold": 0.75,
        "comparison": "more_than",
        "min_retained": None,
        "one_shot": False,
    },
}
FINE_TUNE = {"learning_rate": 2e-05, "epochs": 3}
PROVENANCE = {
    "dataset": {
        "kind": "file",
        "requested": NLI["source"],
        "files": [{"name": "/home/someone/secret/train.jsonl", "size": 3, "sha256": "ab" * 32}],
        "libraries": {"pip": "1"},
    },
    "model": {
        "kind": "hub",
        "source": MODEL["source"],
        "path": "/home/someone/cache/mini",
        "revision": "0123456789abcdef",
        "files": {"config.json": 3},
        "sha256": "cd" * 32,
    },
}
TEXTS = [
    'Ein "Zitat", naïve – 😀 漢字',
    "two\nlines\tand a tab",
    "  spaces  ",
    "pipe | and `code`",
    "שלום",
    "---",
    "#1",
    "",
]


def frame(name: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Table `name`; columns that are not given are null."""
    schema = {c.name: polars_dtype(c) for c in TABLES[name].columns}
    return pl.DataFrame([{key: row.get(key) for key in schema} for row in rows], schema=schema)


def nli_examples(n: int = 24, annotated: bool = True) -> pl.DataFrame:
    labels = NLI["label_order"]
    counts = [[5, 0, 0, 0], [0, 3, 1, 1], [1, 0, 4, 0]]
    return frame(
        "examples",
        [
            {
                "example_id": f"e{i:03d}",
                "source_id": str(i),
                "split": "validation",
                "text_a": TEXTS[i % len(TEXTS)],
                "text_b": None if i % 4 == 0 else f"hypothesis {i}",
                "label": labels[i % 3],
                "group_id": f"g{i // 2}",
                **(
                    {"label_count": counts[i % 3], "agreement": max(counts[i % 3]) / 5, "label_entropy_bits": 0.5}
                    if annotated and i != 5
                    else {}
                ),
            }
            for i in range(n)
        ],
    )


def choice_examples(n: int = 8) -> pl.DataFrame:
    return frame(
        "examples",
        [
            {
                "example_id": f"c{i}",
                "split": "validation",
                "text_a": f"context {i}",
                "candidates": [f"answer {i} {j} ä" for j in range(4)] if i else ["only", "", "three"],
                "label": str(i % 3),
            }
            for i in range(n)
        ],
    )


def decisions(examples: pl.DataFrame, keep: Any = lambda i: i % 3 != 1) -> pl.DataFrame:
    return frame(
        "retained",
        [
            {
                "example_id": name,
                "retained": keep(i),
                "removed_in_round": None if keep(i) else 1 + i % 2,
                "predictability": i / 100,
                "margin": None if i == 0 else -i / 10,
            }
            for i, name in enumerate(examples["example_id"])
        ],
    )


def agreement_rows(dataset: str = "nli", adversary: str = "mini", flagged: bool = False) -> pl.DataFrame:
    rows = []
    for seed in (0, 1):
        for gold in (None, *NLI["label_order"]):
            for subset, mean in (("full_set", 0.8), ("retained", 0.7 - seed / 10), ("removed", 0.9)):
                measure = {"agreement_mean": mean, "agreement_low": mean - 0.05, "agreement_high": mean + 0.05}
                flags = {
                    "low_agreement_share": 0.2,
                    "low_agreement_low": 0.1,
                    "low_agreement_high": 0.3,
                    "n_flagged": 23,
                }
                rows.append(
                    {
                        "dataset": dataset,
                        "adversary": adversary,
                        "adversary_seed": seed,
                        "gold_label": gold,
                        "subset": subset,
                        "n_examples": 23,
                        **(flags if flagged else measure),
                    }
                )
    return frame("agreement", rows)


@pytest.fixture
def dataset_row():
    return lambda **changes: DatasetRow.from_config("nli", {**NLI, **changes})


@pytest.fixture
def choice_row(dataset_row):
    return dataset_row(task="multiple_choice", label_order=[], other_labels=[])


@pytest.fixture
def model_row():
    return lambda **changes: ModelRow.from_config("mini", {**MODEL, **changes})


@pytest.fixture
def made(tmp_path, dataset_row, model_row):
    """Export a set made of these parts; returns the folder."""

    def make(
        row: DatasetRow | None = None,
        examples: pl.DataFrame | None = None,
        mask: pl.DataFrame | None = None,
        agreement: pl.DataFrame | None = None,
        out: Path = tmp_path / "filtered" / "nli" / "mini",
        **changes: Any,
    ) -> Path:
        from advsets.export.adversary import Adversary, Member
        from advsets.export.folder import export_set

        examples = nli_examples() if examples is None else examples
        write_table(examples, tmp_path / "examples.parquet", "examples")
        write_table(decisions(examples) if mask is None else mask, tmp_path / "mask.parquet", "retained")
        if agreement is not None:
            write_table(agreement, tmp_path / "agreement.parquet", "agreement")
        provenance = changes.get("provenance", PROVENANCE)
        member = Member(changes.get("model", model_row()), FINE_TUNE, provenance.get("model", {}))
        export_set(
            dataset_row() if row is None else row,
            changes.get("adversary", Adversary("mini", (member,))),
            tmp_path / "examples.parquet",
            tmp_path / "mask.parquet",
            None if agreement is None else tmp_path / "agreement.parquet",
            changes.get("settings", SETTINGS),
            provenance["dataset"],
            out,
        )
        return out

    return make


@pytest.fixture
def ensemble(model_row):
    """`ensemble(combination)`: two models of two families that filtered together."""

    def build(combination: str = "mean") -> Any:
        from advsets.export.adversary import Adversary, Member

        other = model_row(title="Other | model", family="other", pooling="first", source={"kind": "path", "path": "/x"})
        members = (
            Member(model_row(), FINE_TUNE, PROVENANCE["model"]),
            Member(dataclasses.replace(other, name="other"), {"learning_rate": 1e-05, "warmup": 0.1}, {"sha256": "ef"}),
        )
        return Adversary("both", members, combination)

    return build


@pytest.fixture
def synthetic():
    """Builders of tables by name."""
    return {"nli": nli_examples, "choice": choice_examples, "decisions": decisions, "agreement": agreement_rows}
