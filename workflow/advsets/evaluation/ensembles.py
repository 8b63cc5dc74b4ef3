"""Table `ensembles`: do several adversaries together harm their own models less, and at what cost?

Conventions
-----------
Filters are compared at equal sizes: the smallest, the middle and the largest that a single adversary
retained (of an even number the lower middle one). Each gives its hardest examples (see
`advsets.evaluation.difficulty`), of its own retained set and, if that is smaller, what it removed
last. A filter's own models are its members: of a single adversary itself alone.
Log-odds of accuracy over single adversaries are fitted by adversary, evaluated model and an own-cell
term; the own excess of any filter is the mean log-odds of its own models minus that of all others,
each less its model's effect. Below 0 own models are harmed more. Where every evaluated model is a
member, or none, it is not defined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from advsets.evaluation.difficulty import hardest, places, retained_mask
from advsets.evaluation.frames import table_frame
from advsets.evaluation.inputs import Run
from advsets.evaluation.study import Study
from advsets.evaluation.weighted import Scores, summary, weighted_scores
from advsets.stats.bootstrap import known_mean, percentile_interval

SINGLE = "single"
ALL_SINGLE = "single adversaries, mean"


@dataclass(frozen=True)
class Filter:
    """One adversary, or an ensemble: its name, kind (`single`, `mean`, `minimum`) and members."""

    name: str
    kind: str
    members: tuple[str, ...]
    seed: int


def ensembles(study: Study, retained: Mapping[Run, Path], described: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
    """At each size one row per filter, and per seed one with the mean over single adversaries.

    Parameters
    ----------
    retained : mapping of (ensemble, seed) to Path
        Tables `retained` of the ensembles.
    described : mapping of ensemble to its `members` and `combination`
    """
    filters = [Filter(name, SINGLE, (name,), seed) for name, seed in study.inputs.adversary_runs]
    filters += [
        Filter(name, str(described[name]["combination"]), tuple(described[name]["members"]), seed)
        for name, seed in sorted(retained)
    ]
    paths = [(study.inputs.retained if f.kind == SINGLE else retained)[f.name, f.seed] for f in filters]
    return table_frame("ensembles", _rows(study, filters, paths) if filters else ())


def compared_sizes(n_retained: Sequence[int]) -> dict[str, int]:
    """Sizes at which filters are compared (`smallest`, `middle`, `largest`) of those that single adversaries kept."""
    ordered = sorted(n_retained)
    return {"smallest": ordered[0], "middle": ordered[(len(ordered) - 1) // 2], "largest": ordered[-1]}


def _rows(study: Study, filters: Sequence[Filter], paths: Sequence[Path]) -> Iterator[dict[str, Any]]:
    sizes = [int(retained_mask(study, path).sum()) for path in paths]
    order = np.column_stack([places(study, path) for path in paths])
    compared = compared_sizes([size for f, size in zip(filters, sizes, strict=True) if f.kind == SINGLE])
    for comparison, n_examples in compared.items():
        about = {"comparison": comparison, "n_examples": n_examples}
        yield from ({**row, **about} for row in _rows_of_size(study, filters, sizes, hardest(order, n_examples)))


def _rows_of_size(
    study: Study, filters: Sequence[Filter], sizes: Sequence[int], weights: NDArray[np.bool_]
) -> Iterator[dict[str, Any]]:
    scores = weighted_scores(study, weights)
    excess = own_excess(study, filters, scores.value), own_excess(study, filters, scores.draws)
    for at, (one, size) in enumerate(zip(filters, sizes, strict=True)):
        yield {
            **_described(study, one, size),
            **summary(study, scores, at),
            **_own_accuracy(study, one, scores, at),
            **_excess(study, excess[0][at], excess[1][:, at]),
        }
    for seed in sorted({f.seed for f in filters if f.kind == SINGLE}):
        single = [i for i, f in enumerate(filters) if f.kind == SINGLE and f.seed == seed]
        pooled = Scores(scores.value[single].mean(axis=0)[None], scores.draws[:, single].mean(axis=1)[:, None])
        yield {
            **_described(study, Filter(ALL_SINGLE, SINGLE, (), seed), None),
            **summary(study, pooled, 0),
            **dict.fromkeys(("tau_b", "tau_b_low", "tau_b_high", "rank_change_mean")),
            "accuracy_members": float("nan"),
            "accuracy_others": float("nan"),
            **_excess(study, known_mean(excess[0][single]), known_mean(excess[1][:, single], axis=-1)),
        }


def own_excess(study: Study, filters: Sequence[Filter], accuracy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Own excess of each filter, shape (..., n_filters), from accuracies of shape (..., n_filters, n_models)."""
    own = np.array([[m in f.members for m in study.inputs.models] for f in filters])
    single = np.array([f.kind == SINGLE for f in filters])
    half = 0.5 / study.inputs.n_examples  # keeps accuracies of 0 and 1 finite
    odds = np.log(accuracy + half) - np.log(1 - accuracy + half)
    relative = odds - _model_effects(odds[..., single, :], own[single])[..., None, :]
    n_own, n_other = own.sum(axis=1), (~own).sum(axis=1)
    defined = (n_own > 0) & (n_other > 0)
    gap = (relative * own).sum(axis=-1) / np.maximum(n_own, 1) - (relative * ~own).sum(axis=-1) / np.maximum(n_other, 1)
    return np.where(defined, gap, np.nan)


def _model_effects(odds: NDArray[np.float64], own: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Model effects of the fit by adversary, model and own-cell term, shape (..., n_models).

    Parameters
    ----------
    odds : array, shape (..., n_single, n_models)
    own : array of bool, shape (n_single, n_models)
    """
    n_rows, n_models = own.shape
    rows, columns = np.indices(own.shape).reshape(2, -1)
    design = np.hstack([np.eye(n_rows)[rows], np.eye(n_models)[columns], own.reshape(-1, 1)])
    flat = odds.reshape(*odds.shape[:-2], n_rows * n_models)
    return (flat @ np.linalg.pinv(design).T)[..., n_rows : n_rows + n_models]


def _described(study: Study, one: Filter, n_retained: int | None) -> dict[str, Any]:
    return {
        "dataset": study.inputs.dataset,
        "filter": one.name,
        "kind": one.kind,
        "adversary_seed": one.seed,
        "members": list(one.members),
        "n_retained": n_retained,
    }


def _own_accuracy(study: Study, one: Filter, scores: Scores, at: int) -> dict[str, float]:
    own = [i for i, m in enumerate(study.inputs.models) if m in one.members]
    others = [i for i, m in enumerate(study.inputs.models) if m not in one.members]
    return {
        f"accuracy_{name}": summary(study, scores, at, models)["accuracy_mean"]
        for name, models in (("members", own), ("others", others))
    }


def _excess(study: Study, value: NDArray[np.float64], draws: NDArray[np.float64]) -> dict[str, float]:
    low, high = percentile_interval(draws, study.settings.confidence)
    return {"own_excess": float(value), "own_excess_low": float(low), "own_excess_high": float(high)}
