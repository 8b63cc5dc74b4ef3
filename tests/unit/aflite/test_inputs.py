"""What the estimator accepts as X, y, ids and groups, and what it says of the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import torch

from advsets import AFLite
from advsets.aflite.compute import MAX_THREADS
from advsets.errors import UserError

N, N_EVALUATION = 80, 30
NAMES = ["a", "b", "c", "d"]


def model(**changes: Any) -> AFLite:
    settings: dict[str, Any] = {"n_partitions": 4, "slice_size": 0.15, "threshold": 0.6, "max_rounds": 2}
    return AFLite(**{**settings, "device": "cpu", **changes})


@pytest.fixture
def rows(make_rows) -> tuple[np.ndarray, np.ndarray]:
    return make_rows(N)


@pytest.fixture
def other(make_rows) -> tuple[np.ndarray, np.ndarray]:
    return make_rows(N_EVALUATION, seed=3)


IDS = [f"t{i}" for i in range(N)]
UNORDERED = [set, frozenset, lambda items: dict.fromkeys(items).keys(), dict.fromkeys]


@pytest.mark.parametrize("kind", UNORDERED)
@pytest.mark.parametrize("name", ["ids", "y", "groups", "eval_ids", "eval_groups"])
def test_collections_without_the_order_of_the_rows_are_refused(rows, other, kind: Any, name: str) -> None:
    X, y = rows
    given: dict[str, Any] = {"X": X, "y": y, "eval_set": other}
    given[name] = kind([f"{name}{i}" for i in range(N_EVALUATION if name.startswith("eval") else N)])
    where = "evaluation rows" if name.startswith("eval") else "training rows"
    message = f"{where}: {name.removeprefix('eval_')} is a .*, whose order need not be that of the rows"
    with pytest.raises(UserError, match=message):
        model().fit(**given)


@pytest.mark.parametrize("frame", [pd.DataFrame, lambda X, columns: pl.DataFrame(X, schema=columns)])
def test_columns_of_frames_must_agree_in_name_and_order(rows, other, frame: Any) -> None:
    (X, y), (X_eval, y_eval) = rows, other
    train, evaluation = frame(X, columns=NAMES), frame(X_eval, columns=NAMES)
    plain = model().fit(X, y, eval_set=(X_eval, y_eval))
    named = model().fit(train, y, eval_set=(evaluation, y_eval))
    np.testing.assert_array_equal(plain.eval_retained_, named.eval_retained_)
    assert named.feature_names_in_.tolist() == NAMES and not hasattr(plain, "feature_names_in_")
    assert not hasattr(named.fit(X, y), "feature_names_in_")
    with pytest.raises(UserError, match="X has the columns of training X in another order; .* first a, b, c"):
        model().fit(train, y, eval_set=(evaluation[NAMES[::-1]], y_eval))
    with pytest.raises(UserError, match=r"other columns than training X \(missing: d; unknown: e\)"):
        model().fit(train, y, eval_set=(frame(X_eval, columns=["a", "b", "c", "e"]), y_eval))
    with pytest.warns(UserWarning, match="compared by position"):
        model().fit(train, y, eval_set=(X_eval, y_eval))


def test_frames_numbered_by_default_have_no_names(rows, other) -> None:
    found = model().fit(pd.DataFrame(rows[0]), rows[1], eval_set=(pd.DataFrame(other[0]), other[1]))
    assert not hasattr(found, "feature_names_in_")
    with pytest.raises(UserError, match="column names of several types"):
        model().fit(pd.DataFrame(rows[0], columns=["a", 1, 2, 3]), rows[1])


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y: (torch.tensor(X, requires_grad=True), torch.tensor(y)),
        lambda X, y: (torch.tensor(X).bfloat16(), y),
        lambda X, y: ([torch.tensor(row) for row in X], y),
        lambda X, y: (X, pd.DataFrame({"y": y}, index=range(7, 7 + len(y)))),
        lambda X, y: (X, pl.DataFrame({"y": y})),
        lambda X, y: (X, y[:, None]),
        lambda X, y: (X, (label for label in y.tolist())),
        lambda X, y: (X, pd.Series(y, dtype="category")),
    ],
)
def test_tensors_and_columns_are_accepted(rows, change: Any) -> None:
    X = torch.tensor(rows[0]).bfloat16().float().numpy()  # values that bfloat16 holds
    plain, found = model().fit(X, rows[1]), model().fit(*change(X, rows[1]))
    assert found.classes_.tolist() == ["0", "1"]
    np.testing.assert_array_equal(plain.removed_in_round_, found.removed_in_round_)


def test_candidates_may_be_tensors() -> None:
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(N, 3, 5)).astype(np.float32), rng.integers(3, size=N)
    plain = model().fit(X, y)
    for given in (torch.tensor(X), [torch.tensor(item) for item in X], X.tolist()):
        np.testing.assert_array_equal(plain.margin_, model().fit(given, y).margin_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (scipy.sparse.csr_matrix(X), y), r"X is sparse; allowed: .* call X.toarray\(\)"),
        (lambda X, y: (scipy.sparse.csr_array(X), y), "X is sparse"),
        (lambda X, y: (None, y), "X is missing"),
        (lambda X, y: ([[1.0, 2.0], [1.0]] * (N // 2), y), "X holds rows of different lengths"),
        (lambda X, y: (X, None), "y is missing"),
        (lambda X, y: (X, 3), "y is a int"),
        (lambda X, y: (X, "01" * (N // 2)), "y is a str"),
        (lambda X, y: (X, np.eye(2)[y]), r"y has shape \(80, 2\)"),
        (lambda X, y: (X, pd.DataFrame({"a": y, "b": y})), r"y has shape \(80, 2\)"),
        (lambda X, y: (X, [[label] for label in y]), "y holds a list in row 1"),
        (lambda X, y: (X, X[:, 0]), "y is continuous, e.g. "),
        (lambda X, y: (X, list(X[:, 0])), "y is continuous"),
        (lambda X, y: (X, pd.Series([pd.NA, *y[1:]])), r"1 row\(s\) without a label, first 0"),
    ],
)
def test_what_cannot_be_used_is_one_clear_line(rows, change: Any, message: str) -> None:
    with pytest.raises(UserError, match=f"training rows: {message}") as caught:
        model().fit(*change(*rows))
    assert len(str(caught.value)) < 300 and "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["0", 1.5, np.random.default_rng(0)])
def test_random_state_is_an_integer_or_a_random_state(rows, value: Any) -> None:
    with pytest.raises(UserError, match="random_state: .* is not allowed; allowed: an integer"):
        model(random_state=value).fit(*rows)


@pytest.mark.parametrize("value", ["gpu", None, "mps", "cuda:x", "cuda:4096"])
def test_device_is_one_of_those_named(rows, value: Any) -> None:
    with pytest.raises(UserError, match="device: .* allowed: auto, cpu"):
        model(device=value).fit(*rows)


@pytest.mark.parametrize("value", ["a", 0, -1, 1.5, True, MAX_THREADS + 1, 99_999_999_999])
def test_threads_are_bounded(rows, value: Any) -> None:
    with pytest.raises(UserError, match=f"n_threads: .* allowed: an integer from 1 to {MAX_THREADS}"):
        model(n_threads=value).fit(*rows)


def test_groups_that_no_subset_can_hold_are_named(rows) -> None:
    with pytest.raises(UserError, match=r"group_id 'g' has 80 training rows, .* raise train_size, leave group_id out"):
        model().fit(*rows, groups=["g"] * N)
    model(use_groups=False).fit(*rows, groups=["g"] * N)


def test_an_emptied_evaluation_set_gives_a_warning(rows) -> None:
    X, y = rows
    easy = np.tile(30 * (X[y == 1].mean(0) - X[y == 0].mean(0)), (8, 1))
    with pytest.warns(UserWarning, match="none of 8 evaluation rows is left"):
        model().fit(X, y, eval_set=(easy, [1] * 8))
