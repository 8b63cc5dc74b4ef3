"""One filtering round: from a state to the next, with its scores and its line.

Conventions
-----------
A round is a pure function of state, data, settings and seed. Classifiers are fitted on
subsets of the retained training rows only; evaluation rows are predicted, and nothing else
looks at them. Accuracies are over (classifier, row) pairs.
The full list of labels is kept throughout: a label that has left the training rows keeps its
column, and evaluation rows of it count as predicted wrong, with an unknown margin.
Rows are in canonical order before anything is computed, and the sums of the solver have a
fixed order, so tables are equal to the bit for any input order and thread count on one device.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from advsets.aflite.compute import devices_of
from advsets.aflite.data import FilterData
from advsets.aflite.ensemble import combine
from advsets.aflite.logreg import Fits, fit_classifiers
from advsets.aflite.partitions import check_groups, draw_masks, label_quotas
from advsets.aflite.removal import Removal, RowScores, decide
from advsets.aflite.scoring import score_examples
from advsets.aflite.settings import Counts, FilterSettings
from advsets.aflite.state import SPLITS, FilterState, SplitState, score_columns
from advsets.errors import UserError

if TYPE_CHECKING:
    import polars as pl

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


class RoundResult(NamedTuple):
    """State after a round, table `round_scores` of the round, and its row of table `rounds`."""

    state: FilterState
    scores: pl.DataFrame
    line: dict[str, Any]


def start_state(data: FilterData, counts: Counts) -> FilterState:
    """State before round 1; raises `UserError` if subsets cannot hold every label, or a group is too large."""
    if not data.is_multiple_choice:
        label_quotas(data.train.labels, counts.train_size)
    if data.train.groups is not None and data.train.group_names is not None:
        check_groups(data.train.groups, data.train.group_names, counts.train_size)
    return FilterState(SplitState.start(counts.n_train), SplitState.start(counts.n_evaluation))


def run_rounds(
    state: FilterState,
    data: FilterData,
    settings: FilterSettings,
    counts: Counts,
    seed: int,
    *,
    n_rounds: int | None = None,
    device: str = "cpu",
) -> Iterator[RoundResult]:
    """Run rounds until filtering stops, or `n_rounds` of them; `data` lets go of removed rows on the way."""
    done = 0
    while state.stop_reason is None and (n_rounds is None or done < n_rounds):
        data.shrink(*(np.flatnonzero(state.split(name).retained) for name in SPLITS))
        result = run_round(state, data, settings, counts, seed, device=device)
        state = result.state
        done += 1
        yield result


def run_round(
    state: FilterState,
    data: FilterData,
    settings: FilterSettings,
    counts: Counts,
    seed: int,
    *,
    device: str = "cpu",
) -> RoundResult:
    """Fit, predict and remove once.

    Parameters
    ----------
    state : FilterState
        Must not have stopped.
    data : FilterData
        Holds the features of all retained rows at least; it is not changed.
    settings : FilterSettings
    counts : Counts
        `settings.resolve` of the rows at the start.
    seed : int
        Key of the draws.
    device : str
        Torch device of the fits.

    Raises
    ------
    UserError
        If fewer than two labels are left among the training rows, or no fit is finite.
    """
    started = time.perf_counter()
    filtering_round = state.filtering_round + 1
    rows = {name: np.flatnonzero(state.split(name).retained) for name in SPLITS}
    _check_labels(data, rows["train"], filtering_round)
    masks = _draw(data, rows["train"], settings, counts, seed, filtering_round)
    measured = [_measure(member, rows, masks, settings, filtering_round, device) for member in data.members]
    scores = {name: combine([found.scores[name] for found in measured], data.combination) for name in SPLITS}
    removal = decide(data, settings, counts, seed, filtering_round, scores["train"], scores["evaluation"])
    new_state = FilterState(
        _after(state.train, scores["train"], removal.train, filtering_round),
        _after(state.evaluation, scores["evaluation"], removal.evaluation, filtering_round),
        filtering_round,
        removal.stop_reason,
    )
    line = {
        "filtering_round": filtering_round,
        **_count_line(scores["train"], scores["evaluation"], removal),
        "n_partitions": settings.n_partitions * len(data.members),
        "train_size": counts.train_size,
        **_solver_line([found.fits for found in measured]),
        "stop_reason": removal.stop_reason,
        "duration_s": time.perf_counter() - started,
    }
    return RoundResult(new_state, _scores_frame(data, scores, removal, filtering_round), line)


def lines_frame(lines: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Table `rounds` of these lines."""
    import polars as pl

    from advsets.io import polars_dtype
    from advsets.tables import TABLES

    return pl.DataFrame(list(lines), schema={column.name: polars_dtype(column) for column in TABLES["rounds"].columns})


def nothing_left(n_rows: int) -> str:
    """Warning about an evaluation set of `n_rows` that filtering has emptied."""
    return (
        f"none of {n_rows} evaluation rows is left; raise threshold, lower max_rounds, or set target_size to the"
        " number of rows to keep"
    )


def _check_labels(data: FilterData, rows: Ints, filtering_round: int) -> None:
    left = np.unique(data.train.labels[rows])
    if len(left) == 1 and not data.is_multiple_choice:
        raise UserError(
            f"filtering round {filtering_round}: only label {data.label_order[left[0]]!r} is left among {len(rows)}"
            f" training rows, and classifiers need two labels; raise min_retained or threshold, or set max_rounds to"
            f" {filtering_round - 1}"
        )


