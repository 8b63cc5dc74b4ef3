"""AFLite against a plain reference: sklearn or scipy in float64, loops over rows and partitions.

The reference shares with the package the drawn subsets and the keyed hashes, nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from advsets import AFLite
from advsets.aflite.partitions import draw_masks
from advsets.seeding import id_hashes, mix

SEED = 11
N_PARTITIONS = 12
GRADIENT_LIMIT = 1e-9


@dataclass
class Problem:
    """Rows in the order in which they are given; `X` is (n, d), or (n, n_choices, d)."""

    X: np.ndarray
    y: np.ndarray
    ids: list[str]
    groups: list[str] | None
    X_eval: np.ndarray
    y_eval: np.ndarray
    eval_ids: list[str]
    eval_groups: list[str] | None
    settings: dict[str, object]


def make_problem(kind: str, seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    n_train, n_eval, d = 240, 90, 6
    n = n_train + n_eval
    groups = None
    settings: dict[str, object] = {"train_size": 0.2, "slice_size": 0.08}
    if kind == "multiple_choice":
        X = rng.normal(size=(n, 3, d))
        y = rng.integers(3, size=n)
        X[np.arange(n), y] += 1.2 * rng.random((n, 1))
    else:
        n_classes = 3 if kind == "three_class" else 2
        y = rng.integers(n_classes, size=n)
        centres = rng.normal(size=(n_classes, d)) * (3.0 if kind == "many_ties" else 1.2)
        X = centres[y] * rng.random((n, 1)) + rng.normal(size=(n, d)) * (0.4 if kind == "many_ties" else 1.0)
    X = X * rng.uniform(0.1, 10, size=d) + rng.normal(size=d)
    if kind == "many_ties":
        source = rng.integers(n // 4, size=n)  # each vector stands for about four rows
        X, y = X[source], y[source]
    if kind == "grouped":
        groups = [f"g{i}" for i in rng.integers(n // 3, size=n)]
        settings["threshold"] = 0.6
    ids = [f"{kind}-{i:04d}" for i in rng.permutation(n)]
    cut = slice(0, n_train), slice(n_train, n)
    return Problem(
        X[cut[0]].astype(np.float32),
        y[cut[0]],
        ids[cut[0]],
        groups and groups[cut[0]],
        X[cut[1]].astype(np.float32),
        y[cut[1]],
        ids[cut[1]],
        groups and groups[cut[1]],
        settings,
    )


def fit_reference(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Coefficients (n_outputs, d + 1) of one classifier, its gradient checked."""
    if X.ndim == 3:
        return fit_choice(X, y)
    model = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-12, max_iter=200).fit(X, y)
    weights = np.column_stack([model.coef_, model.intercept_])
    scores = X @ model.coef_.T + model.intercept_
    if len(weights) == 1:
        residual = 1 / (1 + np.exp(-scores)) - y[:, None]
    else:
        residual = softmax(scores, axis=1) - np.eye(len(weights))[y]
    gradient = np.column_stack([residual.T @ X + model.coef_, residual.sum(0)])
    assert np.abs(gradient).max() / len(y) < GRADIENT_LIMIT
    return weights


