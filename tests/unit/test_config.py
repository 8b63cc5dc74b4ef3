"""A wrong configuration is one line that names key, found and allowed; a right one is completed."""

from __future__ import annotations

import dataclasses
import json
from collections import OrderedDict
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from advsets import config, schemas, variants
from advsets.aflite.settings import FilterSettings
from advsets.errors import UserError
from advsets.registry import DatasetRow, ModelRow
from advsets.tables import TABLES

PROJECT = Path(__file__).resolve().parents[2]
SCHEMAS = ("config", "datasets", "models", "figures")
RUN = {"run": "r", "datasets": ["pairs"], "adversaries": ["small"], "evaluated_models": ["small", "large"]}
DATASETS = {
    "pairs": {
        "title": "Pairs",
        "task": "sequence_classification",
        "label_order": ["yes", "no"],
        "labels": {1: "yes", 0: "no"},
        "source": {"kind": "file", "train": "train.csv", "evaluation": "dev.csv"},
    },
    "choices": {
        "title": "Choices",
        "task": "multiple_choice",
        "columns": {"candidates": ["a", "b"]},
        "source": {"kind": "hub", "repo": "some/choices", "train": "train", "evaluation": "validation"},
    },
}
MORE = {
    "title": "Many",
    "columns": {"source_id": "uid", "label_count": "counter"},
    "source": {"kind": "file", "file": "votes.jsonl"},
}
MODELS = {
    "small": {"family": "f", "source": {"kind": "hub", "repo": "some/small"}, "fine_tune": {"epochs": 1}},
    "large": {"family": "f", "source": {"kind": "path", "path": "large"}},
}


