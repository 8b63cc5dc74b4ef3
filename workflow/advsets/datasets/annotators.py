"""What annotators said of each example: counts per label.

Conventions
-----------
Counts stand in the order of the classes, then of `other_labels` (labels of no class of the
task). An example without annotators has null counts, agreement and entropy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from advsets.errors import UserError, allowed
from advsets.io import parse_json
from advsets.labels import map_label

_LARGEST_COUNT = 10**9


def count_votes(raw: object, mapping: Mapping[str, str], names: Sequence[str], where: str) -> list[int] | None:
    """Counts of a list of single annotators' raw labels, shape (n_names,), or None without any.

    Empty entries (an annotator who gave no label) are left out. A string is read as a JSON list.
    """
    votes = _decoded(raw, list, "a list of labels", where)
    if votes is None:
        return None
    counts = [0] * len(names)
    for vote in votes:
        name = map_label(vote, mapping, f"{where}, annotator label")
        if name is not None:
            counts[_position(name, names, where)] += 1
    return counts if any(counts) else None


def checked_counts(raw: object, mapping: Mapping[str, str], names: Sequence[str], where: str) -> list[int] | None:
    """Counts given as a list in the order of `names`, or as a mapping of raw label to count.

    Raises
    ------
    UserError
        If a count is negative or no whole number, or the length is wrong.
    """
    value = _decoded(raw, (list, dict), "a list or a mapping of counts", where)
    if value is None:
        return None
    counts = _from_mapping(value, mapping, names, where) if isinstance(value, dict) else list(value)
    if len(counts) != len(names):
        raise UserError(
            f"{where}: found {len(counts)} annotator counts; allowed: {len(names)}, in the order {allowed(names)};"
            " mend the row, or correct `label_order`"
        )
    whole = [_whole(count, where) for count in counts]
    return whole if any(whole) else None


def _from_mapping(value: dict[Any, Any], mapping: Mapping[str, str], names: Sequence[str], where: str) -> list[Any]:
    counts: list[Any] = [0] * len(names)
    for raw, count in value.items():
        name = map_label(raw, mapping, f"{where}, annotator counts")
        if name is not None and count is not None:
            position = _position(name, names, where)
            counts[position] += _whole(count, where)
    return counts


def _decoded(raw: Any, kinds: type | tuple[type, ...], wanted: str, where: str) -> Any:
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return None
    if isinstance(raw, str):
        try:
            raw = parse_json(raw)
        except ValueError:
            raise UserError(f"{where}: annotators {raw[:40]!r}; allowed: {wanted} as JSON; mend the row") from None
    if not isinstance(raw, kinds):
        raise UserError(f"{where}: annotators {str(raw)[:40]!r}; allowed: {wanted}; mend the row")
    return raw


def _position(name: str, names: Sequence[str], where: str) -> int:
    if name not in names:
        raise UserError(f"{where}: annotator label {name!r}; allowed: {allowed(names)}; add it to `other_labels`")
    return list(names).index(name)


def _whole(count: object, where: str) -> int:
    try:
        number = float(count)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = -1.0
    if isinstance(count, bool) or not 0 <= number <= _LARGEST_COUNT or number != int(number):
        raise UserError(
            f"{where}: annotator count {str(count)[:40]}; allowed: whole numbers from 0 to {_LARGEST_COUNT};"
            " mend the row"
        )
    return int(number)
