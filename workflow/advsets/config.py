"""Load, check and complete a run's configuration and the tables it names.

Schemas in `workflow/schemas/` hold every key, type and default; unknown keys are refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from advsets import collected
from advsets.errors import UserError, allowed, describe_os_error
from advsets.imported_rows import check_imported, check_loop
from advsets.io import RepeatedKeyError, parse_json, write_text
from advsets.registry import EXTRACTIVE_QA, MULTIPLE_CHOICE, DatasetRow
from advsets.schemas import did_you_mean, explain, schema, validate
from advsets.tables import TABLES

MAX_NODES = 999
"""Nodes are numbered by three digits."""
MEMORY_SETTINGS = ("tokens_per_pass", "gradient_checkpointing")
"""Of fine-tuning: they change results by rounding and the draws of dropout alone."""
RESERVED_RUNS = ("downloads", "bench", "slurm_logs")
"""Folders of results/ that all runs share."""


def load_run_config(config: dict[str, Any], root: Path = Path(".")) -> dict[str, Any]:
    """Checked and completed copy of a run's configuration, with its tables read in.

    Returns
    -------
    dict
        `config` with every default filled, plus `dataset_rows` and `model_rows`: the
        validated rows that the run filters with, by name; `collected_rows`: `datasets`, `models`
        and `imported`, the rows that collections name; and `cost_hints`: `datasets` and `models`,
        by name what the rows had as `cost`, so that no step hangs on it.

    Raises
    ------
    UserError
        On an unknown key, a wrong value, or a name that no table holds.
    """
    filled = validate(config, "config", "configuration")
    _check_run(filled["run"])
    _check_parts(filled)
    _check_filter(filled["filter"], "configuration")
    datasets = read_rows([root / p for p in filled["dataset_tables"]], "datasets")
    models = read_rows([root / p for p in filled["model_tables"]], "models")
    filled["dataset_rows"] = _pick(filled["datasets"], datasets, "datasets", filled["dataset_tables"])
    filled["model_rows"] = {
        **_pick(filled["adversaries"], models, "adversaries", filled["model_tables"]),
        **_pick(filled["evaluated_models"], models, "evaluated_models", filled["model_tables"]),
    }
    filled["collected_rows"] = _collected_rows(filled, datasets, models, root)
    for name, row in all_datasets(filled).items():
        _check_dataset(DatasetRow.from_config(name, row))
        for section in ("filter", "fine_tune"):
            _check_section(f"data set {name}", row, section)
        _check_filter({**filled["filter"], **row["filter"]}, f"data set {name}")
    for name, row in all_models(filled).items():
        _check_section(f"model {name}", row, "fine_tune")
    for name, row in filled["dataset_rows"].items():
        if row["task"] == EXTRACTIVE_QA:
            raise UserError(
                f"datasets: {name!r} has task {EXTRACTIVE_QA}, which AFLite does not filter; allowed:"
                " sequence_classification, multiple_choice; name it under `collections`"
            )
    filled["cost_hints"] = {
        "datasets": {name: row.pop("cost") for name, row in all_datasets(filled).items()},
        "models": {name: row.pop("cost") for name, row in all_models(filled).items()},
    }
    return filled


def all_datasets(config: dict[str, Any]) -> dict[str, Any]:
    """Rows of all data sets of a completed configuration: those that are filtered, then those of collections."""
    return {**config["collected_rows"]["datasets"], **config["dataset_rows"]}


def all_models(config: dict[str, Any]) -> dict[str, Any]:
    """Rows of all models that a completed configuration trains."""
    return {**config["collected_rows"]["models"], **config["model_rows"]}


def _collected_rows(
    filled: dict[str, Any], datasets: dict[str, Any], models: dict[str, Any], root: Path
) -> dict[str, dict[str, Any]]:
    """Rows that the collections name, which are checked; rows that the run filters with are the same objects."""
    rows: dict[str, dict[str, Any]] = {"datasets": {}, "models": {}, "imported": {}}
    if not filled["collections"]:
        return rows
    imported = read_rows([root / p for p in filled["prediction_tables"]], "predictions")
    for name, part in filled["collections"].items():
        for key in ("standard", "adversarial"):
            _pick(part[key], datasets, f"collections: {name}.{key}", filled["dataset_tables"])
        for training_set, row in part["training_sets"].items():
            for key in ("datasets", "passages_of"):
                where = f"collections: {name}.training_sets.{training_set}.{key}"
                _pick(row[key], datasets, where, filled["dataset_tables"])
        where = f"collections: {name}.evaluated_models"
        rows["models"] |= _pick(part["evaluated_models"], models, where, filled["model_tables"])
        where = f"collections: {name}.imported_models"
        rows["imported"] |= _pick(part["imported_models"], imported, where, filled["prediction_tables"])
        for model in part["imported_models"]:
            check_imported(model, imported[model], datasets, models)
        rows["datasets"] |= {dataset: datasets[dataset] for dataset in collected.datasets_of(part)}
        for dataset in collected.evaluation_sets(part):
            check_loop(dataset, datasets[dataset], models)
        collected.check_collection(name, part, datasets, models, imported)
        _check_section(f"collections: {name}", part, "fine_tune")
    return rows


def check_config_files(paths: Iterable[str | Path]) -> None:
    """Read configuration files strictly, as Snakemake, which merges them, lets a key given twice pass.

    Like Snakemake this takes a file for JSON if it is, and for YAML otherwise.

    Raises
    ------
    UserError
        If a file is neither, is no mapping, or gives a key twice.
    """
    for path in map(Path, paths):
        if not _is_strict_json(path):
            read_yaml(path)


def _is_strict_json(path: Path) -> bool:
    """Whether a file is a JSON object; a key given twice raises `UserError`."""
    try:
        return isinstance(parse_json(path.read_text(encoding="utf-8")), dict)
    except RepeatedKeyError as error:
        raise UserError(f"{path}: {error}; mend the file") from None
    except (OSError, ValueError):
        return False


def load_datasets(paths: list[Path]) -> dict[str, DatasetRow]:
    """Every row of the data sets tables, as records."""
    rows = read_rows(paths, "datasets")
    return {name: DatasetRow.from_config(name, row) for name, row in rows.items()}


def fine_tune_settings(config: dict[str, Any], dataset: str, model: str) -> dict[str, Any]:
    """Fine-tuning settings of a model on a data set: the run's, over them the data set row's, then the model row's."""
    return {
        **config["fine_tune"],
        **config["dataset_rows"][dataset]["fine_tune"],
        **config["model_rows"][model]["fine_tune"],
    }