class Files:
    """A configuration and its tables, to be changed and then loaded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run: dict[str, Any] = deepcopy(RUN)
        self.datasets: dict[Any, Any] = deepcopy(DATASETS)
        self.models: dict[Any, Any] = deepcopy(MODELS)

    def load(self) -> dict[str, Any]:
        (self.folder / "config").mkdir(exist_ok=True)
        for name, table in (("datasets", self.datasets), ("models", self.models)):
            path = self.folder / "config" / f"{name}.yaml"
            path.write_text(yaml.safe_dump(table, sort_keys=False), encoding="utf-8")
        return config.load_run_config(self.run, self.folder)

    def message(self) -> str:
        with pytest.raises(UserError) as caught:
            self.load()
        message = str(caught.value)
        assert "\n" not in message
        return message.replace(f"{self.folder}/", "")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def change(path: str, value: Any) -> Callable[[Files], None]:
    """Set the value at a dotted path that starts with `run`, `datasets` or `models`."""

    def apply(files: Files) -> None:
        first, *between, last = path.split(".")
        node = getattr(files, first)
        for key in between:
            node = node.setdefault(key, {})
        node[last] = value

    return apply


def remove(path: str) -> Callable[[Files], None]:
    def apply(files: Files) -> None:
        first, *between, last = path.split(".")
        node = getattr(files, first)
        for key in between:
            node = node[key]
        del node[last]

    return apply


SIZE = "a count (integer from 1) or a share (below 1)"
NAME = "letters, digits, `_`, `.` and `-`, the first a letter or digit"
BAD: dict[str, tuple[Callable[[Files], None], str]] = {
    "unknown key": (
        change("run.filtr", {}),
        "configuration: unknown key 'filtr'; allowed: run, seed, dataset_tables, model_tables, prediction_tables,"
        " datasets, adversaries, evaluated_models, fine_tuning_seeds, split, fine_tune, embed, filter, ensembles,"
        " leave_one_family_out, sensitivity, collections, question_answering, evaluate, figures, device, cluster,"
        " cost, threads; did you mean 'filter'?",
    ),
    "unknown key like no other": (
        change("run.threads.zzz", 1),
        "configuration: threads: unknown key 'zzz'; allowed: fine_tune, embed, filter; remove it",
    ),
    "unknown nested key": (
        change("run.fine_tune.learning_rat", 1),
        "configuration: fine_tune: unknown key 'learning_rat'; allowed: learning_rate, epochs, batch_size, max_length,"
        " warmup_share, weight_decay, gradient_clip, tokens_per_pass, gradient_checkpointing, selection_share,"
        " checkpoint_every_steps, max_train_examples;"
        " did you mean 'learning_rate'?",
    ),
    "unknown filter key of a data set": (
        change("datasets.pairs.filter", {"treshold": 0.7}),
        "data set pairs: filter: unknown key 'treshold'; allowed: n_partitions, train_size, slice_size, threshold,"
        " comparison, min_retained, max_rounds, target_size, one_shot, stop_at_chance, use_groups, standardise, C,"
        " tolerance, max_passes, rounds_per_job; did you mean 'threshold'?",
    ),
    "wrong filter value of a data set": (
        change("datasets.pairs.filter", {"train_size": 1.5}),
        f"data set pairs: filter: train_size: found 1.5; allowed: {SIZE} (",
    ),
    "infinite filter value of a data set": (
        change("datasets.pairs.filter", {"C": float("inf")}),
        "config/datasets.yaml: pairs.filter.C: found inf; allowed: a finite number; correct it",
    ),
    "fine-tuning of a data set": (
        change("datasets.pairs.fine_tune", {"epochs": 0}),
        "data set pairs: fine_tune: epochs: found 0; allowed: 1 or more (",
    ),
    "chain of a data set that is too long": (
        change("datasets.pairs.filter", {"max_rounds": 1000}),
        "data set pairs: filter.max_rounds: found 1000, which makes a chain of 1000 jobs; allowed: 999 jobs;",
    ),
    "threshold above which nothing lies": (
        change("datasets.pairs.filter", {"threshold": 1}),
        "data set pairs: filter.threshold: found 1 with comparison more_than, above which nothing lies; allowed: below"
        " 1, or 1 with comparison at_least; correct one of them",
    ),
    "missing key": (
        remove("run.adversaries"),
        "configuration: key 'adversaries' is missing; add it (Rows of the models tables that filter.)",
    ),
    "wrong type": (
        change("run.filter.n_partitions", "many"),
        "configuration: filter.n_partitions: found 'many'; allowed: type integer (Classifiers per round.); correct it",
    ),
    "number that YAML reads as text": (
        change("run.fine_tune.learning_rate", "2e-5"),
        "configuration: fine_tune.learning_rate: found '2e-5'; allowed: type number (Peak learning rate of AdamW.);"
        " write 2.0e-05 without quotes: YAML reads '2e-5' as text",
    ),
    "number in quotes": (
        change("run.fine_tune.epochs", "3"),
        "configuration: fine_tune.epochs: found '3'; allowed: type integer (Passes over the training rows.);"
        " write 3 without quotes: YAML reads '3' as text",
    ),
    "boolean for a number": (
        change("run.seed", True),
        "configuration: seed: found True; allowed: type integer (Seed of splits, subsets, partitions and resampling.);"
        " correct it",
    ),
    "section left empty": (
        change("run.filter", None),
        "configuration: filter: found None; allowed: type object (AFLite. Numbers below 1 are shares of the training"
        " rows, from 1 up counts. A data set's row may override any key.); correct it",
    ),
    "out of range": (
        change("run.filter.threshold", 1.5),
        "configuration: filter.threshold: found 1.5; allowed: at most 1 (Predictability above which a row may go.);"
        " correct it",
    ),
    "share of nothing": (
        change("run.split.adversary_fraction", 0),
        "configuration: split.adversary_fraction: found 0; allowed: above 0 (Share of train, drawn by group, that"
        " fine-tunes the adversary and is kept out of filtering.); correct it",
    ),
    "share of all": (
        change("run.split.adversary_fraction", 1),
        "configuration: split.adversary_fraction: found 1; allowed: below 1 (",
    ),
    "count below 1": (
        change("run.filter.max_rounds", 0),
        "configuration: filter.max_rounds: found 0; allowed: 1 or more (Rounds at most.); correct it",
    ),
    "neither count nor share": (
        change("run.filter.train_size", 1.5),
        f"configuration: filter.train_size: found 1.5; allowed: {SIZE} (Training rows each classifier is fitted on.);",
    ),
    "neither count nor share, nullable": (
        change("run.filter.target_size", 10.5),
        f"configuration: filter.target_size: found 10.5; allowed: {SIZE} (",
    ),
    "not finite": (
        change("run.filter.C", float("inf")),
        "configuration: filter.C: found inf; allowed: a finite number; correct it",
    ),
    "not a number": (
        change("run.filter.threshold", float("nan")),
        "configuration: filter.threshold: found nan; allowed: a finite number; correct it",
    ),
    "more jobs than a chain numbers": (
        change("run.filter.max_rounds", 5000),
        "configuration: filter.max_rounds: found 5000, which makes a chain of 5000 jobs; allowed: 999 jobs;"
        " raise filter.rounds_per_job or lower filter.max_rounds",
    ),
    "no such choice": (
        change("run.embed.dtype", "flaot16"),
        "configuration: embed.dtype: found 'flaot16'; allowed: float32, float16; did you mean 'float16'?",
    ),
    "empty list": (
        change("run.datasets", []),
        "configuration: key 'datasets' is missing; add it (Rows of the data sets tables to filter. Empty: nothing is"
        " filtered.)",
    ),
    "duplicate names": (
        change("run.evaluated_models", ["small", "small"]),
        "configuration: evaluated_models: found ['small', 'small']; allowed: each entry once (Rows of the models tables"
        " that are scored.); correct it",
    ),
    "duplicate seeds": (
        change("run.fine_tuning_seeds.adversary", [1, 1]),
        "configuration: fine_tuning_seeds.adversary: found [1, 1]; allowed: each entry once (",
    ),
    "run that is no folder name": (
        change("run.run", "../elsewhere"),
        f"configuration: run: found '../elsewhere'; allowed: {NAME} (Name of the folder under results/, other than"
        " downloads, bench and slurm_logs.); correct it",
    ),
    "hidden run": (
        change("run.run", ".mine"),
        f"configuration: run: found '.mine'; allowed: {NAME} (",
    ),
    **{
        f"run {name} that others share": (
            change("run.run", name),
            f"configuration: run: found '{name}'; allowed: any name but downloads, bench, slurm_logs, which are folders"
            " of results/ that all runs share; choose another",
        )
        for name in ("downloads", "bench", "slurm_logs", "Downloads")
    },
    "fraction beside evaluation rows": (
        change("datasets.pairs.evaluation_fraction", 0.2),
        "data set pairs: evaluation_fraction 0.2 beside source.evaluation 'dev.csv'; allowed: one of the two;"
        " remove the other",
    ),
    "checksum of a download that is none": (
        change("datasets.pairs.source", {"kind": "url", "url": "http://h/a.zip", "train": "a", "sha256": "abc"}),
        "config/datasets.yaml: pairs.source.sha256: found 'abc'; allowed: 64 hexadecimal digits (",
    ),
    "checksum in a folder that is none": (
        change("datasets.pairs.source", {"kind": "url", "url": "http://h/", "train": "a", "sha256": {"a": "abc"}}),
        "config/datasets.yaml: pairs.source.sha256.a: found 'abc'; allowed: 64 hexadecimal digits; correct it",
    ),
    "unknown data set": (
        change("run.datasets", ["pears"]),
        "datasets: no row 'pears' in config/datasets.yaml; allowed: pairs, choices; did you mean 'pairs'?",
    ),
    "unknown adversary": (
        change("run.adversaries", ["bert"]),
        "adversaries: no row 'bert' in config/models.yaml; allowed: small, large; correct it or add the row",
    ),
    "unknown evaluated model": (
        change("run.evaluated_models", ["larg"]),
        "evaluated_models: no row 'larg' in config/models.yaml; allowed: small, large; did you mean 'large'?",
    ),
    "table that is not there": (
        change("run.dataset_tables", ["config/mine.yaml"]),
        "config/mine.yaml: no such file; correct the path in the configuration",
    ),
    "table that is a folder": (
        change("run.dataset_tables", ["config"]),
        "config: it is a folder where a file was expected: check the path",
    ),
    "same table twice": (
        change("run.model_tables", ["config/models.yaml", "config/models.yaml"]),
        "config/models.yaml: row 'small' stands in another table too; rename one of them",
    ),
    "row name with a slash": (
        change("datasets.a/b", DATASETS["pairs"]),
        f"config/datasets.yaml: found 'a/b'; allowed: {NAME}; correct it",
    ),
    "row name that is a number": (
        lambda files: files.models.update({2024: MODELS["small"]}),
        "config/models.yaml: found 2024; allowed: type string; write it in quotes",
    ),
    "row without source": (
        remove("datasets.pairs.source"),
        "config/datasets.yaml: pairs: key 'source' is missing; add it (Where the raw data comes from.)",
    ),
    "row that is no mapping": (
        change("models.small", "bert-base"),
        "config/models.yaml: small: found 'bert-base'; allowed: type object; correct it",
    ),
    "source without kind": (
        remove("datasets.pairs.source.kind"),
        "config/datasets.yaml: pairs.source: key 'kind' is missing; add it",
    ),
    "source of no kind": (
        change("datasets.pairs.source.kind", "fil"),
        "config/datasets.yaml: pairs.source: found kind 'fil'; allowed: pypi, hub, url, file; did you mean 'file'?",
    ),
    "source of a kind of another table": (
        change("models.small.source.kind", "url"),
        "config/models.yaml: small.source: found kind 'url'; allowed: hub, path, package; correct it",
    ),
    "missing key in the source of a kind": (
        remove("datasets.pairs.source.train"),
        "config/datasets.yaml: pairs.source: key 'train' is missing; add it (",
    ),
    "unknown key in the source of a kind": (
        change("datasets.pairs.source.trian", "x.csv"),
        "config/datasets.yaml: pairs.source: unknown key 'trian'; allowed: kind, train, evaluation, train_labels,"
        " evaluation_labels; did you mean 'train'?",
    ),
    "checksum that is none": (
        change(
            "datasets.pairs.source",
            {"kind": "pypi", "package": "p", "version": "1", "sha256": "abc", "reader": "r"},
        ),
        "config/datasets.yaml: pairs.source.sha256: found 'abc'; allowed: 64 hexadecimal digits"
        " (Checksum of the source archive.); correct it",
    ),
    "label outside label_order": (
        change("datasets.pairs.labels", {1: "yes", 0: "nein"}),
        "data set pairs: labels maps '0' to 'nein', which label_order does not hold; allowed: yes, no;"
        " correct one of them",
    ),
    "one label only": (
        change("datasets.pairs.label_order", ["yes"]),
        "data set pairs: label_order has 1 names; allowed: two or more; add them",
    ),
    "label twice": (
        change("datasets.pairs.label_order", ["yes", "no", "yes"]),
        "config/datasets.yaml: pairs.label_order: found ['yes', 'no', 'yes']; allowed: each entry once (",
    ),
    "label that is class and none": (
        change("datasets.pairs.other_labels", ["no"]),
        "data set pairs: label 'no' stands in label_order and in other_labels; allowed: one of the two;"
        " remove it from the other",
    ),
    "label that YAML reads as a boolean": (
        change("datasets.pairs.label_order", ["yes", False]),
        "config/datasets.yaml: pairs.label_order.1: found False; allowed: type string; write it in quotes",
    ),
    "more annotators of a multiple-choice set": (
        lambda files: (
            change("run.datasets", ["choices"])(files),
            change("datasets.choices.more_annotators", MORE)(files),
        )[0],
        "data set choices: more_annotators: found beside task multiple_choice; allowed: sequence_classification;"
        " remove it",
    ),
    "more annotators without their labels": (
        change("datasets.pairs.more_annotators", {**MORE, "columns": {"source_id": "uid"}}),
        "data set pairs: more_annotators: columns: found neither of label_count and annotator_labels; allowed: one of"
        " the two; add or remove one",
    ),
    "more annotators in two columns": (
        change(
            "datasets.pairs.more_annotators",
            {**MORE, "columns": {"source_id": "uid", "label_count": "a", "annotator_labels": "b"}},
        ),
        "data set pairs: more_annotators: columns: found both of label_count and annotator_labels; allowed: one of the"
        " two; add or remove one",
    ),
    "label of more annotators outside label_order": (
        change("datasets.pairs.more_annotators", {**MORE, "labels": {"n": "nein"}}),
        "data set pairs: more_annotators: labels maps 'n' to 'nein', which label_order does not hold; allowed: yes,"
        " no;",
    ),
    "source of more annotators of another kind": (
        change("datasets.pairs.more_annotators", {**MORE, "source": {"kind": "hub", "file": "a"}}),
        "config/datasets.yaml: pairs.more_annotators.source: found kind 'hub'; allowed: url, file; correct it",
    ),
    "multiple choice without candidates": (
        lambda files: (
            change("run.datasets", ["choices"])(files),
            change("datasets.choices.columns", {})(files),
        )[0],
        "data set choices: columns.candidates is missing; multiple choice needs it; add it",
    ),
    "unknown column": (
        change("datasets.pairs.columns", {"txt_a": "sentence"}),
        "config/datasets.yaml: pairs.columns: unknown key 'txt_a'; allowed: example_id, source_id, text_a, text_b,"
        " candidates, label, group_id, annotator_labels, label_count, low_agreement; did you mean 'text_a'?",
    ),
    "unknown evaluation column": (
        change("datasets.pairs.evaluation_columns", {"labels": "gold"}),
        "config/datasets.yaml: pairs.evaluation_columns: found 'labels'; allowed: example_id, source_id, text_a,"
        " text_b, candidates, label, group_id, annotator_labels, label_count, low_agreement; did you mean 'label'?",
    ),
    "unknown fine-tuning key of a model": (
        change("models.small.fine_tune", {"lr": 1}),
        "model small: fine_tune: unknown key 'lr'; allowed: learning_rate, epochs, batch_size, max_length,"
        " warmup_share, weight_decay, gradient_clip, tokens_per_pass, gradient_checkpointing, selection_share,"
        " checkpoint_every_steps, max_train_examples;"
        " remove it",
    ),
    "wrong fine-tuning value of a model": (
        change("models.large.fine_tune", {"epochs": 0}),
        "model large: fine_tune: epochs: found 0; allowed: 1 or more (Passes over the training rows.); correct it",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_configuration_is_one_line(files: Files, case: str) -> None:
    apply, expected = BAD[case]
    apply(files)
    message = files.message()
    assert message[: len(expected)] == expected
    assert len(message) == len(expected) or expected.endswith(("(", ";"))


def test_long_values_are_shortened(files: Files) -> None:
    files.run["figures"] = {"key" * 100: 1}
    assert len(files.message()) < 300


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a:\n  b: [1, 2\nc: 3\n", "t.yaml, line 3: not valid YAML (expected ',' or ']', but got ':'); mend the file"),
        ("a: 1\n\tb: 2\n", "t.yaml, line 2: not valid YAML ("),
        (
            "a: {b: 1}\nc: {d: 1,\n  e: 2, d: 3}\n",
            "t.yaml, line 3: not valid YAML (key 'd' is given twice); mend the file",
        ),
        ("- a\n- b\n", "t.yaml: found a list; allowed: a mapping of keys to values; mend the file"),
        ("just text\n", "t.yaml: found a str; allowed: a mapping of keys to values; mend the file"),
        (b"a: \xff\xfe\n", "t.yaml: not valid YAML ("),
        ("a: \x00\n", "t.yaml: not valid YAML ("),
        ("a: 2024-13-45\n", "t.yaml: not valid YAML ("),
        ("a: " + "[" * 20_000, "t.yaml: not valid YAML (brackets are nested too deep); mend the file"),
    ],
)
def test_broken_yaml_names_the_line(tmp_path: Path, content: str | bytes, expected: str) -> None:
    path = tmp_path / "t.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError) as caught:
        config.read_yaml(path)
    assert str(caught.value).replace(f"{tmp_path}/", "").startswith(expected)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("run: a\nrun: b\n", "c, line 2: not valid YAML (key 'run' is given twice); mend the file"),
        ("filter: {C: 1, C: 2}\n", "c, line 1: not valid YAML (key 'C' is given twice); mend the file"),
        ('{"run": "a",\n\t"filter": {"C": 1, "C": 2}}', "c: key 'C' stands twice in an object; mend the file"),
        ("run: a\n\tseed: 2\n", "c, line 2: not valid YAML ("),
        ("[1, 2]", "c: found a list; allowed: a mapping of keys to values; mend the file"),
    ],
)
def test_configuration_files_are_read_strictly(tmp_path: Path, content: str, expected: str) -> None:
    (tmp_path / "fine").write_text("run: a\nfilter: {C: 1}\n", encoding="utf-8")
    (tmp_path / "fine.json").write_text('{\n\t"run": "a"\n}', encoding="utf-8")
    fine = [tmp_path / "fine", str(tmp_path / "fine.json")]
    config.check_config_files(fine)
    config.check_config_files([])
    (tmp_path / "c").write_text(content, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        config.check_config_files([*fine, tmp_path / "c"])
    assert str(caught.value).replace(f"{tmp_path}/", "").startswith(expected)
    assert "\n" not in str(caught.value)


def test_checksums_may_be_in_capitals(files: Files) -> None:
    files.datasets["pairs"]["source"] = {"kind": "url", "url": "http://h/a.zip", "train": "a", "sha256": "AB" * 32}
    assert files.load()["dataset_rows"]["pairs"]["source"]["sha256"] == "AB" * 32


def test_yaml_merges_and_anchors_are_no_duplicates(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("a: &a {x: 1, y: 2}\nb: &b {<<: *a, y: 3}\nc: {<<: *b}\nd: *b\n", encoding="utf-8")
    assert config.read_yaml(tmp_path / "t.yaml")["d"] == {"x": 1, "y": 3}
    (tmp_path / "t.yaml").write_text("# nothing\n", encoding="utf-8")
    assert config.read_yaml(tmp_path / "t.yaml") == {}


def test_defaults_fill_in_at_every_depth(files: Files) -> None:
    files.run["filter"] = {"threshold": 0.9}
    filled = files.load()
    assert filled["filter"]["threshold"] == 0.9
    assert filled["filter"]["n_partitions"] == 64
    assert filled["fine_tuning_seeds"] == {"adversary": [0], "evaluated_model": [0]}
    row = filled["dataset_rows"]["pairs"]
    assert row["columns"]["text_a"] == "text" and row["columns"]["candidates"] is None
    assert row["source"] == {
        "kind": "file",
        "train": "train.csv",
        "evaluation": "dev.csv",
        "train_labels": None,
        "evaluation_labels": None,
    }
    assert filled["model_rows"]["small"]["source"]["revision"] == "main"
    assert list(filled["dataset_rows"]) == ["pairs"] and list(filled["model_rows"]) == ["small", "large"]


def test_filling_changes_neither_the_input_nor_the_schema(files: Files) -> None:
    before = json.dumps([files.run, [schemas.schema(name) for name in SCHEMAS]])
    filled = files.load()
    filled["fine_tuning_seeds"]["adversary"].append(1)
    filled["fine_tune"]["epochs"] = 99
    assert json.dumps([files.run, [schemas.schema(name) for name in SCHEMAS]]) == before
    assert files.load()["fine_tuning_seeds"]["adversary"] == [0]


def test_completed_configuration_validates_to_itself(files: Files) -> None:
    filled = files.load()
    hints = filled.pop("cost_hints")
    assert filled.pop("collected_rows") == {"datasets": {}, "models": {}, "imported": {}}
    tables = {"datasets": filled.pop("dataset_rows"), "models": filled.pop("model_rows")}
    assert schemas.validate(filled, "config", "again") == filled
    for name, rows in tables.items():
        whole = {key: {**row, "cost": hints[name][key]} for key, row in rows.items()}
        assert schemas.validate(whole, name, "again") == whole


def test_sizes_for_the_estimate_of_cost_reach_no_step(files: Files) -> None:
    before = files.load()
    files.datasets["pairs"]["cost"], files.models["small"]["cost"] = {"n_train": 5}, {"hidden_size": 7}
    after = files.load()
    assert (
        after["cost_hints"]["datasets"]["pairs"]["n_train"],
        after["cost_hints"]["models"]["small"]["hidden_size"],
    ) == (5, 7)
    assert (after["dataset_rows"], after["model_rows"]) == (before["dataset_rows"], before["model_rows"])
    row = config.read_rows([files.folder / "config/models.yaml"], "models")["small"]
    assert row["cost"]["hidden_size"] == 7 and ModelRow.from_config("small", row).name == "small"


def test_a_table_of_ones_own_adds_rows(files: Files) -> None:
    (files.folder / "mine.yaml").write_text(yaml.safe_dump({"mine": DATASETS["pairs"]}), encoding="utf-8")
    files.run |= {"datasets": ["mine", "pairs"], "dataset_tables": ["config/datasets.yaml", "mine.yaml"]}
    assert list(files.load()["dataset_rows"]) == ["mine", "pairs"]
    paths = [files.folder / path for path in files.run["dataset_tables"]]
    assert set(config.load_datasets(paths)) == {"mine", "pairs", "choices"}


def test_records_of_rows(files: Files) -> None:
    filled = files.load()
    pairs = DatasetRow.from_config("pairs", filled["dataset_rows"]["pairs"])
    assert pairs.labels == {"1": "yes", "0": "no"}
    assert pairs.label_order == ("yes", "no") and not pairs.is_multiple_choice
    assert ModelRow.from_config("small", filled["model_rows"]["small"]).pooling == "first"


def test_labels_are_names_where_no_mapping_is_given(files: Files) -> None:
    del files.datasets["pairs"]["labels"]
    files.datasets["pairs"]["other_labels"] = ["unsure"]
    row = DatasetRow.from_config("pairs", files.load()["dataset_rows"]["pairs"])
    assert row.labels == {"yes": "yes", "no": "no", "unsure": "unsure"}


def test_fine_tuning_of_the_run_then_the_data_set_then_the_model(files: Files) -> None:
    files.run["fine_tune"] = {"epochs": 7, "batch_size": 8, "max_length": 32}
    files.datasets["pairs"]["fine_tune"] = {"epochs": 5, "max_length": 64}
    filled = files.load()
    small, large = (config.fine_tune_settings(filled, "pairs", model) for model in ("small", "large"))
    assert (small["epochs"], large["epochs"]) == (1, 5)
    for settings in (small, large):
        assert (settings["batch_size"], settings["max_length"], settings["weight_decay"]) == (8, 64, 0.01)
    assert filled["fine_tune"]["epochs"] == 7


def test_filter_of_the_run_then_the_data_set(files: Files) -> None:
    files.run |= {"filter": {"max_rounds": 9, "rounds_per_job": 2}, "datasets": ["pairs", "choices"]}
    files.datasets["pairs"]["filter"] = {"max_rounds": 4, "train_size": 0.2}
    filled = files.load()
    pairs, choices = (config.filter_settings(filled, name) for name in ("pairs", "choices"))
    assert (pairs["max_rounds"], pairs["train_size"], pairs["rounds_per_job"]) == (4, 0.2, 2)
    assert (choices["max_rounds"], choices["train_size"]) == (9, 0.1)
    assert (config.n_nodes(pairs), config.n_nodes(choices)) == (2, 5)
    files.datasets["pairs"]["filter"] |= {"threshold": 1, "comparison": "at_least"}
    assert config.filter_settings(files.load(), "pairs")["threshold"] == 1


def test_settings_of_a_data_set_do_not_reach_the_steps_that_read_its_row(files: Files) -> None:
    before = config.without_display(files.load()["dataset_rows"]["pairs"])
    files.datasets["pairs"] |= {"filter": {"max_rounds": 4}, "fine_tune": {"epochs": 5}}
    row = files.load()["dataset_rows"]["pairs"]
    assert config.without_display(row) == before and row["filter"] == {"max_rounds": 4}
    assert DatasetRow.from_config("pairs", row).fine_tune == {"epochs": 5}
    files.datasets["pairs"]["more_annotators"] = deepcopy(MORE)
    more = config.without_display(files.load()["dataset_rows"]["pairs"])
    assert more["more_annotators"]["source"] == MORE["source"] and more["more_annotators"]["labels"] is None
    files.datasets["pairs"]["more_annotators"]["title"] = "Others"
    assert config.without_display(files.load()["dataset_rows"]["pairs"]) == more


def test_memory_settings_and_devices_of_a_model_rerun_nothing(files: Files) -> None:
    before = files.load()
    files.models["small"]["gpus"] = 2
    files.models["small"]["fine_tune"] |= {"tokens_per_pass": 64, "gradient_checkpointing": True}
    after = files.load()
    rows = [config.without_display(loaded["model_rows"]["small"]) for loaded in (before, after)]
    tuning = [config.fine_tune_settings(loaded, "pairs", "small") for loaded in (before, after)]
    assert rows[0] == rows[1] and config.without_memory(tuning[0]) == config.without_memory(tuning[1])
    assert (tuning[0]["tokens_per_pass"], tuning[1]["tokens_per_pass"]) == (None, 64)
    assert after["model_rows"]["small"]["gpus"] == 2 and "epochs" in config.without_memory(tuning[1])


def test_part_leaves_keys_out(files: Files) -> None:
    filled = files.load()
    assert "rounds_per_job" not in config.part(filled, "filter", ["rounds_per_job"])
    assert filled["filter"]["rounds_per_job"] == 1


class TestFigures:
    ROWS = {
        "one": {"tables": ["accuracy"], "caption": "one.rst", "category": "A"},
        "two": {"tables": ["rounds", "retained"], "caption": "two.rst", "category": "B"},
    }

    def load(self, folder: Path, figures: list[str] | None, rows: dict[str, Any]) -> dict[str, Any]:
        (folder / "figures.yaml").write_text(yaml.safe_dump(rows), encoding="utf-8")
        collected = {"datasets": {}, "models": {}, "imported": {}}
        run = {"figures": figures, "datasets": ["pairs"], "collections": {}, "collected_rows": collected}
        return config.load_figures(run, folder / "figures.yaml")

    def test_null_asks_for_all_and_a_list_for_its_own(self, tmp_path: Path) -> None:
        assert list(self.load(tmp_path, None, self.ROWS)) == ["one", "two"]
        assert self.load(tmp_path, ["two"], self.ROWS) == {"two": {"study": "filtering", **self.ROWS["two"]}}
        assert self.load(tmp_path, [], self.ROWS) == {}

    @pytest.mark.parametrize(
        ("figures", "row", "expected"),
        [
            (["thre"], {}, "figures: no row 'thre' in F; allowed: one, three, two; did you mean 'three'?"),
            (None, {"table": ["accuracy"]}, "F: three: unknown key 'table'; allowed: tables, study, caption,"),
            (None, {"tables": ["acuracy"]}, "F: three.tables: no table 'acuracy'; allowed: "),
            (None, {"tables": []}, "F: three.tables: found []; allowed: at least 1 entries ("),
            (None, {"caption": 3}, "F: three.caption: found 3; allowed: type string ("),
        ],
    )
    def test_bad_rows(self, tmp_path: Path, figures: list[str] | None, row: dict[str, Any], expected: str) -> None:
        rows = {**self.ROWS, "three": {**self.ROWS["one"], **row}}
        with pytest.raises(UserError) as caught:
            self.load(tmp_path, figures, rows)
        assert str(caught.value).replace(str(tmp_path / "figures.yaml"), "F").startswith(expected)

    def test_missing_key(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="one: key 'caption' is missing; add it"):
            self.load(tmp_path, None, {"one": {"tables": ["accuracy"], "category": "A"}})


class TestRunConfig:
    def test_is_written_once_and_reads_back(self, files: Files) -> None:
        filled = files.load()
        config.write_run_config(filled, files.folder / "out")
        path = files.folder / "out" / "run_config.yaml"
        assert yaml.safe_load(path.read_text(encoding="utf-8")) == filled
        first = path.stat()
        config.write_run_config(files.load(), files.folder / "out")
        assert (path.stat().st_ino, path.stat().st_mtime_ns) == (first.st_ino, first.st_mtime_ns)
        config.write_run_config({**filled, "seed": 1}, files.folder / "out")
        assert yaml.safe_load(path.read_text(encoding="utf-8"))["seed"] == 1

    def test_ordered_mappings_of_json_configurations(self, files: Files) -> None:
        files.run = json.loads(json.dumps({**RUN, "filter": {"C": 2.0}}), object_pairs_hook=OrderedDict)
        config.write_run_config(files.load(), files.folder / "out")
        assert yaml.safe_load((files.folder / "out" / "run_config.yaml").read_text())["filter"]["C"] == 2.0


def nodes_of(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every subschema with its path."""
    yield path, node
    for key, child in node.get("properties", {}).items():
        yield from nodes_of(child, f"{path}.{key}")
    for index, option in enumerate(node.get("oneOf", [])):
        yield from nodes_of(option, f"{path}({index})")
    if isinstance(node.get("additionalProperties"), dict):
        yield from nodes_of(node["additionalProperties"], f"{path}.*")


