"""Load, check and complete a run's configuration and the tables it names.

Schemas in `workflow/schemas/` hold every key, type and default; unknown keys are refused.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import math
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from advsets.errors import UserError, allowed, describe_os_error
from advsets.io import write_text
from advsets.registry import MULTIPLE_CHOICE, DatasetRow
from advsets.tables import TABLES

_SCHEMAS = Path(__file__).resolve().parents[1] / "schemas"
MAX_NODES = 999
"""Nodes are numbered by three digits."""
MEMORY_SETTINGS = ("tokens_per_pass", "gradient_checkpointing")
"""Of fine-tuning: they change results by rounding and the draws of dropout alone."""
RESERVED_RUNS = ("downloads", "bench", "slurm_logs")
"""Folders of results/ that all runs share."""


@cache
def schema(name: str) -> dict[str, Any]:
    """Schema `name`: "config", "datasets", "models" or "figures"."""
    loaded: dict[str, Any] = yaml.safe_load((_SCHEMAS / f"{name}.schema.yaml").read_text(encoding="utf-8"))
    return loaded


def load_run_config(config: dict[str, Any], root: Path = Path(".")) -> dict[str, Any]:
    """Checked and completed copy of a run's configuration, with its tables read in.

    Returns
    -------
    dict
        `config` with every default filled, plus `dataset_rows` and `model_rows`: the
        validated rows that the run uses, by name; and `cost_hints`: `datasets` and `models`,
        by name what the rows had as `cost`, so that no step hangs on it.

    Raises
    ------
    UserError
        On an unknown key, a wrong value, or a name that no table holds.
    """
    filled = validate(config, "config", "configuration")
    _check_run(filled["run"])
    _check_filter(filled["filter"], "configuration")
    datasets = read_rows([root / p for p in filled["dataset_tables"]], "datasets")
    models = read_rows([root / p for p in filled["model_tables"]], "models")
    filled["dataset_rows"] = _pick(filled["datasets"], datasets, "datasets", filled["dataset_tables"])
    filled["model_rows"] = {
        **_pick(filled["adversaries"], models, "adversaries", filled["model_tables"]),
        **_pick(filled["evaluated_models"], models, "evaluated_models", filled["model_tables"]),
    }
    for name, row in filled["dataset_rows"].items():
        _check_dataset(DatasetRow.from_config(name, row))
        for section in ("filter", "fine_tune"):
            _check_section(f"data set {name}", row, section)
        _check_filter(filter_settings(filled, name), f"data set {name}")
    for name, row in filled["model_rows"].items():
        _check_section(f"model {name}", row, "fine_tune")
    filled["cost_hints"] = {
        "datasets": {name: row.pop("cost") for name, row in filled["dataset_rows"].items()},
        "models": {name: row.pop("cost") for name, row in filled["model_rows"].items()},
    }
    return filled


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

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise UserError(f"{path}: key {twice[0]!r} is given twice; mend the file")
        return dict(pairs)

    try:
        return isinstance(json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique), dict)
    except (OSError, ValueError, RecursionError):
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
    """Rows of the figures table that the run asks for; null asks for all."""
    rows = read_rows([path], "figures")
    for name, row in rows.items():
        for table in row["tables"]:
            if table not in TABLES:
                raise UserError(
                    f"{path}: {name}.tables: no table {table!r}; allowed: {allowed(TABLES, 40)}"
                    f"{did_you_mean(table, TABLES)}"
                )
    return _pick(list(rows) if config["figures"] is None else config["figures"], rows, "figures", [str(path)])


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


def validate(value: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    """Copy of `value` with the defaults of schema `name` filled in.

    Raises
    ------
    UserError
        Names the key, what was found and what is allowed, in one line.
    """
    filled: dict[str, Any] = _fill(_plain(value), schema(name))
    validator = jsonschema.Draft202012Validator(schema(name))
    errors = sorted(validator.iter_errors(filled), key=lambda e: list(map(str, e.absolute_path)))
    if errors:
        raise UserError(f"{where}: {_explain(errors[0])}")
    for key, number in _numbers(filled, ""):
        if not math.isfinite(number):
            raise UserError(f"{where}: {key}: found {number}; allowed: a finite number; correct it")
    return filled


def _plain(value: Any) -> Any:
    """Deep copy out of plain dicts and lists, whatever kind of mapping the caller has."""
    if isinstance(value, dict):
        return {key: _plain(child) for key, child in value.items()}
    return [_plain(child) for child in value] if isinstance(value, list) else value


def _numbers(value: Any, key: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, float):
        yield key, value
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in children:
        yield from _numbers(child, f"{key}.{name}".lstrip("."))


def _fill(value: Any, node: dict[str, Any]) -> Any:
    """Fill defaults in `value` by schema `node`, at every depth."""
    if not isinstance(value, dict):
        return value
    for option in node.get("oneOf", []):
        kind = option.get("properties", {}).get("kind", {}).get("const")
        if kind is not None and kind == value.get("kind"):
            value = _fill(value, option)
    for key, child in node.get("properties", {}).items():
        if key not in value and "default" in child:
            value[key] = _plain(child["default"])
        if key in value:
            value[key] = _fill(value[key], child)
    extra = node.get("additionalProperties")
    if isinstance(extra, dict):
        for key in value:
            if key not in node.get("properties", {}):
                value[key] = _fill(value[key], extra)
    return value


_RULES = {
    "type": "type {}",
    "minimum": "{} or more",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minItems": "at least {} entries",
    "const": "{}",
}
_PATTERNS = {
    "^[A-Za-z0-9][A-Za-z0-9_.-]*$": "letters, digits, `_`, `.` and `-`, the first a letter or digit",
    "^[0-9a-fA-F]{64}$": "64 hexadecimal digits",
}


def _explain(error: jsonschema.ValidationError) -> str:
    """One line on what is wrong, what is allowed and what to do."""
    error = _innermost(error)
    key = ".".join(map(str, error.absolute_path))
    at = f"{key}: " if key else ""
    rules = error.schema if isinstance(error.schema, dict) else {}
    if error.validator == "additionalProperties":
        known = list(rules.get("properties", {}))
        unknown = sorted(set(map(str, error.instance)) - set(known))[0]
        return (
            f"{at}unknown key {unknown!r}; allowed: {allowed(known, 30)}{did_you_mean(unknown, known) or '; remove it'}"
        )
    if error.validator == "required":
        missing = sorted(set(error.validator_value) - set(error.instance))[0]
        meaning = rules.get("properties", {}).get(missing, {}).get("description")
        return f"{at}key {missing!r} is missing; add it{f' ({meaning})' if meaning else ''}"
    if error.validator == "enum":
        near = did_you_mean(error.instance, error.validator_value) or "; correct it"
        return f"{at}found {error.instance!r}; allowed: {allowed(error.validator_value)}{near}"
    if error.validator == "oneOf":
        kinds = [o.get("properties", {}).get("kind", {}).get("const") for o in error.validator_value]
        kind = error.instance.get("kind") if isinstance(error.instance, dict) else error.instance
        return f"{at}found kind {kind!r}; allowed: {allowed(kinds)}{did_you_mean(kind, kinds) or '; correct it'}"
    meaning = f" ({rules['description']})" if "description" in rules else ""
    return f"{at}found {_short(error.instance)}; allowed: {_rule(error)}{meaning}; {_advice(error)}"


def _rule(error: jsonschema.ValidationError) -> str:
    value = error.validator_value
    if error.validator == "pattern":
        return _PATTERNS[value]
    if error.validator == "uniqueItems":
        return "each entry once"
    if error.validator == "anyOf":
        return "a count (integer from 1) or a share (below 1)"
    text = " or ".join(value) if isinstance(value, list) else str(value)
    return _RULES.get(str(error.validator), f"{error.validator} {{}}").format(text)


def _advice(error: jsonschema.ValidationError) -> str:
    if error.validator == "type" and isinstance(error.instance, str):
        for number in (int, float):
            with contextlib.suppress(ValueError):
                shown = yaml_number(number(error.instance))
                return f"write {shown} without quotes: YAML reads {error.instance!r} as text"
    return "correct it"


def yaml_number(value: int | float) -> str:
    """Number as YAML reads it: 2.0e-05, as 2e-05 would be text."""
    return yaml.safe_dump(value).split()[0]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def did_you_mean(name: object, known: Iterable[object]) -> str:
    near = difflib.get_close_matches(str(name), [str(k) for k in known], n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _innermost(error: jsonschema.ValidationError) -> jsonschema.ValidationError:
    """The error inside a `oneOf` that belongs to the chosen kind, if there is one."""
    if error.validator != "oneOf" or not isinstance(error.instance, dict):
        return error
    for index, option in enumerate(error.validator_value):
        if option.get("properties", {}).get("kind", {}).get("const") == error.instance.get("kind"):
            inner = [e for e in error.context or [] if e.schema_path[0] == index]
            if inner:
                return _innermost(inner[0])
    return error


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
        raise UserError(f"{where}: {section}: {_explain(error)}")