def without_memory(settings: dict[str, Any]) -> dict[str, Any]:
    """Fine-tuning settings less those that save memory, so that changing these reruns nothing."""
    return {key: value for key, value in settings.items() if key not in MEMORY_SETTINGS}


def filter_settings(config: dict[str, Any], dataset: str) -> dict[str, Any]:
    """AFLite's settings on a data set: the run's, overridden by the data set row's; `rounds_per_job` among them."""
    return {**config["filter"], **config["dataset_rows"][dataset]["filter"]}


def part(config: dict[str, Any], section: str, without: list[str]) -> dict[str, Any]:
    """One section of the configuration less some keys."""
    return {key: value for key, value in config[section].items() if key not in without}


def n_nodes(settings: dict[str, Any]) -> int:
    """Jobs in a chain of filtering rounds with these settings, its start not counted."""
    return int(-(-settings["max_rounds"] // settings["rounds_per_job"]))


def without_display(row: dict[str, Any]) -> dict[str, Any]:
    """Row with what the steps that read rows do not use left blank, so that mending it reruns none of them.

    That is what only people read, and settings that the steps they are for get on their own.
    """
    blank: dict[str, Any] = dict.fromkeys(
        ("title", "licence", "citation", "homepage", "language", "objective", "family"), ""
    )
    blank |= {"parameters_m": None, "gpus": 1, "filter": {}, "fine_tune": {}}
    if row.get("more_annotators"):
        blank["more_annotators"] = {**row["more_annotators"], "title": ""}
    return {**row, **{key: value for key, value in blank.items() if key in row}}


def load_figures(config: dict[str, Any], path: Path = Path("config/figures.yaml")) -> dict[str, Any]:
    """Rows of the figures table that the run asks for; null asks for all of what it does."""
    rows = read_rows([path], "figures")
    for name, row in rows.items():
        for table in row["tables"]:
            if table not in TABLES:
                raise UserError(
                    f"{path}: {name}.tables: no table {table!r}; allowed: {allowed(TABLES, 40)}"
                    f"{did_you_mean(table, TABLES)}"
                )
    questions = [row for row in config["collected_rows"]["datasets"].values() if row["task"] == EXTRACTIVE_QA]
    done = {
        "filtering": (config["datasets"], "`datasets`"),
        "collection": (config["collections"], "`collections`"),
        "questions": (questions, "collection of questions"),
    }
    possible = {name: row for name, row in rows.items() if done[row["study"]][0]}
    asked = list(possible) if config["figures"] is None else config["figures"]
    for name in asked:
        if name in rows and name not in possible:
            missing = done[rows[name]["study"]][1]
            raise UserError(
                f"figures: {name!r} cannot be drawn, as the run has no {missing}; allowed: {allowed(possible, 20)};"
                f" remove it, or add {missing}"
            )
    return _pick(asked, rows, "figures", [str(path)])


def write_run_config(config: dict[str, Any], folder: Path) -> None:
    """Write the merged configuration to `folder`, if it differs from what stands there."""
    text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
    path = folder / "run_config.yaml"
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)


def read_rows(paths: list[Path], name: str) -> dict[str, Any]:
    """Validated rows of the tables at `paths`; a name in two tables is an error."""
    rows: dict[str, Any] = {}
    for path in paths:
        table = validate(read_yaml(path), name, str(path))
        for key in table:
            if key in rows:
                raise UserError(f"{path}: row {key!r} stands in another table too; rename one of them")
        rows.update(table)
    return rows


def read_yaml(path: Path) -> dict[str, Any]:
    """Mapping in a YAML file; anything else, also a key given twice, raises `UserError`."""
    try:
        value = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; correct the path in the configuration") from None
    except OSError as error:
        raise UserError(describe_os_error(error)) from None
    except RecursionError:
        raise UserError(f"{path}: not valid YAML (brackets are nested too deep); mend the file") from None
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}, line {mark.line + 1}" if mark else str(path)
        problem = getattr(error, "problem", None) or error
        raise UserError(f"{where}: not valid YAML ({problem}); mend the file") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UserError(f"{path}: found a {type(value).__name__}; allowed: a mapping of keys to values; mend the file")
    return value


