"""Table `soft_scores`: model probabilities against the annotators' distribution.

Conventions
-----------
Each group of annotators (the data set's own, and `more_annotators`) is a part of its own: the
examples with a vote for any class. Subsets, random subsets and bootstrap draws are of that part.
The annotators' distribution is the leading part of the counts, as long as the list of
probabilities, renormalised: labels that are no class of the task are left out. Labels are matched
by name: counts are stored in label order (`datasets`), probabilities too (`models`).
`js_distance` is the distance (natural logarithm) that ChaosNLI reports as JSD, `kl_nats` its KL.
Scores of an example are means over the model's seeds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from advsets.errors import UserError
from advsets.evaluation.frames import table_frame
from advsets.evaluation.inputs import Run
from advsets.evaluation.study import Study
from advsets.stats.bootstrap import fixed_point, masked_sums, percentile_interval, range_over_draws, ratio, subset_sums
from advsets.stats.divergence import cross_entropy_nats, js_distance, kl_nats, normalised

MEASURES = ("js_distance", "kl_nats", "cross_entropy_nats", "majority_accuracy")
_MAJORITY = MEASURES.index("majority_accuracy")


def soft_scores(study: Study) -> pl.DataFrame:
    """Distances to the annotators' distribution and accuracy against their majority, by subset and model.

    No rows where nobody was counted. For `random_subset` the scores are means over draws of as
    many examples of the part as the filtered subset has.
    """
    groups = {"own": study.inputs.frame["label_count"], "more_annotators": study.inputs.more_label_count}
    rows: list[dict[str, Any]] = []
    for annotators, counts in groups.items():
        part = _part(study, counts) if study.inputs.models and counts.null_count() < len(counts) else None
        if part is not None:
            rows += [{"annotators": annotators, **row} for row in _rows(study, part)]
    return table_frame("soft_scores", rows)


@dataclass(frozen=True)
class _Part:
    """Examples that a group of annotators labelled.

    `values` are the measures per example and model, shape (n_examples, n_models, n_measures); NaN:
    no most frequent label. `subsets` has the full part first, shape (n_examples, 1 + n_adversary_runs).
    """

    values: NDArray[np.float64]
    subsets: NDArray[np.bool_]

    @property
    def known(self) -> NDArray[np.bool_]:
        """Examples with a most frequent label, shape (n_examples,)."""
        return ~np.isnan(self.values[:, 0, _MAJORITY])

    def means(self, sums: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
        """Means from sums of `columns`, shape (..., n_models, n_measures)."""
        n = np.repeat(sums[..., -2:-1], len(MEASURES), axis=-1)
        n[..., _MAJORITY] = sums[..., -1]
        totals = sums[..., :-2].reshape(*sums.shape[:-1], self.values.shape[1], len(MEASURES)) / scale
        return ratio(totals, n[..., None, :])

    def columns(self) -> tuple[NDArray[np.float64], float]:
        """Measures of all models as fixed-point numbers, ones, and `known`; and the scale of the measures."""
        whole, scale = fixed_point(np.nan_to_num(self.values.reshape(len(self.values), -1)))
        return np.column_stack([whole, np.ones(len(whole)), self.known]), scale


def _part(study: Study, counts: pl.Series) -> _Part | None:
    """The examples with a vote for a class; None without any."""
    by_model = np.stack([_measures(study, model, counts) for model in study.inputs.models], axis=1)
    voted = ~np.isnan(by_model[:, 0, 0])
    return _Part(by_model[voted], study.subsets[voted]) if voted.any() else None


def _rows(study: Study, part: _Part) -> Iterator[dict[str, Any]]:
    s = study.settings
    columns, scale = part.columns()
    sums = part.subsets.T.astype(np.float64) @ columns
    measured = part.means(sums, scale)
    low, high = percentile_interval(
        part.means(masked_sums(columns, part.subsets, s.n_bootstrap, s.seed), scale), s.confidence
    )
    runs: list[tuple[str | None, int | None]] = [(None, None), *study.inputs.adversary_runs]
    for i, run in enumerate(runs):
        n = (int(sums[i, -2]), int(sums[i, -1]))
        for m, model in enumerate(study.inputs.models):
            yield _row(
                study, "full_set" if i == 0 else "filtered", run, model, n, measured[i, m], low[i, m], high[i, m]
            )
    drawn = subset_sums(columns, part.subsets[:, 1:].sum(axis=0), s.n_random_subsets, s.seed)
    mean, lowest, highest = range_over_draws(part.means(drawn, scale))
    for i, run in enumerate(study.inputs.adversary_runs):
        n = (int(drawn[0, i, -2]), round(float(drawn[:, i, -1].mean())))
        for m, model in enumerate(study.inputs.models):
            yield _row(study, "random_subset", run, model, n, mean[i, m], lowest[i, m], highest[i, m])


def _row(
    study: Study,
    subset: str,
    run: tuple[str | None, int | None],
    model: str,
    n: tuple[int, int],
    mean: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> dict[str, Any]:
    row = {
        "dataset": study.inputs.dataset,
        "subset": subset,
        "adversary": run[0],
        "adversary_seed": run[1],
        "evaluated_model": model,
        "n_examples": n[0],
        "n_majority": n[1],
    }
    for i, name in enumerate(MEASURES):
        row |= {name: mean[i], f"{name}_low": low[i], f"{name}_high": high[i]}
    return row


def _measures(study: Study, model: str, counts: pl.Series) -> NDArray[np.float64]:
    """Measures per example, mean over the model's seeds, (n_examples, n_measures); NaN: none, or no majority."""
    by_seed = []
    for run in (run for run in study.inputs.model_runs if run[0] == model):
        q = _probabilities(study, run)
        votes = _padded(counts, q.shape[1])
        p = normalised(votes)
        right = _right(study, run, votes)
        by_seed.append(np.column_stack([js_distance(p, q), kl_nats(p, q), cross_entropy_nats(p, q), right]))
    return np.mean(by_seed, axis=0)


def _right(study: Study, run: Run, votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 where the predicted label is the most frequent one, 0 where not, NaN where votes are tied, (n_examples,)."""
    names = np.array(study.inputs.label_order or [str(i) for i in range(votes.shape[1])])
    tied = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1
    predicted = study.inputs.predicted(run).to_numpy().astype(str)
    return np.where(tied, np.nan, predicted == names[votes.argmax(axis=1)])


def _probabilities(study: Study, run: Run) -> NDArray[np.float64]:
    """Probabilities of one run, shape (n_examples, n_labels); rows of fewer candidates end in zeros."""
    lists, order = study.inputs.probabilities(run), study.inputs.label_order
    lengths = lists.list.len().to_numpy()
    if order and (lengths != len(order)).any():
        raise UserError(
            f"{study.inputs.predictions[run]}: probabilities of {lengths.min():d} to {lengths.max():d} labels;"
            f" allowed: {len(order)}, in the order {', '.join(order)}; predict again"
        )
    return normalised(_padded(lists, int(lengths.max())))


def _padded(lists: pl.Series, width: int) -> NDArray[np.float64]:
    """First `width` entries of each list, zeros where there are none, shape (n_rows, width)."""
    columns = [lists.list.get(i, null_on_oob=True).cast(pl.Float64).fill_null(0.0).to_numpy() for i in range(width)]
    return np.stack(columns, axis=1)
