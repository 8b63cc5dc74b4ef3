"""Raw rows to fields of the `examples` table.

Conventions
-----------
A row that cannot be used (no gold label, annotators tied, empty text) keeps its place with a
`drop_reason`, so that what is dropped can be counted by split; a row that is wrong stops with
its place. A text column given as several columns is their values joined by one space.
A text, id or group may be a number or a date in the source; NaN there is missing like null.
A `group_id` of more than 64 characters (a premise, a paragraph) is replaced by a hash of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, time
from decimal import Decimal
from hashlib import blake2b
from typing import Any

import polars as pl

from advsets.datasets.annotators import checked_counts, count_votes
from advsets.datasets.raw import RawTable
from advsets.errors import UserError, allowed
from advsets.io import parse_json
from advsets.labels import agreement, entropy_bits, map_label, modal_label
from advsets.registry import DatasetRow

NO_GOLD_LABEL = "no gold label"
TIED = "annotators are tied"
EMPTY_TEXT = "empty text"
_TEXT = ("text_a", "text_b", "candidates", "group_id", "source_id")
_LONGEST_GROUP_ID = 64
_SCALARS = (str, int, float, Decimal, date, time)
_FLAGS = {"true": True, "1": True, "false": False, "0": False}

FIELDS: dict[str, Any] = {
    "place": pl.String,
    "drop_reason": pl.String,
    "own_id": pl.String,
    "source_id": pl.String,
    "text_a": pl.String,
    "text_b": pl.String,
    "candidates": pl.List(pl.String),
    "label": pl.String,
    "group_id": pl.String,
    "label_count": pl.List(pl.Int64),
    "agreement": pl.Float64,
    "label_entropy_bits": pl.Float64,
    "low_agreement": pl.Boolean,
}
"""Columns of an extracted split: those of `examples`, with `own_id` (id column) and the place."""


def columns_of(row: DatasetRow, split: str) -> dict[str, Any]:
    """Mapping of our columns to the source's for `train` or `evaluation`."""
    changed = row.evaluation_columns if split == "evaluation" else {}
    return {**row.columns, **changed}


def wanted_columns(row: DatasetRow, split: str) -> list[str]:
    """Source columns that the mapping names."""
    return [name for spec in columns_of(row, split).values() for name in _as_list(spec)]


def extract(row: DatasetRow, table: RawTable, split: str) -> pl.DataFrame:
    """Fields of every row of a raw table, columns `FIELDS`, in source order.

    Raises
    ------
    UserError
        On a missing column, a text, id or group that is neither text nor number, a label outside
        the mapping or the candidates, fewer than two candidates, or annotator counts that cannot be.
    """
    if table.n_rows == 0:
        raise UserError(f"{table.where}: holds no rows; give a file with at least two")
    spec = columns_of(row, split)
    fields = {name: _strings(table, spec[name], name) for name in ("example_id", "source_id", "group_id")}
    texts = {name: _strings(table, spec[name], name) for name in ("text_a", "text_b")}
    candidates = _candidates(table, spec["candidates"]) if row.is_multiple_choice else [None] * table.n_rows
    counts = _counts(row, table, spec, candidates)
    labels, reasons = _labels(row, table, spec, candidates, counts)
    for i in range(table.n_rows):
        if _is_empty(row, texts["text_a"][i], texts["text_b"][i] if spec["text_b"] else "-", candidates[i]):
            reasons[i] = EMPTY_TEXT
    measured = [_measures(row, c, label, cs) for c, label, cs in zip(counts, labels, candidates, strict=True)]
    return _frame(
        table,
        {
            "place": [table.at(i) for i in range(table.n_rows)],
            "drop_reason": reasons,
            "own_id": fields["example_id"],
            "source_id": fields["source_id"] if spec["source_id"] else fields["example_id"],
            **texts,
            "candidates": candidates,
            "label": labels,
            "group_id": [_short(group) for group in fields["group_id"]],
            "label_count": counts,
            "agreement": [m[0] for m in measured],
            "label_entropy_bits": [m[1] for m in measured],
            "low_agreement": _flags(table, spec["low_agreement"]),
        },
    )


