"""Probabilities of imported predictions, brought into our order of the labels.

Conventions
-----------
The order is never assumed: a list is read in the stated order of raw labels, a mapping and columns
that are called after labels by their names. Values stay as the file has them; they are not
renormalised. Shapes: one list of `n_labels` shares per row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from advsets.datasets.raw import RawTable
from advsets.errors import UserError, allowed
from advsets.io import RepeatedKeyError, object_of, parse_json

ROUNDING = 0.0051
"""Rounding to two decimals moves a share by at most 0.005."""

Naming = Callable[[object, str], str]
"""Label name of a raw label; the text says where it stands."""


def probability_reader(
    spec: str | Sequence[str], order: Sequence[str], label_order: Sequence[str], table: RawTable, name_of: Naming
) -> Callable[[int], list[float] | None]:
    """Function from a row of `table` to its probabilities in `label_order`; None where the row has none.

    Parameters
    ----------
    spec : str or sequence of str
        A column with lists (or their text) or mappings, or one column per label.
    order : sequence of str
        Raw labels in the order of the lists or columns; empty where names say it.
    name_of : callable
        Label name of a raw label.

    Raises
    ------
    UserError
        If the order is not that of the labels; the function, if a row's values are no probabilities.
    """
    columns = None if isinstance(spec, str) else list(spec)
    if columns and order and len(columns) != len(order):
        raise UserError(
            f"{table.where}: found {len(columns)} columns of probabilities and {len(order)} labels in"
            " `probability_order`; allowed: as many; correct one of them"
        )
    if columns and order:
        _check_names_of_columns(columns, order, table.where, name_of)
    raw = list(order) or columns
    stated = "probability_order" if order else "columns of probabilities"
    positions = None if raw is None else _positions(raw, label_order, f"{table.where}: {stated}", name_of)

    def read(i: int) -> list[float] | None:
        value = (
            [table.columns[c][i] for c in columns] if columns else _decoded(table.columns[str(spec)][i], table.at(i))
        )
        if _is_missing(value):
            return None
        if isinstance(value, dict):
            places = _positions(list(value), label_order, table.at(i), name_of)
            return _placed(list(value.values()), places, label_order, table.at(i))
        if positions is None:
            raise UserError(
                f"{table.at(i)}: found a list of probabilities, whose order is not stated; allowed: raw labels in"
                " `probability_order`; give them"
            )
        return _placed(value, positions, label_order, table.at(i))

    return read


def _check_names_of_columns(columns: Sequence[str], order: Sequence[str], where: str, name_of: Naming) -> None:
    """Refuse columns that are all called after labels, but of other labels than the stated order says."""
    try:
        called = [name_of(column, where) for column in columns]
    except UserError:
        return
    stated = [name_of(label, f"{where}: probability_order") for label in order]
    if called != stated:
        raise UserError(
            f"{where}: columns {allowed(columns)} are called after labels and stand in another order than"
            f" `probability_order`, {allowed(order)}; allowed: one order; correct one of them"
        )


def _positions(raw: Sequence[object], label_order: Sequence[str], where: str, name_of: Naming) -> list[int]:
    """Place in `label_order` of every raw label, each of which must be there once."""
    names = [name_of(label, where) for label in raw]
    if sorted(names) != sorted(label_order):
        raise UserError(
            f"{where}: found probabilities of {allowed(names) or 'no label'}; allowed: of each of"
            f" {allowed(label_order)} once; correct the order, or map the labels"
        )
    return [list(label_order).index(name) for name in names]


def _placed(values: Sequence[Any], places: list[int], label_order: Sequence[str], where: str) -> list[float]:
    if len(values) != len(places):
        raise UserError(
            f"{where}: found {len(values)} probabilities; allowed: {len(places)}, one for each of"
            f" {allowed(label_order)}; mend the row"
        )
    placed = [0.0] * len(places)
    for value, place in zip(values, places, strict=True):
        placed[place] = _share(value, label_order[place], where)
    total = math.fsum(placed)
    if abs(total - 1) > ROUNDING * len(placed):
        raise UserError(
            f"{where}: the probabilities sum to {total:.4g}; allowed: 1, but for rounding to two decimals; write shares"
            " that sum to 1"
        )
    return placed


def _share(value: Any, label: str, where: str) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (math.isfinite(number) and 0 <= number <= 1 + ROUNDING):
        raise UserError(
            f"{where}: probability {str(value)[:40]!r} of {label!r}; allowed: a number from 0 to 1, no logit and no"
            " percentage; mend the row"
        )
    return number


def _decoded(value: Any, where: str) -> Any:
    """List or mapping of a row, which CSV and TSV hold as text."""
    if isinstance(value, str) and value.strip():
        try:
            value = parse_json(value)
        except ValueError as error:
            why = f" ({error})" if isinstance(error, RepeatedKeyError) else ""
            raise UserError(
                f"{where}: probabilities {value[:40]!r}{why}; allowed: a list or a mapping as JSON; mend the row"
            ) from None
    if isinstance(value, list) and value and isinstance(value[0], tuple):  # a map of Parquet
        try:
            value = object_of(value)
        except RepeatedKeyError as error:
            raise UserError(
                f"{where}: probabilities name {error.key!r} twice; allowed: each label once; remove one of them"
            ) from None
    if not isinstance(value, (list, dict)) and not _is_missing(value):
        raise UserError(
            f"{where}: probabilities {str(value)[:40]!r}; allowed: a list or a mapping; mend the row, or name one"
            " column per label"
        )
    return value


def _is_missing(value: Any) -> bool:
    """Whether a row has no probabilities: nothing, or nothing in any of its columns."""
    if isinstance(value, list) and value:
        return all(_is_missing(part) for part in value)
    return value is None or (isinstance(value, str) and not value.strip())
