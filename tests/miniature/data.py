"""Miniatures of the study's data sets: invented texts in hundreds of rows, in the formats of their authors.

`python tests/miniature/data.py FOLDER` writes the files, and `datasets.yaml` with a row for each
that reads them (`source: {kind: file}`), under the names that `config/datasets.yaml` has:

| row | files | as in the source |
|---|---|---|
| snli | snli_1.0/snli_1.0_{train,dev}.jsonl | five labels in dev, one in most of train; gold `-`; three pairs a caption |
| multinli_matched, multinli_mismatched | multinli_1.0/multinli_1.0_{train,dev_matched,dev_mismatched}.jsonl | the same, by prompt |
| piqa | physicaliqa-train-dev/{train,dev}.jsonl, …-labels.lst | labels in a file of their own; goals that come again |
| cosmosqa | cosmosqa/{train,valid}.csv | quoted fields with commas and line ends; several questions a context |
| snli, multinli_matched: more_annotators | chaosNLI_v1.0/chaosNLI_{snli,mnli_m}.jsonl | a hundred votes for the dev rows of 3 in 5 |

A right answer can be told from the text, mostly, so that models learn something; the rest is contested.
"""  # noqa: E501 - a table

from __future__ import annotations

import csv
import itertools
import json
import random
import shutil
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

PROJECT = Path(__file__).resolve().parents[2]
NAMES = ("snli", "multinli_matched", "multinli_mismatched", "piqa", "cosmosqa")
LABELS = ("entailment", "neutral", "contradiction")
ARCHIVES = ("snli_1.0", "multinli_1.0", "physicaliqa-train-dev")
SETTINGS: dict[str, dict[str, Any]] = {
    "snli": {"filter": {"train_size": 0.2, "slice_size": 0.1, "max_rounds": 4}, "fine_tune": {"max_length": 32}},
    "multinli_matched": {
        "filter": {"train_size": 0.2, "slice_size": 0.1, "max_rounds": 3},
        "fine_tune": {"max_length": 40},
    },
    "multinli_mismatched": {"filter": {"max_rounds": 2}, "fine_tune": {"max_length": 40}},
    "piqa": {"filter": {"train_size": 0.3, "slice_size": 0.1, "max_rounds": 3}, "fine_tune": {"max_length": 32}},
    "cosmosqa": {"filter": {"train_size": 0.3, "slice_size": 0.15, "max_rounds": 2}, "fine_tune": {"max_length": 64}},
}
"""Settings of the rows in place of the study's: quick ones, and another length of chain for each."""

AGENTS = ("baker", "pilot", "gardener", "nurse", "carpenter", "sailor", "teacher", "drummer", "farmer", "clerk")
LOOKS = ("tall", "young", "tired", "cheerful", "old", "quiet")
DEEDS = (
    ("carries", "carrying"),
    ("paints", "painting"),
    ("mends", "mending"),
    ("sells", "selling"),
    ("washes", "washing"),
)
THINGS = ("ladder", "boat", "lantern", "basket", "bicycle", "fence", "kettle", "drum", "cart", "clock")
PLACES = ("harbour", "market", "orchard", "workshop", "station", "courtyard")
MOODS = ("for a friend", "before the holiday", "because of the rain", "to earn some money", "for the first time")
TOOLS = {"ladder": "rope", "boat": "tar", "lantern": "oil", "basket": "willow", "bicycle": "spanner"}
TOOLS |= {"fence": "hammer", "kettle": "sponge", "drum": "mallet", "cart": "grease", "clock": "tweezers"}
GENRES = (("fiction", "government"), ("letters", "verbatim"))


def write_files(folder: Path, *, n_train: int = 360, n_evaluation: int = 180) -> None:
    """Write all files below `folder`, about `n_train` and `n_evaluation` rows of each data set."""
    for name, write in {"snli": _snli, "multinli": _multinli, "piqa": _piqa, "cosmosqa": _cosmosqa}.items():
        write(folder, random.Random(name), n_train, n_evaluation)


