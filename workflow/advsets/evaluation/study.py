"""Sums that several tables share: correct answers by subset, bootstrap draw and random subset.

Conventions
-----------
Axes: draws, subsets, model runs. Subset 0 is the full set, subset 1 + i that of adversary run i.
Sums are whole numbers, so accuracies that are equal as fractions are equal as floats and ties
in rank are true ties.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from advsets.evaluation.inputs import EvaluationInputs
from advsets.evaluation.settings import EvaluateSettings
from advsets.stats.bootstrap import masked_sums, ratio, subset_sums


@dataclass(frozen=True)
class Study:
    """Inputs of one data set with settings; what is derived from both is computed once, when asked for."""

    inputs: EvaluationInputs
    settings: EvaluateSettings

    @cached_property
    def subsets(self) -> NDArray[np.bool_]:
        """Full set, then each adversary run's retained examples, shape (n_examples, 1 + n_adversary_runs)."""
        return np.column_stack([np.ones(self.inputs.n_examples, dtype=bool), self.inputs.masks])

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Examples per subset, shape (1 + n_adversary_runs,)."""
        return self.subsets.sum(axis=0)

    @cached_property
    def correct(self) -> NDArray[np.int64]:
        """Right answers, shape (1 + n_adversary_runs, n_model_runs)."""
        return self.subsets.T.astype(np.int64) @ self.inputs.correct.astype(np.int64)

    @cached_property
    def bootstrap(self) -> NDArray[np.float64]:
        """Right answers, and in the last column examples: (n_draws, 1 + n_adversary_runs, n_model_runs + 1)."""
        values = np.column_stack([self.inputs.correct, np.ones(self.inputs.n_examples, dtype=bool)])
        return masked_sums(values, self.subsets, self.settings.n_bootstrap, self.settings.seed)

    @cached_property
    def random(self) -> NDArray[np.float64]:
        """Right answers on size-matched random subsets, shape (n_draws, n_adversary_runs, n_model_runs)."""
        s = self.settings
        return subset_sums(self.inputs.correct, self.sizes[1:], s.n_random_subsets, s.seed)

    @cached_property
    def model_of_run(self) -> NDArray[np.int64]:
        """Index of each model run's model, shape (n_model_runs,)."""
        return np.array([self.inputs.models.index(model) for model, _ in self.inputs.model_runs], dtype=np.int64)

    def by_model(self, run_sums: NDArray, n_examples: NDArray) -> NDArray[np.float64]:
        """Accuracy of each model, mean over its seeds.

        Parameters
        ----------
        run_sums : array, shape (..., n_model_runs)
            Right answers.
        n_examples : array, shape (...)
            Examples they were given to.

        Returns
        -------
        array, shape (..., n_models)
            NaN where there are no examples.
        """
        member = (self.model_of_run[:, None] == np.arange(len(self.inputs.models))).astype(np.float64)
        return ratio(run_sums @ member, np.asarray(n_examples)[..., None] * member.sum(axis=0))

    @cached_property
    def model_accuracy(self) -> NDArray[np.float64]:
        """Mean over seeds, shape (1 + n_adversary_runs, n_models)."""
        return self.by_model(self.correct, self.sizes)

    @cached_property
    def model_accuracy_draws(self) -> NDArray[np.float64]:
        """The same per bootstrap draw, shape (n_draws, 1 + n_adversary_runs, n_models)."""
        return self.by_model(self.bootstrap[..., :-1], self.bootstrap[..., -1])

    @cached_property
    def model_accuracy_random(self) -> NDArray[np.float64]:
        """The same on random subsets, shape (n_random_subsets, n_adversary_runs, n_models)."""
        return self.by_model(self.random, np.broadcast_to(self.sizes[1:], self.random.shape[:2]))

    @cached_property
    def parts(self) -> NDArray[np.bool_]:
        """Full set, retained, then removed examples of each adversary run, (n_examples, 1 + 2 n_adversary_runs)."""
        return np.column_stack([self.subsets, ~self.inputs.masks])

    @cached_property
    def classes(self) -> NDArray[np.bool_]:
        """All examples, then those of each gold class, shape (n_examples, 1 + n_gold_labels)."""
        one_by_one = [self.inputs.labels == label for label in self.inputs.gold_labels]
        return np.column_stack([np.ones(self.inputs.n_examples, dtype=bool), *one_by_one])

    def strength(self, adversary: str) -> float | None:
        """Accuracy on the full set of the evaluated model of the same name; None if it was not evaluated."""
        if adversary not in self.inputs.models:
            return None
        return float(self.model_accuracy[0, self.inputs.models.index(adversary)])