class _Loader(yaml.SafeLoader):
    """YAML loader that refuses a key given twice, where YAML would let the last one win."""

    def compose_mapping_node(self, anchor: str | None) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            if (key.tag, key.value) in seen:
                raise yaml.composer.ComposerError(None, None, f"key {key.value!r} is given twice", key.start_mark)
            seen.add((key.tag, key.value))
        return node


def _pick(names: list[str], rows: dict[str, Any], key: str, tables: list[str]) -> dict[str, Any]:
    for name in names:
        if name not in rows:
            near = did_you_mean(name, rows) or "; correct it or add the row"
            raise UserError(f"{key}: no row {name!r} in {', '.join(tables)}; allowed: {allowed(rows, 20)}{near}")
    return {name: rows[name] for name in names}


def _check_run(name: str) -> None:
    if name.lower() in RESERVED_RUNS:
        raise UserError(
            f"configuration: run: found {name!r}; allowed: any name but {allowed(RESERVED_RUNS)}, which are folders of"
            " results/ that all runs share; choose another"
        )


def _check_parts(config: dict[str, Any]) -> None:
    """A run filters, or scores collections, or both; for filtering it needs all three kinds of names."""
    names = ("datasets", "adversaries", "evaluated_models")
    given = [name for name in names if config[name]]
    if given and len(given) < len(names) or not given and not config["collections"]:
        missing = next(name for name in names if not config[name])
        meaning = schema("config")["properties"][missing]["description"]
        other = "" if given else ", or `collections`"
        raise UserError(f"configuration: key {missing!r} is missing; add it{other} ({meaning})")