def _draw(
    data: FilterData, rows: Ints, settings: FilterSettings, counts: Counts, seed: int, filtering_round: int
) -> Bools:
    split = data.train
    return draw_masks(
        split.hashes[rows],
        np.zeros_like(rows) if data.is_multiple_choice else split.labels[rows],
        counts.train_size,
        settings.n_partitions,
        seed=seed,
        filtering_round=filtering_round,
        groups=None if split.groups is None else split.groups[rows],
        group_hashes=split.group_hashes,
    )


class _Measured(NamedTuple):
    """Fits of one member of the filter, and its scores by split."""

    fits: Fits
    scores: dict[str, RowScores]


def _measure(
    member: FilterData, rows: dict[str, Ints], masks: Bools, settings: FilterSettings, filtering_round: int, device: str
) -> _Measured:
    """Fit the classifiers of one member and score the rows of both splits."""
    fits = _fit(member, rows["train"], masks, settings, device)
    usable = _usable(fits, filtering_round)
    train = _score(member, "train", rows, fits, usable, ~masks, device)
    return _Measured(
        fits, {"train": train, "evaluation": _score(member, "evaluation", rows, fits, usable, None, device)}
    )


def _fit(data: FilterData, rows: Ints, masks: Bools, settings: FilterSettings, device: str) -> Fits:
    x, offsets = data.train.take(rows)
    return fit_classifiers(
        x,
        torch.from_numpy(data.train.labels[rows]),
        torch.from_numpy(masks),
        n_classes=len(data.label_order),
        C=settings.C,
        offsets=offsets,
        tolerance=settings.tolerance,
        max_passes=settings.max_passes,
        device=devices_of(device),
    )


def _usable(fits: Fits, filtering_round: int) -> Bools:
    """Fits with finite coefficients, shape (n_partitions,); the others predict nothing."""
    usable = torch.isfinite(fits.coefficients).flatten(1).all(1).numpy()
    if not usable.any():
        raise UserError(
            f"filtering round {filtering_round}: none of {len(usable)} classifiers has finite coefficients;"
            " set standardise to true, lower C, or scale the embeddings"
        )
    return usable


def _score(
    data: FilterData,
    name: str,
    rows: dict[str, Ints],
    fits: Fits,
    usable: Bools,
    held_out: Bools | None,
    device: str,
) -> RowScores:
    """Counts of the usable classifiers on the retained rows of split `name`."""
    split = data.split(name)
    x, offsets = split.take(rows[name])
    labels = split.labels[rows[name]]
    status = [status for status, use in zip(fits.status, usable, strict=True) if use]
    scores = score_examples(
        x,
        torch.from_numpy(labels),
        Fits(fits.coefficients[usable], fits.gradient_norm[usable], fits.n_passes, status),
        n_classes=len(data.label_order),
        offsets=offsets,
        held_out=None if held_out is None else torch.from_numpy(held_out if usable.all() else held_out[usable]),
        device=device,
    )
    margin = scores.margin.numpy()
    if not data.is_multiple_choice:
        margin = np.where(np.isin(labels, data.train.labels[rows["train"]]), margin, np.nan)
    return RowScores(rows[name], scores.n_held_out.numpy(), scores.n_correct.numpy(), margin)


def _count_line(train: RowScores, evaluation: RowScores, removal: Removal) -> dict[str, Any]:
    return {
        "n_train_before": len(train.rows),
        "n_train_removed": int(removal.train.sum()),
        "n_evaluation_before": len(evaluation.rows),
        "n_evaluation_removed": int(removal.evaluation.sum()),
        "n_tied_at_cut": removal.n_tied_at_cut,
        "n_never_held_out": int((train.n_held_out == 0).sum()),
        "held_out_accuracy": train.accuracy(),
        "held_out_accuracy_retained": train.accuracy(~removal.train),
        "evaluation_accuracy": evaluation.accuracy(),
        "evaluation_accuracy_retained": evaluation.accuracy(~removal.evaluation),
    }


def _solver_line(fits: Sequence[Fits]) -> dict[str, Any]:
    norms = torch.cat([found.gradient_norm for found in fits])
    norms = norms[torch.isfinite(norms)]
    status = [name for found in fits for name in found.status]
    return {
        "n_converged": status.count("converged"),
        "n_stopped": status.count("stopped"),
        "n_failed": status.count("failed"),
        "max_gradient_norm": float(norms.max()) if len(norms) else math.nan,
        "n_passes": sum(int(found.n_passes) for found in fits),
    }


def _after(state: SplitState, scores: RowScores, removed: Bools, filtering_round: int) -> SplitState:
    return state.after(scores.rows, scores.n_held_out, scores.n_correct, scores.margin, removed, filtering_round)


def _scores_frame(
    data: FilterData, scores: dict[str, RowScores], removal: Removal, filtering_round: int
) -> pl.DataFrame:
    """Table `round_scores` of one round."""
    import polars as pl

    frames = []
    for name, removed in (("train", removal.train), ("evaluation", removal.evaluation)):
        ids, part = data.split(name).ids, scores[name]
        columns = [
            pl.Series("filtering_round", np.full(len(part.rows), filtering_round), dtype=pl.Int64),
            pl.Series("split", [name] * len(part.rows), dtype=pl.String),
            pl.Series("example_id", [ids[i] for i in part.rows], dtype=pl.String),
            *score_columns(part.n_held_out, part.n_correct, part.margin),
            pl.Series("removed", removed, dtype=pl.Boolean),
        ]
        frames.append(pl.DataFrame(columns))
    return pl.concat(frames)