def _frame(table: RawTable, fields: dict[str, list[Any]]) -> pl.DataFrame:
    """Fields as a frame; a text that is no Unicode text (half of a surrogate pair) raises `UserError`."""
    try:
        return pl.DataFrame(fields, schema=FIELDS)
    except UnicodeEncodeError:
        for i in range(table.n_rows):
            if any(0xD800 <= ord(c) < 0xE000 for name in _TEXT for c in str(fields[name][i])):
                raise UserError(
                    f"{table.at(i)}: a text holds half of a surrogate pair (\\ud800 to \\udfff); mend the row"
                ) from None
        raise


def _as_list(spec: Any) -> list[str]:
    if spec is None:
        return []
    return [spec] if isinstance(spec, str) else list(spec)


def _strings(table: RawTable, spec: Any, purpose: str) -> list[str | None]:
    """One string per row: the column's value, several joined by a space; None where one is missing."""
    if spec is None:
        return [None] * table.n_rows
    columns = [column_texts(table, name, purpose) for name in _as_list(spec)]
    if len(columns) == 1:
        return columns[0]
    return [
        None if any(v is None for v in values) else " ".join(v for v in values if v is not None)
        for values in zip(*columns, strict=True)
    ]


def column_texts(table: RawTable, name: str, purpose: str) -> list[str | None]:
    """Values of a column as text; what is neither text nor number raises `UserError` with its place."""
    return [_text(value) for value in _scalars(table, name, purpose)]


def _scalars(table: RawTable, name: str, purpose: str) -> list[Any]:
    values = table.column(name, purpose)
    for i, value in enumerate(values):
        if value is not None and not isinstance(value, _SCALARS):
            raise _no_text(value, f"{table.at(i)}: column {name!r} ({purpose})")
    return values


def _no_text(value: object, where: str) -> UserError:
    found = "bytes that are not UTF-8" if isinstance(value, bytes) else f"a {type(value).__name__}"
    return UserError(
        f"{where}: found {found}, {str(value)[:40]}; allowed: a text or a number; mend the row, or correct `columns`"
    )


def _text(value: object) -> str | None:
    """Text of a scalar; None where it is missing (null or NaN)."""
    if value is None or value != value:
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else str(value)


def _short(group: str | None) -> str | None:
    if group is None or len(group) <= _LONGEST_GROUP_ID:
        return group
    return blake2b(group.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _candidates(table: RawTable, spec: Any) -> list[list[str | None]]:
    """List of answers per row, from one list column (in CSV and TSV: JSON) or one column per answer."""
    if isinstance(spec, str):
        rows = [_decoded(value) for value in table.column(spec, "candidates")]
    else:
        rows = [list(v) for v in zip(*(column_texts(table, n, "candidates") for n in _as_list(spec)), strict=True)]
    for i, answers in enumerate(rows):
        if not isinstance(answers, list):
            raise UserError(
                f"{table.at(i)}: candidates {str(answers)[:40]!r}; allowed: a list of texts; correct `columns`"
            )
        if len(answers) < 2:
            raise UserError(
                f"{table.at(i)}: found {len(answers)} candidates; allowed: two or more; mend or remove the row"
            )
        for answer in answers:
            if answer is not None and not isinstance(answer, _SCALARS):
                raise _no_text(answer, f"{table.at(i)}: an entry of column {spec!r} (candidates)")
    return [[_text(answer) for answer in answers] for answers in rows]


def _decoded(value: object) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value)
    except ValueError:
        return value


def _names(row: DatasetRow, candidates: Sequence[object] | None) -> list[str]:
    """Labels of a row's counts: classes and other labels, or indices of the candidates."""
    if candidates is None:
        return [*row.label_order, *row.other_labels]
    return [str(i) for i in range(len(candidates))]