FREE_MAPPINGS = {
    "config.collections.*.fine_tune",
    "datasets.*(0).options",
    "datasets.*.filter",
    "datasets.*.fine_tune",
    "datasets.*.labels",
    "models.*.config_overrides",
    "models.*.fine_tune",
}


@pytest.mark.parametrize("name", SCHEMAS)
class TestSchemas:
    def test_is_valid(self, name: str) -> None:
        assert schemas.schema(name)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        jsonschema.Draft202012Validator.check_schema(schemas.schema(name))

    def test_every_property_is_described(self, name: str) -> None:
        for path, node in nodes_of(schemas.schema(name)):
            for key, child in node.get("properties", {}).items():
                assert "const" in child or child.get("description", "").strip(), f"{name}{path}.{key}"

    def test_unknown_keys_are_refused_everywhere(self, name: str) -> None:
        for path, node in nodes_of(schemas.schema(name)):
            if "properties" in node:
                assert node.get("additionalProperties") is False, f"{name}{path}"
                assert set(node.get("required", [])) <= set(node["properties"])
            elif "object" in str(node.get("type")) and "oneOf" not in node and node.get("additionalProperties") is None:
                free = f"{name}{path}".replace(".source", "")
                assert free in FREE_MAPPINGS or free.endswith(".sha256"), free

    def test_keys_are_required_or_have_a_default_that_is_allowed(self, name: str) -> None:
        for path, node in nodes_of(schemas.schema(name)):
            for key, child in node.get("properties", {}).items():
                required = key in node.get("required", [])
                assert required != ("default" in child), f"{name}{path}.{key}"
                if "default" in child:
                    jsonschema.Draft202012Validator(child).validate(schemas._fill(deepcopy(child["default"]), child))