def fit_choice(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    chosen = X[np.arange(len(y)), y]

    def loss(w: np.ndarray) -> float:
        scores = X @ w
        top = scores.max(1)
        return float((top + np.log(np.exp(scores - top[:, None]).sum(1)) - chosen @ w).sum() + 0.5 * w @ w)

    def gradient(w: np.ndarray) -> np.ndarray:
        share = softmax(X @ w, axis=1)
        return np.einsum("ij,ijk->k", share, X) - chosen.sum(0) + w

    def hessian(w: np.ndarray) -> np.ndarray:
        share = softmax(X @ w, axis=1)
        mean = np.einsum("ij,ijk->ik", share, X)
        return np.einsum("ij,ijk,ijl->kl", share, X, X) - mean.T @ mean + np.eye(len(w))

    w = minimize(loss, np.zeros(X.shape[2]), jac=gradient, hess=hessian, method="trust-exact", tol=1e-11).x
    w -= np.linalg.solve(hessian(w), gradient(w))
    assert np.abs(gradient(w)).max() / len(y) < GRADIENT_LIMIT
    return w[None, :]


def margins_reference(X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """True score minus best other score of each row."""
    if X.ndim == 3:
        scores = X @ weights[0]
    elif len(weights) == 1:
        score = X @ weights[0, :-1] + weights[0, -1]
        return np.where(y == 1, score, -score)
    else:
        scores = X @ weights[:, :-1].T + weights[:, -1]
    out = []
    for row, label in zip(scores, y, strict=True):
        out.append(row[label] - max(score for index, score in enumerate(row) if index != label))
    return np.array(out)


def ranked(units: list[dict]) -> list[dict]:
    """Most predictable first; margins a rounding error apart are ties, broken by the key."""
    rough = sorted(units, key=lambda u: (-u["predictability"], -u["margin"]))
    blocks: list[list[dict]] = []
    for unit in rough:
        last = blocks[-1][-1] if blocks else None
        tied = last and last["predictability"] == unit["predictability"] and last["margin"] - unit["margin"] <= 1e-9
        if tied:
            blocks[-1].append(unit)
        else:
            blocks.append([unit])
    return [unit for block in blocks for unit in sorted(block, key=lambda u: u["key"])]


def units_of(correct: np.ndarray, held_out: np.ndarray, margin: np.ndarray, names: list[str]) -> list[dict]:
    """One dict per row, or per group of rows with one name, that was held out."""
    units = []
    for name in dict.fromkeys(names):
        rows = [i for i, other in enumerate(names) if other == name]
        if held_out[rows[0]] == 0:
            continue
        shares = [Fraction(int(correct[i]), int(held_out[i])) for i in rows]
        units.append(
            {
                "rows": rows,
                "predictability": sum(shares, Fraction(0)) / len(rows),
                "margin": float(np.mean(margin[rows])),
                "key": int(mix(id_hashes([name]), SEED, "tie")[0]),
            }
        )
    return units


def reference_rounds(problem: Problem) -> list[tuple[set[str], set[str]]]:
    """Ids removed from train and evaluation set, per round."""
    order, eval_order = np.argsort(problem.ids), np.argsort(problem.eval_ids)
    X, y = problem.X[order].astype(np.float64), problem.y[order]
    X_eval, y_eval = problem.X_eval[eval_order].astype(np.float64), problem.y_eval[eval_order]
    ids, eval_ids = [problem.ids[i] for i in order], [problem.eval_ids[i] for i in eval_order]
    names, eval_names = list(ids), list(eval_ids)
    if problem.groups is not None and problem.eval_groups is not None:
        names = [f"group:{problem.groups[i]}" for i in order]
        eval_names = [f"group:{problem.eval_groups[i]}" for i in eval_order]
    d = X.shape[-1]
    mean, scale = X.reshape(-1, d).mean(0), X.reshape(-1, d).std(0)
    X, X_eval = (X - mean) / scale, (X_eval - mean) / scale
    n_start = len(ids)
    train_size = round(float(problem.settings["train_size"]) * n_start)  # type: ignore[arg-type]
    slice_size = round(float(problem.settings["slice_size"]) * n_start)  # type: ignore[arg-type]
    threshold = Fraction(str(problem.settings.get("threshold", 0.75)))
    kept, eval_kept, removed_by_round = list(range(n_start)), list(range(len(eval_ids))), []
    while len(kept) > train_size / 0.8:
        masks = draw_reference(ids, names, y, kept, train_size, len(removed_by_round) + 1, problem)
        correct, held_out, total = (np.zeros(len(kept)) for _ in range(3))
        eval_correct, eval_total = np.zeros(len(eval_kept)), np.zeros(len(eval_kept))
        for mask in masks:
            weights = fit_reference(X[kept][mask], y[kept][mask])
            margin = margins_reference(X[kept], y[kept], weights)
            correct += (margin > 0) & ~mask
            held_out += ~mask
            total += np.where(mask, 0, margin)
            eval_margin = margins_reference(X_eval[eval_kept], y_eval[eval_kept], weights)
            eval_correct += eval_margin > 0
            eval_total += eval_margin
        train_units = units_of(correct, held_out, total / np.maximum(held_out, 1), [names[i] for i in kept])
        all_held_out = np.full(len(eval_kept), N_PARTITIONS)
        eval_units = units_of(eval_correct, all_held_out, eval_total / N_PARTITIONS, [eval_names[i] for i in eval_kept])
        gone: list[int] = []
        for unit in ranked([u for u in train_units if u["predictability"] > threshold]):
            if len(gone) >= slice_size:
                break
            gone += [kept[i] for i in unit["rows"]]
        eval_gone = [eval_kept[i] for u in eval_units if u["predictability"] > threshold for i in u["rows"]]
        removed_by_round.append(({ids[i] for i in gone}, {eval_ids[i] for i in eval_gone}))
        kept = [i for i in kept if i not in set(gone)]
        eval_kept = [i for i in eval_kept if i not in set(eval_gone)]
        if len(gone) < slice_size:
            break
    return removed_by_round


def draw_reference(
    ids: list[str], names: list[str], y: np.ndarray, kept: list[int], train_size: int, filtering_round: int, p: Problem
) -> np.ndarray:
    hashes = id_hashes([ids[i] for i in kept])
    strata = np.zeros(len(kept), dtype=np.int64) if p.X.ndim == 3 else y[kept]
    grouping: dict[str, np.ndarray] = {}
    if p.groups is not None:
        place = {name: i for i, name in enumerate(dict.fromkeys(names))}
        grouping = {
            "groups": np.array([place[names[i]] for i in kept]),
            "group_hashes": id_hashes(list(place)),
        }
    return draw_masks(hashes, strata, train_size, N_PARTITIONS, seed=SEED, filtering_round=filtering_round, **grouping)


def package_rounds(problem: Problem, **changes: object) -> list[tuple[set[str], set[str]]]:
    model = AFLite(
        n_partitions=N_PARTITIONS, random_state=SEED, device="cpu", n_threads=1, **{**problem.settings, **changes}
    )
    model.fit(
        problem.X,
        problem.y,
        problem.ids,
        problem.groups,
        (problem.X_eval, problem.y_eval),
        problem.eval_ids,
        problem.eval_groups,
    )
    removed = model.round_scores_.filter(model.round_scores_["removed"])
    out = []
    for filtering_round in range(1, model.n_rounds_ + 1):
        part = removed.filter(removed["filtering_round"] == filtering_round)
        out.append(tuple(set(part.filter(part["split"] == s)["example_id"]) for s in ("train", "evaluation")))
    return out  # type: ignore[return-value]


@pytest.mark.parametrize("kind", ["binary", "three_class", "multiple_choice", "grouped", "many_ties"])
def test_removed_ids_are_those_of_the_reference_in_every_round(kind: str) -> None:
    problem = make_problem(kind, seed=5)
    expected = reference_rounds(problem)
    assert len(expected) >= 3 and sum(len(train) for train, _ in expected) > 30
    assert package_rounds(problem) == expected