def write_archives(folder: Path, files: Path) -> None:
    """Write the archives that the authors give out, of what `write_files` wrote to `files`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ARCHIVES:
        with zipfile.ZipFile(folder / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"__MACOSX/{name}/._README.txt", b"\0")
            archive.writestr(f"{name}/README.txt", "What is in here.\n")
            for path in sorted((files / name).iterdir()):
                archive.write(path, f"{name}/{path.name}")
    for name in ("cosmosqa", "chaosNLI_v1.0"):
        shutil.copytree(files / name, folder / name, dirs_exist_ok=True)


def dataset_rows(folder: Path) -> dict[str, dict[str, Any]]:
    """Rows of the data sets table that read the files in `folder`: the project's with other sources and settings."""
    shipped = yaml.safe_load((PROJECT / "config" / "datasets.yaml").read_text(encoding="utf-8"))
    rows = {}
    for name in NAMES:
        row = {**shipped[name], **SETTINGS[name]}
        keys = ("train", "evaluation", "train_labels", "evaluation_labels")
        place = folder / "cosmosqa" if name == "cosmosqa" else folder
        named = {key: str(place / row["source"][key]) for key in keys if key in row["source"]}
        row |= {"title": f"Miniature of {row['title']}", "licence": "CC0-1.0", "source": {"kind": "file", **named}}
        row |= {"citation": "Invented for the tests.", "homepage": ""}
        if row.get("more_annotators"):
            path = folder / "chaosNLI_v1.0" / row["more_annotators"]["source"]["file"]
            row["more_annotators"] = {**row["more_annotators"], "source": {"kind": "file", "file": str(path)}}
        rows[name] = row
    return rows


def write_table(folder: Path) -> Path:
    """Write the files and `datasets.yaml` to `folder`; the path of the latter."""
    write_files(folder)
    path = folder / "datasets.yaml"
    path.write_text(yaml.safe_dump(dataset_rows(folder), sort_keys=False), encoding="utf-8")
    return path


