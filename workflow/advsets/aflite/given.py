"""What a caller gives the estimator, as the splits of one adversary or of several.

Conventions
-----------
Arrays of several adversaries share their rows: one list of ids, labels and groups serves all, in the
order in which the rows stand in each.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from advsets.aflite.arrays import split_from_arrays
from advsets.aflite.data import FilterData, prepare
from advsets.aflite.inputs import SHAPES, as_matrices, check_same_features, feature_names
from advsets.aflite.members import join_members
from advsets.aflite.rawsplit import RawSplit
from advsets.aflite.settings import check_combination
from advsets.errors import UserError, allowed


class Member(NamedTuple):
    """Both splits of one adversary, and the column names of its training rows."""

    train: RawSplit
    evaluation: RawSplit | None
    feature_names: list[str] | None


def members_given(
    X: Any,
    y: Any,
    ids: Iterable[Any] | None,
    groups: Iterable[Any] | None,
    eval_set: tuple[Any, Any] | None,
    eval_ids: Iterable[Any] | None,
    eval_groups: Iterable[Any] | None,
    combination: str | None,
) -> list[Member]:
    """What was given, per adversary; one without a combination."""
    if combination is not None:
        check_combination(combination)
    X_eval, y_eval = _checked_eval_set(eval_set, eval_ids, eval_groups)
    y, ids, groups, y_eval, eval_ids, eval_groups = map(_listed, (y, ids, groups, y_eval, eval_ids, eval_groups))
    train = _as_members("training rows", X, y, combination)
    if eval_set is None:
        return [
            Member(split_from_arrays(where, x, y, ids, groups), None, feature_names(where, x))
            for where, x in _named("training rows", train, combination)
        ]
    evaluation = _as_members("evaluation rows", X_eval, y_eval, combination)
    _check_n_members(train, evaluation)
    members = []
    for (where, x), (eval_where, x_eval) in zip(
        _named("training rows", train, combination), _named("evaluation rows", evaluation, combination), strict=True
    ):
        names = feature_names(where, x)
        other = split_from_arrays(eval_where, x_eval, y_eval, eval_ids, eval_groups)
        members.append(Member(split_from_arrays(where, x, y, ids, groups), other, names))
        _check_feature_names(names, feature_names(eval_where, x_eval), eval_where)
    return members


def joined(members: list[Member], standardise: bool, shared_ids: bool, combination: str) -> FilterData:
    """Data of a filter by these members, whose matrices are taken over; `shared_ids` as in `prepare`."""
    data = [prepare(m.train, m.evaluation, standardise=standardise, shared_ids=shared_ids) for m in members]
    where = [{"train": m.train.where, "evaluation": m.evaluation.where if m.evaluation else ""} for m in members]
    return join_members(data, where, combination)


def _checked_eval_set(
    eval_set: tuple[Any, Any] | None, eval_ids: Iterable[Any] | None, eval_groups: Iterable[Any] | None
) -> tuple[Any, Any]:
    if eval_set is None:
        if eval_ids is not None or eval_groups is not None:
            raise UserError("eval_set: missing, but eval_ids or eval_groups were given; give eval_set=(X_eval, y_eval)")
        return None, None
    if not isinstance(eval_set, (tuple, list)) or len(eval_set) != 2:
        raise UserError("eval_set: not a pair; allowed: (X_eval, y_eval); give both")
    return eval_set[0], eval_set[1]


def _listed(values: Any) -> Any:
    """Values that can be gone through once per adversary."""
    return list(values) if isinstance(values, Iterator) else values


def _named(where: str, given: list[Any], combination: str | None) -> list[tuple[str, Any]]:
    return [(where if combination is None else _member_name(where, i), x) for i, x in enumerate(given)]


def _check_feature_names(names: list[str] | None, other: list[str] | None, where: str) -> None:
    if names is not None and other is not None:
        check_same_features(names, other, where)
    elif names != other:
        text = "only one of X and the X of eval_set has feature names; columns are compared by position"
        warnings.warn(text, UserWarning, stacklevel=4)


def _as_members(where: str, X: Any, y: Any, combination: str | None) -> list[Any]:
    """X of each adversary: one without a combination, else those that `X` lists.

    Raises
    ------
    UserError
        If `X` is not such a list, or its arrays are not of one row per label; the message has their shapes.
    """
    n_labels = _length(y)
    if combination is None:
        if _looks_like_members(X, n_labels):
            raise UserError(
                f"{where}: X lists {len(X)} arrays of shape {_shapes(X)} for {n_labels} labels; allowed: {SHAPES}; for"
                " one array per adversary set combination to mean or minimum"
            )
        return [X]
    if not isinstance(X, (list, tuple)) or not len(X):
        found = f"an array of shape {_shapes([X])}" if hasattr(X, "shape") else f"a {type(X).__name__} without arrays"
        raise UserError(
            f"{where}: X is {found} with combination {combination!r}; allowed: a list of one X per adversary, each"
            f" {SHAPES}; give such a list, or set combination to None"
        )
    members = [as_matrices(_member_name(where, i), item) for i, item in enumerate(X)]
    wanted = len(members[0]) if n_labels is None else n_labels
    if any(len(member) != wanted for member in members):
        raise UserError(
            f"{where}: X lists arrays of shape {_shapes(members)} for {wanted} labels; allowed: one array per adversary"
            f" with one row per label, each {SHAPES}; embed the same examples with every adversary"
        )
    return list(X)


def _check_n_members(train: Sequence[Any], evaluation: Sequence[Any]) -> None:
    """Raise `UserError` if the X of training and evaluation rows list another number of adversaries."""
    if len(train) != len(evaluation):
        raise UserError(
            f"evaluation rows: X lists {len(evaluation)} array(s) of shape {_shapes(evaluation)}, that of training rows"
            f" {len(train)} of shape {_shapes(train)}; allowed: one per adversary in both, in the same order;"
            " add or drop arrays"
        )


def _member_name(where: str, index: int) -> str:
    """Name of the rows of one of several adversaries for messages."""
    return f"{where} of adversary {index + 1}"


def _looks_like_members(X: Any, n_labels: int | None) -> bool:
    """Whether a list that cannot be multiple choice has one row per label in each of its arrays."""
    if not isinstance(X, (list, tuple)) or not len(X) or n_labels is None or len(X) == n_labels:
        return False
    return all(len(getattr(item, "shape", ())) > 1 and len(item) == n_labels for item in X)


def _shapes(members: Sequence[Any]) -> str:
    """Shapes of arrays and nested lists for a message."""
    return allowed([f"({', '.join(map(str, _shape(member)))})" for member in members], 6)


def _shape(values: Any) -> tuple[Any, ...]:
    if hasattr(values, "shape"):
        return tuple(values.shape)
    first = np.shape(values[0])
    return (len(values), "n_choices", first[1]) if len(first) == 2 else (len(values), *first)


def _length(y: Any) -> int | None:
    """Number of values of a sized column, None for what is none."""
    try:
        return len(y)
    except TypeError:
        return None