def _counts(row: DatasetRow, table: RawTable, spec: dict[str, Any], candidates: list[Any]) -> list[list[int] | None]:
    votes, given = spec["annotator_labels"], spec["label_count"]
    if votes is None and given is None:
        return [None] * table.n_rows
    read = count_votes if given is None else checked_counts
    if isinstance(given, list):
        values: list[Any] = [list(v) for v in zip(*(table.column(n, "label_count") for n in given), strict=True)]
        values = [None if all(c in (None, "") for c in v) else v for v in values]
    else:
        values = table.column(given or votes, "label_count" if given else "annotator_labels")
    return [
        read(value, _mapping(row, candidates[i]), _names(row, candidates[i]), table.at(i))
        for i, value in enumerate(values)
    ]


def _mapping(row: DatasetRow, candidates: Sequence[object] | None) -> dict[str, str]:
    if row.labels or candidates is None:
        return row.labels
    return {name: name for name in _names(row, candidates)}


def _labels(
    row: DatasetRow, table: RawTable, spec: dict[str, Any], candidates: list[Any], counts: list[list[int] | None]
) -> tuple[list[str | None], list[str | None]]:
    """Gold label per row, and why the row is dropped (None: it is kept)."""
    if table.labels is None and spec["label"] is None:
        if spec["annotator_labels"] is None and spec["label_count"] is None:
            raise UserError(
                f"data set {row.name}: columns.label is null; allowed: only with annotators; add their column"
            )
        gold = [
            None if c is None else modal_label(c, _names(row, cs)) for c, cs in zip(counts, candidates, strict=True)
        ]
        missing = [NO_GOLD_LABEL if c is None else TIED for c in counts]
    else:
        source = table.labels or table
        raw = _scalars(source, "label" if table.labels else spec["label"], "label")
        gold = [_gold(row, value, candidates[i], source.at(i)) for i, value in enumerate(raw)]
        missing = [NO_GOLD_LABEL] * table.n_rows
    reasons = [m if g is None else _no_class(row, g) for g, m in zip(gold, missing, strict=True)]
    return gold, reasons


def _gold(row: DatasetRow, raw: object, candidates: Sequence[object] | None, where: str) -> str | None:
    label = map_label(raw, _mapping(row, candidates), where)
    if label is not None and candidates is not None and label not in _names(row, candidates):
        raise UserError(
            f"{where}: label {label!r}; allowed: the index of a candidate, {allowed(_names(row, candidates))},"
            " or -1 for none; mend the row, or correct `labels`"
        )
    return label


def _no_class(row: DatasetRow, label: str) -> str | None:
    return f"gold label {label} is no class of the task" if label in row.other_labels else None


def _is_empty(row: DatasetRow, text_a: str | None, text_b: str | None, candidates: Sequence[str | None] | None) -> bool:
    texts = [text_a, text_b, *(candidates or [])]
    return any(t is None or not t.strip() for t in texts)


def _measures(
    row: DatasetRow, counts: list[int] | None, label: str | None, candidates: Sequence[object] | None
) -> tuple[float | None, float | None]:
    if counts is None or label is None:
        return None, None
    return agreement(counts, label, _names(row, candidates)), entropy_bits(counts)


def _flags(table: RawTable, spec: str | None) -> list[bool | None]:
    if spec is None:
        return [None] * table.n_rows
    return [_flag(value, table.at(i)) for i, value in enumerate(table.column(spec, "low_agreement"))]


def _flag(value: object, where: str) -> bool | None:
    text = _text(value)
    if not text:
        return None
    flag = _FLAGS.get(text.lower())
    if flag is None:
        raise UserError(f"{where}: low_agreement {value!r}; allowed: {allowed(_FLAGS)} or empty; mend the row")
    return flag