def _check_filter(settings: dict[str, Any], where: str) -> None:
    """What the schema cannot say of the filter's settings."""
    nodes = n_nodes(settings)
    if nodes > MAX_NODES:
        raise UserError(
            f"{where}: filter.max_rounds: found {settings['max_rounds']}, which makes a chain of {nodes} jobs;"
            f" allowed: {MAX_NODES} jobs; raise filter.rounds_per_job or lower filter.max_rounds"
        )
    if settings["threshold"] >= 1 and settings["comparison"] == "more_than":
        raise UserError(
            f"{where}: filter.threshold: found {settings['threshold']} with comparison more_than, above which nothing"
            " lies; allowed: below 1, or 1 with comparison at_least; correct one of them"
        )


def _check_dataset(row: DatasetRow) -> None:
    if row.evaluation_fraction is not None and row.source.get("evaluation"):
        raise UserError(
            f"data set {row.name}: evaluation_fraction {row.evaluation_fraction} beside source.evaluation"
            f" {row.source['evaluation']!r}; allowed: one of the two; remove the other"
        )
    _check_more_annotators(row)
    if row.is_extractive_qa:
        if row.label_order or row.other_labels:
            raise UserError(
                f"data set {row.name}: label_order beside task {EXTRACTIVE_QA}, whose answers are texts; remove it"
            )
        return
    if row.task == MULTIPLE_CHOICE:
        if row.columns["candidates"] is None and row.source["kind"] != "pypi":
            raise UserError(f"data set {row.name}: columns.candidates is missing; multiple choice needs it; add it")
        return
    if len(row.label_order) < 2:
        raise UserError(
            f"data set {row.name}: label_order has {len(row.label_order)} names; allowed: two or more; add them"
        )
    for label in row.other_labels:
        if label in row.label_order:
            raise UserError(
                f"data set {row.name}: label {label!r} stands in label_order and in other_labels;"
                " allowed: one of the two; remove it from the other"
            )
    for raw, label in row.labels.items():
        if label not in row.label_order + row.other_labels:
            raise UserError(
                f"data set {row.name}: labels maps {raw!r} to {label!r}, which label_order does not hold;"
                f" allowed: {allowed(row.label_order + row.other_labels)}; correct one of them"
            )


def _check_more_annotators(row: DatasetRow) -> None:
    if row.more_annotators is None:
        return
    where, columns = f"data set {row.name}: more_annotators", row.more_annotators["columns"]
    if row.task == MULTIPLE_CHOICE:
        raise UserError(f"{where}: found beside task multiple_choice; allowed: sequence_classification; remove it")
    if (columns["label_count"] is None) == (columns["annotator_labels"] is None):
        raise UserError(
            f"{where}: columns: found {'neither' if columns['label_count'] is None else 'both'} of label_count and"
            " annotator_labels; allowed: one of the two; add or remove one"
        )
    for raw, label in (row.more_annotators["labels"] or {}).items():
        if label not in row.label_order + row.other_labels:
            raise UserError(
                f"{where}: labels maps {raw!r} to {label!r}, which label_order does not hold; allowed:"
                f" {allowed(row.label_order + row.other_labels)}; correct one of them"
            )


def _check_section(where: str, row: dict[str, Any], section: str) -> None:
    """Refuse what the run's section of the same name would refuse."""
    node = schema("config")["properties"][section]
    for error in jsonschema.Draft202012Validator(node).iter_errors(row[section]):
        raise UserError(f"{where}: {section}: {explain(error)}")
