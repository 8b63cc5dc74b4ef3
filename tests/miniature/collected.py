"""Miniatures of the sets that people wrote against a model: invented rows, as folders in the hub's format.

| folder | configurations | splits |
|---|---|---|
| facebook/anli | plain_text | train_r1 to dev_r3: `uid`, `premise`, `hypothesis`, `label` (a class), `reason` |
| rajpurkar/squad | plain_text | train, validation: `id`, `title`, `context`, `question`, `answers` |
| UCLNLP/adversarial_qa | adversarialQA, dbidaf, dbert, droberta | the same with `metadata`; test without answers |

A folder is what `hf download --repo-type dataset` leaves: Parquet files by configuration, and a card whose head
names them. `write_repo` writes any rows so, `dataset_rows` gives the project's rows that read the folders.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import datasets
import yaml

PROJECT = Path(__file__).resolve().parents[2]
LABELS = ("entailment", "neutral", "contradiction")
TEXT = datasets.Value("string")
ANLI = datasets.Features(
    {"uid": TEXT, "premise": TEXT, "hypothesis": TEXT, "label": datasets.ClassLabel(names=list(LABELS)), "reason": TEXT}
)
SQUAD = datasets.Features(
    {
        "id": TEXT,
        "title": TEXT,
        "context": TEXT,
        "question": TEXT,
        "answers": {"text": datasets.List(TEXT), "answer_start": datasets.List(datasets.Value("int32"))},
    }
)
ADVERSARIALQA = datasets.Features({**SQUAD, "metadata": {"split": TEXT, "model_in_the_loop": TEXT}})
LOOPS = {"dbidaf": "BiDAF", "dbert": "BERT", "droberta": "RoBERTa"}
REPOS = {
    "anli_r1": "facebook/anli",
    "anli_r2": "facebook/anli",
    "anli_r3": "facebook/anli",
    "squad": "rajpurkar/squad",
    "squad_halves": "rajpurkar/squad",
    **{f"adversarialqa_{config}": "UCLNLP/adversarial_qa" for config in LOOPS},
}
"""Rows of the data sets table by the folder that they read."""

Rows = Sequence[Mapping[str, Any]]
NAMES = ("Ada", "Bruno", "Clara", "Dmitri", "Elif", "Farid", "Greta", "Hana")
THINGS = ("ladder", "lantern", "kettle", "drum", "clock", "basket")
TOWNS = ("Lund", "Porto", "Graz", "Izmir", "Kyoto", "Quito")


def write_repo(folder: Path, configs: Mapping[str, Mapping[str, Rows]], features: datasets.Features) -> None:
    """Write rows by configuration and split as the hub holds them."""
    for config, splits in configs.items():
        (folder / config).mkdir(parents=True, exist_ok=True)
        for split, rows in splits.items():
            made = datasets.Dataset.from_list([dict(row) for row in rows], features=features)
            made.to_parquet(str(folder / config / f"{split}-00000-of-00001.parquet"))
    head = {
        "license": "cc0-1.0",
        "configs": [
            {
                "config_name": config,
                "data_files": [{"split": split, "path": f"{config}/{split}-*"} for split in splits],
            }
            for config, splits in configs.items()
        ],
    }
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n", encoding="utf-8")


def write_hub(folder: Path, *, n_train: int = 60, n_evaluation: int = 24) -> None:
    """Write all three folders below `folder`."""
    sizes = {"train": n_train, "validation": n_evaluation}
    rounds = {
        f"{split}_r{r}": pairs(f"r{r} {split}", n)
        for r in (1, 2, 3)
        for split, n in (("train", n_train), ("dev", n_evaluation))
    }
    write_repo(folder / "facebook" / "anli", {"plain_text": rounds}, ANLI)
    plain = {split: questions(f"squad {split}", n) for split, n in sizes.items()}
    write_repo(folder / "rajpurkar" / "squad", {"plain_text": plain}, SQUAD)
    parts = {
        config: {
            split: [{**row, "metadata": about(split, loop)} for row in questions(f"{config} {split}", n)]
            for split, n in sizes.items()
        }
        | {"test": [{**row, "answers": EMPTY, "metadata": about("test", loop)} for row in questions(config, 6)]}
        for config, loop in LOOPS.items()
    }
    whole = {split: [row for part in parts.values() for row in part[split]] for split in (*sizes, "test")}
    write_repo(folder / "UCLNLP" / "adversarial_qa", {"adversarialQA": whole, **parts}, ADVERSARIALQA)


EMPTY: dict[str, list[Any]] = {"text": [], "answer_start": []}


def about(split: str, loop: str) -> dict[str, str]:
    return {"split": split, "model_in_the_loop": loop}


def pairs(key: str, n: int) -> list[dict[str, Any]]:
    """Rows of ANLI; a right label can be told from the text."""
    rng, rows = random.Random(key), []
    for i in range(n):
        name, thing, town = rng.choice(NAMES), rng.choice(THINGS), rng.choice(TOWNS)
        hypothesis = (f"{name} was in {town}.", f"{name} likes {town}.", f"{name} has never been in {town}.")[i % 3]
        rows.append(
            {
                "uid": f"{key}-{i}",
                "premise": f"In the year {1800 + i}, {name} carried a {thing} to {town} ({key}).",
                "hypothesis": hypothesis,
                "label": i % 3,
                "reason": "",
            }
        )
    return rows


def questions(key: str, n: int) -> list[dict[str, Any]]:
    """Rows of SQuAD, three questions a passage and five passages a title; validation has several gold answers."""
    rng, rows = random.Random(key), []
    for i in range(n):
        number, asked = divmod(i, 3)
        local = random.Random(f"{key} {number}")
        name, thing, town = local.choice(NAMES), local.choice(THINGS), local.choice(TOWNS)
        context = f"{key.title()} {number}: {name} bought a {thing} at the market of {town}."
        question, answer = (
            ("Who bought something?", name),
            ("What was bought?", thing),
            ("Where was the market?", town),
        )[asked]
        longer = {thing: f"a {thing}"}.get(answer, answer)
        texts = [answer, rng.choice((answer, longer)), answer] if key.startswith("squad validation") else [answer]
        rows.append(
            {
                "id": f"{key}-{i}",
                "title": f"{key} {number // 5}",
                "context": context,
                "question": question,
                "answers": {"text": texts, "answer_start": [context.index(text) for text in texts]},
            }
        )
    return rows


def dataset_rows(folder: Path) -> dict[str, dict[str, Any]]:
    """The project's rows, reading the folders below `folder`; without ANLI's verifiers, who are not on the hub."""
    shipped = yaml.safe_load((PROJECT / "config" / "datasets.yaml").read_text(encoding="utf-8"))
    rows = {}
    for name, repo in REPOS.items():
        row = {**shipped[name], "source": {**shipped[name]["source"], "repo": str(folder / repo)}}
        row.pop("more_annotators", None)
        rows[name] = row
    return rows