def test_filter_defaults_are_those_of_the_filter() -> None:
    properties = schemas.schema("config")["properties"]["filter"]["properties"]
    found = {key: node["default"] for key, node in properties.items()}
    assert found.pop("rounds_per_job") == 1
    wanted = {field.name: field.default for field in dataclasses.fields(FilterSettings)}
    assert found == wanted
    assert {key: type(value) for key, value in found.items()} == {key: type(value) for key, value in wanted.items()}


@pytest.mark.parametrize(
    "key", ["train_size", "slice_size", "min_retained", "target_size", "threshold", "C", "tolerance"]
)
@pytest.mark.parametrize("value", [None, 0, -1, 0.0, 1e-9, 0.3, 0.999, 1.5, 2, 1000, float("inf")])
def test_schema_and_filter_allow_the_same(files: Files, key: str, value: Any) -> None:
    files.run["filter"] = {key: value}
    try:
        FilterSettings(**{key: value})
    except UserError:
        assert f"filter.{key}: found {value}" in files.message()
    else:
        assert files.load()["filter"][key] == value


@pytest.mark.parametrize("path", sorted(PROJECT.glob("config/*.yaml")), ids=lambda path: path.name)
def test_our_own_files_are_valid(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)
    if path.stem in ("datasets", "models", "predictions", "figures"):
        assert config.read_rows([path], path.stem)
        return
    below = PROJECT / "config" / "demo.yaml" if path.stem == "demo_beyond" else path
    filled = config.load_run_config({**config.read_yaml(below), **config.read_yaml(path)})
    assert variants.ensembles(filled) or path.stem in ("config", "demo", "collected", "demo_collected")
    for name in filled["dataset_rows"]:
        settings = config.filter_settings(filled, name)
        settings.pop("rounds_per_job")
        FilterSettings(**settings)
    assert set(config.load_figures(filled)) <= set(config.read_yaml(PROJECT / "config" / "figures.yaml"))


def test_figure_tables_are_declared() -> None:
    for name, row in config.read_yaml(PROJECT / "config" / "figures.yaml").items():
        assert set(row["tables"]) <= set(TABLES), name


def test_display_fields_do_not_reach_computation() -> None:
    rows = config.read_rows([PROJECT / "config" / "models.yaml"], "models")
    row = rows["minilm_l1"]
    renamed = {**row, "title": "other", "licence": "other", "family": "other", "parameters_m": 1.0}
    assert config.without_display(row) == config.without_display(renamed)
    assert config.without_display(row) != config.without_display({**row, "n_layers": 2})
    assert ModelRow.from_config("minilm_l1", config.without_display(row)).source == row["source"]
