"""One classifier fitted to all subsets together: where the fits start, and the curvature that they share.

Conventions
-----------
Shapes as in `objective`. The pooled loss is scaled to the size of a subset, so that its Hessian is about that of each
fit. The examples are evenly spaced among those that are in a subset.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from advsets.aflite.objective import Block, Data, Objective
from advsets.aflite.preconditioner import (
    Preconditioner,
    bound_of,
    factor_of,
    features_of,
    gram_of,
    hessian_of,
    sum_of,
)
from advsets.aflite.solver import Solver

MAX_VARIABLES = 3200
"""Above this many coefficients per fit the multinomial Hessian is replaced by its bound, one block for all classes."""
MIN_SAMPLE = 4096
SAMPLE_PER_FEATURE = 10
"""Examples of the Hessian at least: its sampling error shall not dwarf that of a subset's own."""
BOUND_PER_FEATURE = 10
"""Examples of the bound, which only has to lead to the pooled fit."""
PASSES_WORTH = 3.0
"""Passes of all fits whose arithmetic the Hessian may cost: it saves more of them."""
FLOAT32_RIDGE = 0.05
"""Rounding of a Hessian in float32, beside the penalty's 1, up to which float32 will do."""
POOLED_TOLERANCE, POOLED_PASSES = 1e-2, 40
NEWTON_STEPS = 30
NEWTON_WORK = 2e9
"""Multiply-adds that Newton steps of the pooled fit may cost; beyond it L-BFGS under the bound must do."""
NEWTON_DECREASE = 1e-4
"""Predicted decrease, as a share of the pooled objective, at which Newton's method ends."""


@dataclass(frozen=True)
class Pooled:
    """The pooled classifier.

    Attributes
    ----------
    preconditioner : Preconditioner
        Of its Hessian.
    coefficients : Tensor
        (n_outputs, n_columns) float64.
    feature_scale : float
        Largest root mean square of a feature (at least 1, the intercept's).
    """

    preconditioner: Preconditioner
    coefficients: Tensor
    feature_scale: float


def fit_pooled(objective: Objective, subset_size: float) -> Pooled:
    """Fit the pooled classifier and factor its Hessian.

    Parameters
    ----------
    objective : Objective
    subset_size : float
        Training examples of a typical fit.

    Returns
    -------
    Pooled
    """
    data = objective.data
    few = _sample(objective, max(MIN_SAMPLE, BOUND_PER_FEATURE * data.n_features), subset_size)
    feature_scale = _feature_scale(few)
    rounding = objective.C * subset_size * feature_scale**2 * torch.finfo(torch.float32).eps
    dtype = torch.float32 if rounding < FLOAT32_RIDGE else torch.float64
    bound = _bound(few, dtype)
    sample = _sample(objective, _sample_size(objective), subset_size)
    n_variables = data.n_outputs * data.n_columns
    if 4 * sample.n_included * n_variables**2 <= NEWTON_WORK and n_variables <= MAX_VARIABLES:
        preconditioner, coefficients = _newton(sample, bound, dtype)
        return Pooled(preconditioner, coefficients, feature_scale)
    coefficients, converged = _descend(sample, bound, subset_size)
    if n_variables > MAX_VARIABLES:
        return Pooled(bound, coefficients, feature_scale)
    preconditioner = factor_of(hessian_of(sample, coefficients, dtype), bound)
    if converged:
        coefficients = coefficients + _newton_step(sample, preconditioner, coefficients, dtype)
    return Pooled(preconditioner, coefficients, feature_scale)


def _sample_size(objective: Objective) -> int:
    """Examples whose Hessian costs as much arithmetic as the passes it is worth, within limits."""
    data, n_fits = objective.data, objective.in_subset.shape[1]
    n_blocks = data.n_outputs * (data.n_outputs + 1) / 2
    pass_per_example = 4 * data.n_features * n_fits * data.n_outputs * objective.touched_share
    worth = PASSES_WORTH * data.n_examples * pass_per_example / (2 * n_blocks * data.n_columns**2)
    return max(MIN_SAMPLE, SAMPLE_PER_FEATURE * data.n_features, int(worth))


def _sample(objective: Objective, n_wanted: int, subset_size: float) -> Objective:
    """Objective of one fit to at most `n_wanted` of the examples in a subset."""
    used = objective.in_subset.any(1)
    examples = used.nonzero()[:, 0]
    n = min(n_wanted, len(examples))
    chosen = torch.zeros_like(used)
    chosen[examples[torch.arange(n, device=examples.device) * len(examples) // n]] = True
    scale = objective.C * subset_size / n
    return Objective(objective.data, chosen[:, None], scale, objective.block_rows, objective.run, 1)


def _n_rows(sample: Objective) -> int:
    """Rows of the features that belong to the sample."""
    offsets = sample.data.offsets
    return sample.n_included if offsets is None else int(offsets.diff()[sample.in_subset[:, 0]].sum())


def _feature_scale(sample: Objective) -> float:
    def add(data: Data, block: Block, total: Tensor) -> None:
        total += features_of(data, block, torch.float64).square().sum(0)

    squares = sum_of(sample, add, sample.data.n_columns)
    return float((squares / _n_rows(sample)).max().sqrt().clamp(min=1.0))


def _bound(sample: Objective, dtype: torch.dtype) -> Preconditioner:
    def add(data: Data, block: Block, total: Tensor) -> None:
        total += gram_of(features_of(data, block, dtype))

    n_columns = sample.data.n_columns
    return bound_of(sample, sum_of(sample, add, n_columns, n_columns), _n_rows(sample))


def _descend(sample: Objective, bound: Preconditioner, subset_size: float) -> tuple[Tensor, bool]:
    """Coefficients (n_outputs, n_columns) after L-BFGS from zero, and whether it came to rest."""
    sizes = torch.full((1,), subset_size, dtype=torch.float64, device=sample.data.x.device)
    fits = Solver(sample, bound, sizes, noise=0.0, tolerance=POOLED_TOLERANCE).solve(POOLED_PASSES)
    return fits.coefficients[0], fits.status == ["converged"]


def _newton_step(sample: Objective, preconditioner: Preconditioner, coefficients: Tensor, dtype: torch.dtype) -> Tensor:
    only = torch.zeros(1, dtype=torch.int64, device=coefficients.device)
    _, gradient = sample.evaluate(coefficients[None], only, dtype)
    return preconditioner.newton_step(gradient.view(1, -1)).view_as(coefficients)


def _newton(sample: Objective, preconditioner: Preconditioner, dtype: torch.dtype) -> tuple[Preconditioner, Tensor]:
    """Factor of the Hessian after damped Newton steps from zero, and coefficients."""
    data = sample.data
    w = torch.zeros(1, data.n_outputs, data.n_columns, dtype=torch.float64, device=data.x.device)
    only = torch.zeros(1, dtype=torch.int64, device=data.x.device)
    value, gradient = sample.evaluate(w, only, torch.float64)
    for _ in range(NEWTON_STEPS):
        direction = preconditioner.newton_step(gradient.view(1, -1)).view_as(w)
        slope = float((gradient * direction).sum())
        if -slope <= NEWTON_DECREASE * float(value):
            break
        length = 1.0
        while length > 1e-3:
            new_value, new_gradient = sample.evaluate(w + length * direction, only, torch.float64)
            if bool(new_value <= value + 1e-4 * length * slope):
                break
            length *= 0.3
        else:
            break
        w, value, gradient = w + length * direction, new_value, new_gradient
        preconditioner = factor_of(hessian_of(sample, w[0], dtype), preconditioner)
    return preconditioner, w[0]
