"""AFLite as an estimator with scikit-learn's conventions."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from advsets.aflite.compute import resolve_device, thread_limit
from advsets.aflite.given import joined, members_given
from advsets.aflite.rounds import lines_frame, nothing_left, run_rounds, start_state
from advsets.aflite.settings import MEAN, FilterSettings
from advsets.aflite.state import SplitState
from advsets.errors import UserError


class AFLite(BaseEstimator):
    """Adversarial filtering of a training set and, with it, of an evaluation set.

    Each round fits linear classifiers on random subsets of the training rows that are left and
    removes the rows that classifiers predict right without having been fitted on them.

    Parameters
    ----------
    n_partitions : int, default=64
        Classifiers per round, and per adversary where there are several.
    train_size : int or float, default=0.1
        Training rows per classifier; count, or fraction of the rows at the start.
    slice_size : int or float, default=0.02
        Most training rows removed per round; count or fraction.
    threshold : float, default=0.75
        Share of right predictions above which a row may be removed.
    min_retained : int, float or None, default=None
        Rounds run while more training rows than this are left; None: `train_size` / 0.8.
    comparison : {"more_than", "at_least"}, default="more_than"
        Whether rows exactly at the threshold stay or go.
    C : float, default=1.0
        Inverse penalty, as in `sklearn.linear_model.LogisticRegression`.
    use_groups : bool, default=True
        Whether `groups` and `eval_groups` count; without them every row stands alone anyway.
    standardise : bool, default=True
        Scale features by the mean and standard deviation of the training rows.
    one_shot : bool, default=False
        Filter the evaluation set once and remove no training row.
    stop_at_chance : bool, default=False
        Stop once classifiers do no better than chance on the training rows kept.
    max_rounds : int, default=50
        Rounds at most.
    target_size : int, float or None, default=None
        Wished number (or fraction) of evaluation rows; see `FilterSettings`.
    tolerance : float, default=1e-5
        Largest gradient entry per training row of a converged fit.
    max_passes : int, default=500
        Passes over the data after which a fit is stopped.
    random_state : int, RandomState instance or None, default=0
        Key of the draws; an int gives the same result each time.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where to fit.
    n_threads : int or None, default=None
        CPU threads; None leaves torch's setting. Changes no result.
    combination : {"mean", "minimum"} or None, default=None
        For an ensemble of adversaries: `fit` takes a list of one `X` per adversary. "mean": predictability
        over the classifiers of all; "minimum": that by the adversary that predicts the row worst.

    Attributes
    ----------
    retained_ : ndarray of bool, shape (n_samples,)
        Training rows kept, in the order of `X`.
    removed_in_round_ : ndarray of int64, shape (n_samples,)
        Round that removed the row; 0 if it was kept.
    predictability_ : ndarray of float64, shape (n_samples,)
        Share of right predictions in the last round the row took part in; nan: never held out.
    margin_ : ndarray of float64, shape (n_samples,)
        Mean of true-class score minus best other score there; nan: never held out.
    eval_retained_, eval_removed_in_round_, eval_predictability_, eval_margin_ : ndarray
        The same for the evaluation set (no rows without one).
    rounds_ : polars.DataFrame
        One line per round (table `rounds`).
    round_scores_ : polars.DataFrame
        Scores of every row in every round (table `round_scores`).
    n_rounds_ : int
    stop_reason_ : str
        Why filtering ended: "target_size", "one_shot", "slice_not_filled", "min_retained",
        "at_chance" or "max_rounds".
    classes_ : ndarray of str
        Label names, sorted; empty for multiple choice.
    n_features_in_ : int, or list of int with a combination
        Of `X`, or of each array in it.
    feature_names_in_ : ndarray of str, shape (n_features,)
        Column names of `X`; only where it is one frame whose columns are named by strings.

    Notes
    -----
    What is drawn, and which of two tied rows goes first, depends on `ids` alone: with ids the
    same rows are removed whatever order they come in. Without ids, row numbers serve, so the
    result then depends on the order of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from advsets import AFLite
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=200)
    >>> X = np.where(rng.random(200) < 0.5, y, 0.5)[:, None] + 0.1 * rng.normal(size=(200, 3))
    >>> filtered = AFLite(slice_size=0.1, max_rounds=2, device="cpu").fit(X[:150], y[:150], eval_set=(X[150:], y[150:]))
    >>> easy = np.abs(X[150:, 0] - y[150:]) < 0.3
    >>> bool(filtered.eval_retained_[easy].mean() < filtered.eval_retained_[~easy].mean())
    True
    """

    def __init__(
        self,
        n_partitions: int = 64,
        train_size: int | float = 0.1,
        slice_size: int | float = 0.02,
        threshold: float = 0.75,
        min_retained: int | float | None = None,
        comparison: str = "more_than",
        C: float = 1.0,
        standardise: bool = True,
        use_groups: bool = True,
        one_shot: bool = False,
        stop_at_chance: bool = False,
        max_rounds: int = 50,
        target_size: int | float | None = None,
        tolerance: float = 1e-5,
        max_passes: int = 500,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        n_threads: int | None = None,
        combination: str | None = None,
    ) -> None:
        self.n_partitions = n_partitions
        self.train_size = train_size
        self.slice_size = slice_size
        self.threshold = threshold
        self.min_retained = min_retained
        self.comparison = comparison
        self.C = C
        self.standardise = standardise
        self.use_groups = use_groups
        self.one_shot = one_shot
        self.stop_at_chance = stop_at_chance
        self.max_rounds = max_rounds
        self.target_size = target_size
        self.tolerance = tolerance
        self.max_passes = max_passes
        self.random_state = random_state
        self.device = device
        self.n_threads = n_threads
        self.combination = combination

    def fit(
        self,
        X: Any,
        y: Any,
        ids: Iterable[Any] | None = None,
        groups: Iterable[Any] | None = None,
        eval_set: tuple[Any, Any] | None = None,
        eval_ids: Iterable[Any] | None = None,
        eval_groups: Iterable[Any] | None = None,
    ) -> AFLite:
        """Filter.

        Parameters
        ----------
        X : array, tensor or frame of shape (n_samples, n_features)
            Training embeddings. If both `X` and that of `eval_set` are frames, their columns must
            agree in name and order. Multiple choice: (n_samples, n_choices, n_features), or a list
            of (n_choices, n_features) arrays. With a combination: a list of such `X`, one per
            adversary, of the same rows in the same order.
        y : array of shape (n_samples,)
            Labels; multiple choice: index of the right candidate.
        ids, eval_ids : iterable of length n_samples, optional
            Unique ids in the order of the rows; see Notes of the class for what their absence means.
        groups, eval_groups : iterable of length n_samples, optional
            Rows of one group are drawn and removed together; None: the row alone.
        eval_set : tuple (X_eval, y_eval), optional
            Evaluation set; without one this is standard AFLite. With a combination `X_eval` is
            a list too, of the same adversaries in the same order.

        Returns
        -------
        AFLite
            Itself.

        Raises
        ------
        UserError
            If data or settings cannot be used.
        """
        names = [field.name for field in dataclasses.fields(FilterSettings)]
        settings = FilterSettings(**{name: getattr(self, name) for name in names})
        if not self.use_groups:
            groups = eval_groups = None
        seed, device = self._seed(), resolve_device(self.device)
        members = members_given(X, y, ids, groups, eval_set, eval_ids, eval_groups, self.combination)
        train, evaluation, names_in = members[0]
        shared_ids = ids is None or eval_ids is None
        data = joined(members, settings.standardise, shared_ids, self.combination or MEAN)
        counts = settings.resolve(len(data.train.ids), len(data.evaluation.ids))
        with thread_limit(self.n_threads, "n_threads"):
            start = start_state(data, counts)
            results = list(run_rounds(start, data, settings, counts, seed, device=device))
        state = results[-1].state
        self._set("", state.train, train.order)
        self._set("eval_", state.evaluation, np.zeros(0, dtype=np.int64) if evaluation is None else evaluation.order)
        self.rounds_ = lines_frame([result.line for result in results])
        self.round_scores_ = pl.concat([result.scores for result in results])
        self.n_rounds_, self.stop_reason_ = state.filtering_round, state.stop_reason
        self.classes_ = np.array(data.label_order, dtype=str)
        widths = [member.train.x.shape[1] for member in data.members]
        self.n_features_in_ = widths[0] if self.combination is None else widths
        self._set_feature_names(names_in if self.combination is None else None)
        if evaluation is not None and not self.eval_retained_.any():
            warnings.warn(nothing_left(len(self.eval_retained_)), UserWarning, stacklevel=2)
        return self

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        if self.random_state is not None and not isinstance(self.random_state, np.random.RandomState):
            raise UserError(
                f"random_state: {self.random_state!r} is not allowed; allowed: an integer, a numpy.random.RandomState"
                " or None; change it"
            )
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _set_feature_names(self, names: list[str] | None) -> None:
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _set(self, prefix: str, state: SplitState, order: np.ndarray) -> None:
        """Set the attributes of one split, put back into input order."""
        values = {
            "retained_": state.retained,
            "removed_in_round_": state.removed_in_round,
            "predictability_": state.predictability,
            "margin_": state.margin,
        }
        for name, value in values.items():
            placed = np.empty_like(value)
            placed[order] = value
            setattr(self, prefix + name, placed)
