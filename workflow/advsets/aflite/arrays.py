"""Turn arrays that a caller holds into splits in canonical order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advsets.aflite.inputs import as_column, as_matrices, check_classes
from advsets.aflite.rawsplit import RawSplit, blocks, canonical_order, check_labels
from advsets.errors import UserError


def split_from_arrays(
    where: str, X: Any, y: Any, ids: Iterable[Any] | None = None, groups: Iterable[Any] | None = None
) -> RawSplit:
    """Copy arrays into one float32 matrix in canonical order; the caller's are not written to.

    Parameters
    ----------
    where : str
        Name for messages.
    X : array of shape (n, n_features) or (n, n_choices, n_features), or list of (n_choices, n_features) arrays
        Embeddings; three axes, or a list of arrays with two, are multiple choice.
    y : sequence
        Labels; for multiple choice the index of the right candidate.
    ids : iterable, optional
        Unique id of each row; row numbers serve otherwise.
    groups : iterable, optional
        Group of each row; None stands for the row alone.
    """
    given = as_matrices(where, X)
    names = as_column(where, "ids", range(len(given)) if ids is None else ids, len(given))
    y = list(y) if isinstance(y, Iterator) else y
    labels = as_column(where, "y", y, len(given))
    if not isinstance(given, list):
        check_classes(where, y)
    group_names = None if groups is None else as_column(where, "groups", groups, len(given))
    order = canonical_order(where, names)
    sorted_ids = [str(names[i]) for i in order]
    checked = check_labels(where, sorted_ids, [labels[i] for i in order])
    if isinstance(given, list):
        x, offsets = _copy_choices(where, given, order, sorted_ids)
    else:
        x, offsets = _copy_vectors(where, given, order), None
    groups_sorted = None if group_names is None else [group_names[i] for i in order]
    raw = RawSplit(where, order, sorted_ids, checked, groups_sorted, x, offsets)
    raw.check()
    return raw


def _copy_vectors(where: str, vectors: NDArray[Any], order: NDArray[np.int64]) -> NDArray[np.float32]:
    _check_numeric(where, vectors)
    x = np.empty(vectors.shape, dtype=np.float32)
    with np.errstate(over="ignore"):
        for _, rows in blocks(len(order), vectors.shape[1]):
            x[rows] = vectors[order[rows]]
    return x


def _copy_choices(
    where: str, choices: Sequence[NDArray[Any]], order: NDArray[np.int64], ids: Sequence[str]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    width = choices[0].shape[1]
    for example_id, i in zip(ids, order, strict=True):
        if choices[i].ndim != 2 or choices[i].shape[1] != width:
            raise UserError(
                f"{where}: example {example_id!r} has candidates of shape {choices[i].shape}; allowed:"
                f" (n_choices, {width}) throughout; embed all rows with one model"
            )
        _check_numeric(where, choices[i])
    sizes = np.array([len(choices[i]) for i in order], dtype=np.int64)
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
    x = np.empty((int(offsets[-1]), width), dtype=np.float32)
    with np.errstate(over="ignore"):
        for place, i in enumerate(order):
            x[offsets[place] : offsets[place + 1]] = choices[i]
    return x, offsets


def _check_numeric(where: str, values: NDArray[Any]) -> None:
    if values.dtype.kind not in "fiu":
        raise UserError(f"{where}: X has values of type {values.dtype}; allowed: numbers; convert it")