def _pairs(rng: random.Random, n: int) -> Iterator[tuple[int, str, str, str, str | None, list[str]]]:
    """Number of the premise, premise, hypothesis, intended label, gold label (None: no majority), five votes."""
    scenes = list(itertools.product(LOOKS, AGENTS, DEEDS, THINGS, PLACES))
    for number, scene in enumerate(rng.sample(scenes, -(-n // len(LABELS)))):
        look, agent, (deed, doing), thing, place = scene
        premise = f"A {look} {agent} {deed} a {thing} in the {place}."
        other = rng.choice([t for t in THINGS if t != thing])
        for label, hypothesis in {
            "entailment": f"Someone is {doing} a {thing}.",
            "neutral": f"The {agent} is {doing} the {thing} {rng.choice(MOODS)}.",
            "contradiction": f"The {agent} is asleep and has only a {other}.",
        }.items():
            votes = _votes(rng, label)
            top, count = Counter(votes).most_common(1)[0]
            yield number, premise, hypothesis, label, top if count >= 3 else None, votes


def _votes(rng: random.Random, label: str) -> list[str]:
    """Five votes, the writer's own first: most often all alike, sometimes without a majority."""
    others = [name for name in LABELS if name != label]
    n_other = rng.choices((0, 1, 2, 3), (6, 3, 4, 1))[0]
    rest = [others[i % 2] for i in range(n_other)] + [label] * (4 - n_other)
    return [label, *rng.sample(rest, 4)]


def _tree(sentence: str) -> tuple[str, str]:
    words = sentence.removesuffix(".").split()
    return f"( {' '.join(words)} . )", f"(ROOT (S {' '.join(f'(NN {word})' for word in words)} (. .)))"


def _nli_record(pair: tuple, annotated: bool, keys: dict[str, str]) -> dict[str, Any]:
    """One line of SNLI's or MultiNLI's JSONL; rows that were not validated have the writer's label alone."""
    _, premise, hypothesis, label, gold, votes = pair
    (binary1, parse1), (binary2, parse2) = _tree(premise), _tree(hypothesis)
    return {
        "annotator_labels": votes if annotated else [label],
        **keys,
        "gold_label": (gold or "-") if annotated else label,
        "sentence1": premise,
        "sentence1_binary_parse": binary1,
        "sentence1_parse": parse1,
        "sentence2": hypothesis,
        "sentence2_binary_parse": binary2,
        "sentence2_parse": parse2,
    }


def _snli(folder: Path, rng: random.Random, n_train: int, n_evaluation: int) -> None:
    pairs = list(_pairs(rng, n_train + n_evaluation))
    lines: dict[str, list[dict[str, Any]]] = {"train": [], "dev": []}
    for i, pair in enumerate(pairs):
        split = "train" if i < n_train else "dev"
        caption = f"{4000000000 + pair[0]}.jpg#{pair[0] % 5}"
        keys = {"captionID": caption, "pairID": f"{caption}r1{pair[3][0]}"}
        lines[split].append(_nli_record(pair, split == "dev" or i % 10 == 0, keys))
    for split, records in lines.items():
        _write_jsonl(folder / "snli_1.0" / f"snli_1.0_{split}.jsonl", records)
    _write_chaos(folder / "chaosNLI_v1.0" / "chaosNLI_snli.jsonl", rng, lines["dev"], "snli_agree_3")


def _multinli(folder: Path, rng: random.Random, n_train: int, n_evaluation: int) -> None:
    pairs = list(_pairs(rng, n_train + 2 * n_evaluation))
    lines: dict[str, list[dict[str, Any]]] = {"train": [], "dev_matched": [], "dev_mismatched": []}
    for i, pair in enumerate(pairs):
        split = "train" if i < n_train else "dev_matched" if i < n_train + n_evaluation else "dev_mismatched"
        prompt = str(10000 + pair[0])
        keys = {"genre": rng.choice(GENRES[split == "dev_mismatched"])}
        record = _nli_record(pair, split != "train", keys)
        lines[split].append({**record, "promptID": prompt, "pairID": f"{prompt}{pair[3][0]}"})
    for split, records in lines.items():
        _write_jsonl(folder / "multinli_1.0" / f"multinli_1.0_{split}.jsonl", records)
    _write_chaos(folder / "chaosNLI_v1.0" / "chaosNLI_mnli_m.jsonl", rng, lines["dev_matched"], "mnli_agree_3")


def _write_chaos(path: Path, rng: random.Random, dev: list[dict[str, Any]], source: str) -> None:
    """A hundred votes for every row of 3 votes in 5, in the order e, n, c where order counts."""
    records = []
    for record in dev:
        old = Counter(record["annotator_labels"])
        if old[record["gold_label"]] != 3:
            continue
        weights = [old[name] + rng.random() for name in LABELS]
        counts = Counter(name[0] for name in rng.choices(LABELS, weights, k=100))
        shown = [counts[name[0]] for name in LABELS]
        records.append(
            {
                "uid": record["pairID"],
                "label_counter": dict(counts),
                "majority_label": counts.most_common(1)[0][0],
                "label_dist": [n / 100 for n in shown],
                "label_count": shown,
                "example": {
                    "uid": record["pairID"],
                    "premise": record["sentence1"],
                    "hypothesis": record["sentence2"],
                    "source": source,
                },
                "old_label": record["gold_label"][0],
                "old_labels": record["annotator_labels"],
            }
        )
    _write_jsonl(path, records)


def _piqa(folder: Path, rng: random.Random, n_train: int, n_evaluation: int) -> None:
    goals = [(doing, thing, place) for _, doing in DEEDS for thing in THINGS for place in PLACES]
    rng.shuffle(goals)
    for split, n, own in (("train", n_train, goals[0::2]), ("dev", n_evaluation, goals[1::2])):
        records, labels = [], []
        for i in range(n):
            doing, thing, place = own[i % len(own)]
            wrong = rng.choice([tool for other, tool in TOOLS.items() if other != thing])
            label, manner = rng.randrange(2), rng.choice(("slowly", "with care", "in the morning", "twice", "at last"))
            answers = [f"Use the {tool} on it {manner}, number {i}." for tool in (TOOLS[thing], wrong)]
            right, left = answers if label == 0 else answers[::-1]
            records.append({"goal": f"When {doing} a {thing} in the {place},", "sol1": right, "sol2": left})
            labels.append(label)
        place_of = folder / "physicaliqa-train-dev"
        _write_jsonl(place_of / f"{split}.jsonl", records)
        (place_of / f"{split}-labels.lst").write_text("".join(f"{label}\n" for label in labels), encoding="utf-8")


def _cosmosqa(folder: Path, rng: random.Random, n_train: int, n_evaluation: int) -> None:
    scenes = list(itertools.product(AGENTS, DEEDS, THINGS, PLACES))
    rng.shuffle(scenes)
    (folder / "cosmosqa").mkdir(parents=True, exist_ok=True)
    header = ["id", "context", "question", "answer0", "answer1", "answer2", "answer3", "label"]
    for split, n in (("train", n_train), ("valid", n_evaluation)):
        rows = []
        while len(rows) < n:
            agent, (deed, _), thing, place = scenes.pop()
            context = (
                f'The {agent} {deed} a {thing}, and says: "we need more {TOOLS[thing]}".\nThen all go to the {place}.'
            )
            for question, right, pool in (
                (f"Where will the {agent} be later?", place, PLACES),
                (f"What does the {agent} need?", TOOLS[thing], tuple(TOOLS.values())),
            ):
                wrong = rng.sample([name for name in pool if name != right], 2)
                label = rng.randrange(4)
                answers = [f"The {name}, it seems." for name in wrong] + ["None of the above choices ."]
                answers.insert(label, f"The {right}, it seems.")
                key = f"{rng.getrandbits(64):016x}##{len(rows)}##{split}"
                rows.append([key, context, question, *answers, label])
        with (folder / "cosmosqa" / f"{split}.csv").open("w", encoding="utf-8", newline="") as handle:
            csv.writer(handle, lineterminator="\n").writerows([header, *rows])


def _write_jsonl(path: Path, records: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tests/miniature/data.py FOLDER")
    print(write_table(Path(sys.argv[1]).resolve()))
