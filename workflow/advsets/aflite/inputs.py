"""Arrays, frames, tensors and sequences that a caller may hold, as NumPy arrays and lists.

Conventions
-----------
Frames (pandas, polars) and tensors are told by what they offer, so that neither library is
imported for callers that have none. Rows are taken in the order in which they stand; what has
no order (a set) is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse

from advsets.errors import UserError, allowed

SHAPES = "(n, n_features), (n, n_choices, n_features) or a list of (n_choices, n_features) arrays"
_NO_VALUE = ("NAType", "NaTType")
"""Types of pandas' missing values, which are equal to nothing."""


def as_matrices(where: str, X: Any) -> NDArray[Any] | list[NDArray[Any]]:
    """`X` as one matrix, or for multiple choice as a list of one (n_choices, n_features) matrix per example.

    Raises
    ------
    UserError
        If it has another number of axes, is sparse, or its rows differ in length.
    """
    if X is None or issparse(X):
        found = "missing" if X is None else "sparse"
        advice = "give the embeddings" if X is None else "call X.toarray()"
        raise UserError(f"{where}: X is {found}; allowed: {SHAPES}, dense; {advice}")
    if isinstance(X, (list, tuple)) and len(X) and _n_axes(where, X[0]) == 2:
        return [_as_array(where, item) for item in X]
    array = _as_array(where, X)
    if array.ndim == 3:
        return list(array)
    if array.ndim != 2:
        raise UserError(f"{where}: X has {array.ndim} axes; allowed: {SHAPES}; reshape it")
    return array


def as_column(where: str, name: str, values: Any, n_examples: int) -> list[str | None]:
    """One value per row as a string, None where it is missing.

    Raises
    ------
    UserError
        If `values` has no order, is not one column, or not of `n_examples` rows.
    """
    items = _items(where, name, values)
    if len(items) != n_examples:
        raise UserError(f"{where}: {name} has {len(items)} values for {n_examples} rows; allowed: one per row; mend it")
    for row, item in enumerate(items):
        if isinstance(item, (list, tuple, dict, set, np.ndarray)):
            raise UserError(
                f"{where}: {name} holds a {type(item).__name__} in row {row + 1}; allowed: one value per row; mend it"
            )
    return [None if _is_missing(item) else str(item) for item in items]


def check_classes(where: str, y: Any) -> None:
    """Raise `UserError` for numbers with a fraction: a quantity, not the names of classes."""
    values = _plain(y)
    if not isinstance(values, np.ndarray) or values.dtype.kind == "O":
        values = np.array([item for item in values if isinstance(item, (float, np.floating))], dtype=float)
    broken = values[np.isfinite(values) & (values != np.floor(values))] if values.dtype.kind == "f" else []
    if len(broken):
        raise UserError(
            f"{where}: y is continuous, e.g. {broken[0]:g}; allowed: one class label per row, strings or whole numbers;"
            " bin it into classes"
        )


def feature_names(where: str, X: Any) -> list[str] | None:
    """Column names of a frame, or None for arrays and for columns without names (as in scikit-learn)."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    n_strings = sum(isinstance(name, str) for name in names)
    if 0 < n_strings < len(names):
        raise UserError(
            f"{where}: X has column names of several types ({allowed(names, 6)}); allowed: strings throughout;"
            " rename the columns"
        )
    return [str(name) for name in names] if n_strings else None


def check_same_features(names: list[str], other: list[str], where: str) -> None:
    """Raise `UserError` if the columns of two frames differ in name or order."""
    if names == other:
        return
    if sorted(names) == sorted(other):
        what = "the columns of training X in another order"
    else:
        missing = [name for name in names if name not in other]
        extra = [name for name in other if name not in names]
        what = f"other columns than training X (missing: {allowed(missing, 3)}; unknown: {allowed(extra, 3)})"
    raise UserError(
        f"{where}: X has {what}; allowed: equal names in equal order, first {allowed(names, 3)};"
        " give X_eval[X.columns], or arrays"
    )


def _items(where: str, name: str, values: Any) -> list[Any]:
    if values is None:
        raise UserError(f"{where}: {name} is missing; allowed: one value per row; give it")
    if isinstance(values, (Set, Mapping)):
        raise UserError(
            f"{where}: {name} is a {type(values).__name__}, whose order need not be that of the rows; allowed: a list,"
            " array or column with one value per row; give one in the order of X"
        )
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise UserError(
            f"{where}: {name} is a {type(values).__name__}; allowed: a list, array or column with one value per row;"
            " give one"
        )
    plain = _plain(values)
    if isinstance(plain, np.ndarray) and plain.ndim != 1:
        raise UserError(
            f"{where}: {name} has shape {plain.shape}; allowed: one value per row, shape (n,) or (n, 1); mend it"
        )
    return list(plain)


def _plain(values: Any) -> Any:
    """Tensors and frames as arrays, a single column as one axis; anything else as it is, once through."""
    if isinstance(values, torch.Tensor):
        values = _from_tensor(values)
    elif hasattr(values, "columns") and hasattr(values, "shape"):
        values = np.asarray(values, dtype=object)
    elif not isinstance(values, np.ndarray):
        return list(values)
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _is_missing(item: Any) -> bool:
    if item is None or type(item).__name__ in _NO_VALUE:
        return True
    return isinstance(item, (float, np.floating)) and bool(np.isnan(item))


def _n_axes(where: str, item: Any) -> int:
    return item.ndim if isinstance(item, (np.ndarray, torch.Tensor)) else _as_array(where, item).ndim


def _as_array(where: str, values: Any) -> NDArray[Any]:
    if isinstance(values, torch.Tensor):
        return _from_tensor(values)
    if isinstance(values, (list, tuple)) and len(values) and isinstance(values[0], torch.Tensor):
        values = [_from_tensor(item) for item in values]
    try:
        return np.asarray(values)
    except ValueError:
        raise UserError(
            f"{where}: X holds rows of different lengths; allowed: {SHAPES}; embed all rows with one model"
        ) from None


def _from_tensor(tensor: torch.Tensor) -> NDArray[Any]:
    """Values of a tensor wherever it lies; bfloat16, which NumPy lacks, as float32."""
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
