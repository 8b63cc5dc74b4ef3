"""Members of an ensemble: adversaries that filter together, each with its own representation of the same examples.

Conventions
-----------
Every split is in canonical order of `example_id` once it is read, so a row stands at the same place in
all members if, and only if, their ids are the same. Labels and groups are compared by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from advsets.aflite.data import FilterData, Split, load
from advsets.aflite.rawsplit import SHOWN
from advsets.aflite.settings import MEAN, check_combination
from advsets.aflite.state import SPLITS
from advsets.errors import UserError, allowed

Files = Path | Sequence[Path]
"""Embeddings of one adversary, or of each member of an ensemble."""


def as_pairs(train: Files, evaluation: Files | None) -> list[tuple[Path, Path | None]]:
    """Training and evaluation file of each member; the evaluation set is missing for all or none."""
    paths = [train] if isinstance(train, Path) else list(train)
    if evaluation is None:
        return [(path, None) for path in paths]
    return list(zip(paths, [evaluation] if isinstance(evaluation, Path) else evaluation, strict=True))


def load_members(
    train: Files,
    evaluation: Files | None,
    *,
    standardise: bool,
    use_groups: bool = True,
    combination: str = MEAN,
) -> FilterData:
    """Read the embeddings of every member of an ensemble, in this order; one member is a filter as usual.

    Raises
    ------
    UserError
        If a file cannot be used, or members differ in their examples, labels or groups.
    """
    pairs = as_pairs(train, evaluation)
    members = [load(t, e, standardise=standardise, use_groups=use_groups) for t, e in pairs]
    return join_members(members, [{"train": str(t), "evaluation": str(e)} for t, e in pairs], combination)


def join_members(members: Sequence[FilterData], where: Sequence[Mapping[str, str]], combination: str) -> FilterData:
    """One `FilterData` of several that hold the same examples.

    Parameters
    ----------
    members : sequence of FilterData
        At least one; rows, labels and groups are read from the first.
    where : sequence of mapping
        Name of each member's splits (`train`, `evaluation`) for messages.
    combination : {"mean", "minimum"}

    Raises
    ------
    UserError
        If members differ in their examples, labels or groups, or the combination is unknown.
    """
    check_combination(combination)
    first, there = members[0], where[0]
    for member, here in zip(members[1:], where[1:], strict=True):
        for name in SPLITS:
            if problem := _difference(first, member, name, there[name]):
                raise UserError(
                    f"{here[name]}: {problem}; allowed: the same examples as in {there[name]}, in any order, with equal"
                    " label and group_id; embed one set of examples with every adversary"
                )
    return dataclasses.replace(first, others=tuple(members[1:]), combination=combination)


def _difference(one: FilterData, other: FilterData, name: str, there: str) -> str:
    """What split `name` of two members differs in; empty if nothing. `there` is the first one's name."""
    if one.is_multiple_choice != other.is_multiple_choice:
        kinds = {True: "multiple choice (candidates)", False: "classification (one embedding)"}
        return f"it is {kinds[other.is_multiple_choice]}, but {there} is {kinds[one.is_multiple_choice]}"
    here = other.split(name)
    if one.split(name).ids != here.ids:
        return _other_ids(one.split(name).ids, here.ids)
    for what, values, wanted in (
        ("label", _labels(other, name), _labels(one, name)),
        ("number of candidates", _sizes(here), _sizes(one.split(name))),
        ("group_id", _groups(here), _groups(one.split(name))),
    ):
        wrong = [at for at, (value, want) in enumerate(zip(values, wanted, strict=True)) if value != want]
        if wrong:
            at = wrong[0]
            return (
                f"{len(wrong)} example(s) of another {what}, first {here.ids[at]!r}: {values[at]} here and"
                f" {wanted[at]} there"
            )
    return ""


def _other_ids(wanted: list[str], found: list[str]) -> str:
    missing, unknown = sorted(set(wanted) - set(found)), sorted(set(found) - set(wanted))
    parts = [(missing, "missing"), (unknown, "unknown")]
    return "example_ids differ: " + ", ".join(
        f"{len(ids)} {what} (first {allowed(ids[:SHOWN])})" for ids, what in parts if ids
    )


def _labels(data: FilterData, name: str) -> list[str]:
    """Label of each example as it was given."""
    labels = data.split(name).labels.tolist()
    return [str(i) if data.is_multiple_choice else repr(data.label_order[i]) for i in labels]


def _sizes(split: Split) -> list[int]:
    """Candidates of each example; none for classification."""
    return [] if split.offsets is None else np.diff(split.offsets).tolist()


def _groups(split: Split) -> list[str]:
    """Group of each example, or that it stands alone."""
    if split.groups is None or split.group_names is None:
        return ["none"] * len(split.ids)
    return [repr(split.group_names[group]) for group in split.groups]
