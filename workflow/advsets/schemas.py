"""Schemas of the configuration: defaults filled in, and what is wrong said in one line."""

from __future__ import annotations

import contextlib
import difflib
import math
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from advsets.errors import UserError, allowed

_SCHEMAS = Path(__file__).resolve().parents[1] / "schemas"


_CHECKER = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
    "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
)
_Validator = jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=_CHECKER)
"""Takes no 8.0 for 8: what counts something or names a file is written as it is used."""


@cache
def schema(name: str) -> dict[str, Any]:
    """Schema `name`: "config", "datasets", "models", "predictions" or "figures"."""
    loaded: dict[str, Any] = yaml.safe_load((_SCHEMAS / f"{name}.schema.yaml").read_text(encoding="utf-8"))
    return loaded


def validate(value: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    """Copy of `value` with the defaults of schema `name` filled in.

    Raises
    ------
    UserError
        Names the key, what was found and what is allowed, in one line.
    """
    filled: dict[str, Any] = _fill(_plain(value), schema(name))
    validator = _Validator(schema(name))
    errors = sorted(validator.iter_errors(filled), key=lambda e: list(map(str, e.absolute_path)))
    if errors:
        raise UserError(f"{where}: {explain(errors[0])}")
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


def explain(error: jsonschema.ValidationError) -> str:
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
    if error.validator != "type":
        return "correct it"
    kinds = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
    value = error.instance
    if isinstance(value, (str, float)):
        with contextlib.suppress(ValueError, OverflowError):
            number = int(value) if isinstance(value, str) and value.strip().lstrip("+-").isdecimal() else float(value)
            if "number" not in kinds and number == int(number):
                number = int(number)
            quotes = f" without quotes: YAML reads {value!r} as text" if isinstance(value, str) else ""
            return f"write {yaml_number(number)}{quotes}"
    if kinds == ["string"] and isinstance(value, (bool, int, float)):
        return "write it in quotes"
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
