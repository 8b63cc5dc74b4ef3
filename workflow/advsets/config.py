"""Load, check and complete a run's configuration and the tables it names.

Schemas in `workflow/schemas/` hold every key, type and default; unknown keys are refused.
"""

from __future__ import annotations

import difflib
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from advsets.errors import UserError, allowed
from advsets.io import write_text
from advsets.registry import MULTIPLE_CHOICE, DatasetRow, ModelRow

_SCHEMAS = Path(__file__).resolve().parents[1] / "schemas"


@lru_cache(maxsize=None)
def schema(name: str) -> dict[str, Any]:
    """Schema `name`: "config", "datasets" or "models"."""
    loaded: dict[str, Any] = yaml.safe_load((_SCHEMAS / f"{name}.schema.yaml").read_text(encoding="utf-8"))
    return loaded


def load_run_config(config: dict[str, Any], root: Path = Path(".")) -> dict[str, Any]:
    """Checked and completed copy of a run's configuration, with its tables read in.

    Returns
    -------
    dict
        `config` with every default filled, plus `dataset_rows` and `model_rows`: the
        validated rows that the run uses, by name.

    Raises
    ------
    UserError
        On an unknown key, a wrong value, or a name that no table holds.
    """
    filled = validate(config, "config", "configuration")
    datasets = read_rows([root / p for p in filled["dataset_tables"]], "datasets")
    models = read_rows([root / p for p in filled["model_tables"]], "models")
    filled["dataset_rows"] = _pick(filled["datasets"], datasets, "datasets", filled["dataset_tables"])
    wanted = list(dict.fromkeys(filled["adversaries"] + filled["evaluated_models"]))
    filled["model_rows"] = _pick(wanted, models, "adversaries and evaluated_models", filled["model_tables"])
    for name in filled["datasets"]:
        _check_dataset(DatasetRow.from_config(name, filled["dataset_rows"][name]))
    for name, row in filled["model_rows"].items():
        _check_fine_tune(name, row)
    return filled


def load_datasets(paths: list[Path]) -> dict[str, DatasetRow]:
    """Every row of the data sets tables, as records."""
    rows = read_rows(paths, "datasets")
    return {name: DatasetRow.from_config(name, row) for name, row in rows.items()}


def load_models(paths: list[Path]) -> dict[str, ModelRow]:
    """Every row of the models tables, as records."""
    return {name: ModelRow.from_config(name, row) for name, row in read_rows(paths, "models").items()}


def fine_tune_settings(config: dict[str, Any], model: str) -> dict[str, Any]:
    """Fine-tuning settings of a model: the run's, overridden by the model's row."""
    return {**config["fine_tune"], **config["model_rows"][model]["fine_tune"]}


def part(config: dict[str, Any], section: str, without: list[str]) -> dict[str, Any]:
    """One section of the configuration less some keys."""
    return {key: value for key, value in config[section].items() if key not in without}


def load_figures(config: dict[str, Any], path: Path = Path("config/figures.yaml")) -> dict[str, Any]:
    """Rows of the figures table that the run asks for."""
    rows = read_yaml(path)
    return _pick(config["figures"] or list(rows), rows, "figures", [str(path)])


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
    """Mapping in a YAML file; anything else raises `UserError`."""
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; correct the path in the configuration") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}, line {mark.line + 1}" if mark else str(path)
        raise UserError(f"{where}: not valid YAML ({getattr(error, 'problem', error)}); mend the file") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UserError(f"{path}: found a {type(value).__name__}; allowed: a mapping of keys to values; mend the file")
    return value


def validate(value: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    """Copy of `value` with the defaults of schema `name` filled in.

    Raises
    ------
    UserError
        Names the key, what was found and what is allowed, in one line.
    """
    filled = _fill(deepcopy(value), schema(name))
    validator = jsonschema.Draft202012Validator(schema(name))
    errors = sorted(validator.iter_errors(filled), key=lambda e: list(map(str, e.absolute_path)))
    if errors:
        raise UserError(f"{where}: {_explain(errors[0])}")
    result: dict[str, Any] = filled
    return result


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
            value[key] = deepcopy(child["default"])
        if key in value:
            value[key] = _fill(value[key], child)
    extra = node.get("additionalProperties")
    if isinstance(extra, dict):
        for key in value:
            if key not in node.get("properties", {}):
                value[key] = _fill(value[key], extra)
    return value


def _explain(error: jsonschema.ValidationError) -> str:
    """One line on what is wrong and what is allowed."""
    error = _innermost(error)
    key = ".".join(map(str, error.absolute_path)) or "top level"
    rules = error.schema if isinstance(error.schema, dict) else {}
    if error.validator == "additionalProperties":
        known = list(rules.get("properties", {}))
        unknown = sorted(set(map(str, error.instance)) - set(known))[0]
        near = difflib.get_close_matches(unknown, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"{key}: unknown key {unknown!r}; allowed: {allowed(known, 30)}{hint}"
    if error.validator == "required":
        missing = sorted(set(error.validator_value) - set(error.instance))[0]
        return f"{key}: key {missing!r} is missing; add it"
    if error.validator == "enum":
        return f"{key}: found {error.instance!r}; allowed: {allowed(error.validator_value)}"
    if error.validator == "oneOf":
        kinds = [o.get("properties", {}).get("kind", {}).get("const") for o in error.validator_value]
        return f"{key}: found kind {error.instance.get('kind')!r}; allowed: {allowed(kinds)}"
    rule = {"type": f"type {error.validator_value}"}.get(str(error.validator), f"{error.validator} {error.validator_value}")
    return f"{key}: found {error.instance!r}; allowed: {rule} ({rules.get('description', 'see config/README.md')})"


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
            near = difflib.get_close_matches(name, list(rows), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UserError(f"{key}: no row {name!r} in {', '.join(tables)}; allowed: {allowed(rows, 20)}{hint}")
    return {name: rows[name] for name in names}


def _check_dataset(row: DatasetRow) -> None:
    if row.task == MULTIPLE_CHOICE:
        if row.columns["candidates"] is None and row.source["kind"] != "pypi":
            raise UserError(f"data set {row.name}: columns.candidates is missing; multiple choice needs it; add it")
        return
    if len(row.label_order) < 2:
        raise UserError(f"data set {row.name}: label_order has {len(row.label_order)} names; allowed: two or more; add them")
    for raw, label in row.labels.items():
        if label not in row.label_order + row.other_labels:
            raise UserError(
                f"data set {row.name}: labels maps {raw!r} to {label!r}, which label_order does not hold;"
                f" allowed: {allowed(row.label_order + row.other_labels)}; correct one of them"
            )


def _check_fine_tune(name: str, row: dict[str, Any]) -> None:
    node = schema("config")["properties"]["fine_tune"]
    for error in jsonschema.Draft202012Validator(node).iter_errors(row["fine_tune"]):
        raise UserError(f"model {name}: fine_tune: {_explain(error)}")
