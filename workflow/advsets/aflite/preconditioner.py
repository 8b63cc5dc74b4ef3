"""One Cholesky factor that makes the objectives of all fits well conditioned.

Conventions
-----------
The fits share most of their rows, so the Hessian of one pooled fit, scaled to the size of a subset,
stands for all of them: H = C * sum of loss Hessians + diag(1, …, 1, 0), H = L L'.
The solver works on variables u with coefficients w = L'^-1 u, in which each Hessian is close to the identity.
Coefficients are flattened as (n_outputs, n_columns). The factor steers the path only, never the solution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from advsets.aflite.objective import Block, Data, Objective

MAX_VARIABLES = 3200
"""Above this many coefficients per fit the multinomial Hessian is replaced by its bound, one block for all classes."""
MIN_SAMPLE = 4096
SAMPLE_PER_FEATURE = 20
"""Examples of the pooled fit: enough that the sampling error of its Hessian is small beside that of a subset's own."""
NEWTON_STEPS = 30
NEWTON_WORK = 2e9
"""Multiply-adds that the Hessians of a careful pooled fit may cost; beyond it a rough fit must do."""
CAREFUL, ROUGH = 1e-4, 0.2
"""Predicted decrease, as a share of the pooled objective, at which the pooled fit ends."""


@dataclass(frozen=True)
class Preconditioner:
    """Change of variables by a Cholesky factor.

    Attributes
    ----------
    factor : Tensor
        (n, n) lower triangular float64; n is n_outputs * n_columns, or n_columns when all outputs share it.
    bound : Tensor
        (n_columns, n_columns) factor of the Hessian at zero, where curvature is about highest, shared by the outputs.
    """

    factor: Tensor
    bound: Tensor

    def curvature_bound(self, direction: Tensor) -> Tensor:
        """Curvature (n_fits,) along a direction of the variables (n_fits, n_outputs * n_columns), at its highest."""
        columns = self.coefficients(direction).view(len(direction), -1, self.bound.shape[0])
        return (columns @ self.bound).square().sum((1, 2))

    def coefficients(self, variables: Tensor) -> Tensor:
        """Coefficients of variables, both (n_fits, n_outputs * n_columns)."""
        return self._solve(self.factor.T, variables, upper=True)

    def gradient(self, gradient: Tensor) -> Tensor:
        """Gradient by the variables of a gradient by the coefficients, both (n_fits, n_outputs * n_columns)."""
        return self._solve(self.factor, gradient, upper=False)

    def newton_step(self, gradient: Tensor) -> Tensor:
        """-H^-1 times the gradient."""
        return -self.coefficients(self.gradient(gradient))

    def _solve(self, triangle: Tensor, rows: Tensor, *, upper: bool) -> Tensor:
        flat = rows.reshape(-1, triangle.shape[0])
        return torch.linalg.solve_triangular(triangle, flat.T, upper=upper).T.reshape(rows.shape)


def build_preconditioner(objective: Objective, subset_size: float) -> tuple[Preconditioner, float]:
    """Fit one pooled classifier to a sample and factor its Hessian.

    Parameters
    ----------
    objective : Objective
    subset_size : float
        Training examples of a typical fit; the pooled loss is scaled to that size.

    Returns
    -------
    Preconditioner
    float
        Largest root mean square of a feature (at least 1, the intercept's).
    """
    data = objective.data
    examples = objective.in_subset.any(1).nonzero()[:, 0]
    limit = max(MIN_SAMPLE, SAMPLE_PER_FEATURE * data.n_features)
    stride = max(1, -(-len(examples) // limit))
    sample = data.take(examples[::stride])
    everything = torch.ones(sample.n_examples, 1, dtype=torch.bool, device=sample.x.device)
    scale = objective.C * subset_size / sample.n_examples
    pooled = Objective(sample, everything, scale, objective.block_rows, objective.run)
    gram = _sum(pooled, lambda block: _gram(_with_intercept(sample, block)))
    scale_of_features = float((gram.diagonal() / sample.x.shape[0]).max().sqrt().clamp(min=1.0))
    bound = _bound(pooled, gram)
    n_variables = sample.n_outputs * sample.n_columns
    if n_variables > MAX_VARIABLES:
        return bound, scale_of_features
    return _newton(pooled, bound), scale_of_features


def _newton(pooled: Objective, preconditioner: Preconditioner) -> Preconditioner:
    """Factor of the Hessian after a few damped Newton steps of the pooled fit."""
    data = pooled.data
    shape = (1, data.n_outputs, data.n_columns)
    w = torch.zeros(shape, dtype=torch.float64, device=data.x.device)
    only = torch.zeros(1, dtype=torch.int64, device=data.x.device)
    value, gradient = pooled.evaluate(w, only, torch.float64)
    work = data.x.shape[0] * (data.n_outputs * data.n_columns) ** 2
    for step in range(NEWTON_STEPS):
        direction = preconditioner.newton_step(gradient.view(1, -1)).view(shape)
        slope = float((gradient * direction).sum())
        if -slope <= (CAREFUL if (step + 1) * work <= NEWTON_WORK else ROUGH) * float(value):
            break
        length = 1.0
        while length > 1e-3:
            new_value, new_gradient = pooled.evaluate(w + length * direction, only, torch.float64)
            if bool(new_value <= value + 1e-4 * length * slope):
                break
            length *= 0.3
        else:
            return preconditioner
        w, value, gradient = w + length * direction, new_value, new_gradient
        preconditioner = _factor(_hessian(pooled, w[0]), preconditioner)
    return preconditioner


def _with_intercept(data: Data, block: Block) -> Tensor:
    """Features of a block in float64, with a last column of ones where there is an intercept."""
    x = data.x[block.first_row : block.last_row].to(torch.float64)
    return x if data.offsets is not None else torch.cat([x, x.new_ones(len(x), 1)], dim=1)


def _sum(pooled: Objective, function: Callable[[Block], Tensor]) -> Tensor:
    parts: Iterable[Tensor] = pooled.run(function, pooled.data.blocks(pooled.block_rows))
    total: Tensor | None = None
    for part in parts:
        total = part if total is None else total.add_(part)
    assert total is not None
    return total


def _gram(x: Tensor, weight: Tensor | None = None) -> Tensor:
    return (x if weight is None else x * weight[:, None]).T @ x


def _ridge(pooled: Objective) -> Tensor:
    """Diagonal of the penalty's Hessian for one output; a trace of it on the intercept keeps the factor finite."""
    ridge = torch.ones(pooled.data.n_columns, dtype=torch.float64, device=pooled.data.x.device)
    if pooled.data.offsets is None:
        ridge[-1] = 1e-9 * pooled.C * pooled.data.n_examples
    return ridge


def _factor(hessian: Tensor, fallback: Preconditioner) -> Preconditioner:
    factor, failure = torch.linalg.cholesky_ex(hessian)
    if failure or not bool(factor.isfinite().all()):
        return fallback
    return Preconditioner(factor, fallback.bound)


def _bound(pooled: Objective, gram: Tensor) -> Preconditioner:
    """Hessian at zero coefficients, one block for all outputs (Böhning 1992), or its diagonal if that fails."""
    data = pooled.data
    if data.offsets is None:
        share = 1.0 / data.n_classes - (0.25 if data.n_classes == 2 else 0.0)
    else:
        share = data.n_examples / data.x.shape[0]
    hessian = pooled.C * share * gram + torch.diag(_ridge(pooled))
    diagonal = hessian.diagonal().sqrt().nan_to_num(1.0, 1.0, 1.0)
    diagonal = torch.diag(diagonal)
    factor = _factor(hessian, Preconditioner(diagonal, diagonal)).factor
    return Preconditioner(factor, factor)


def _hessian(pooled: Objective, coefficients: Tensor) -> Tensor:
    """Hessian of the pooled objective at `coefficients` (n_outputs, n_columns), flattened, float64."""
    data = pooled.data
    by_output = coefficients[:, None, :]
    ridge = _ridge(pooled)
    if data.offsets is not None:
        return pooled.C * _sum(pooled, lambda block: _choice_curvature(data, block, by_output)) + torch.diag(ridge)
    if data.n_classes == 2:
        return pooled.C * _sum(pooled, lambda block: _binary_curvature(data, block, by_output)) + torch.diag(ridge)
    blocks = pooled.C * _sum(pooled, lambda block: _class_curvature(data, block, by_output))
    n_classes, n_columns = data.n_classes, data.n_columns
    # Each row of blocks adds up to zero: the last column and row follow from the others.
    full = torch.zeros(n_classes, n_classes, n_columns, n_columns, dtype=torch.float64, device=ridge.device)
    full[:-1, :-1] = blocks
    full[:-1, -1] = -full[:-1, :-1].sum(1)
    full[-1] = -full[:-1].sum(0)
    # Adding one number to all intercepts changes no loss: give that direction a curvature of its own.
    full[:, :, -1, -1] += pooled.C * data.n_examples / n_classes**2
    hessian = full.permute(0, 2, 1, 3).reshape(n_classes * n_columns, -1)
    hessian.diagonal().add_(ridge.repeat(n_classes))
    return hessian


def _binary_curvature(data: Data, block: Block, by_output: Tensor) -> Tensor:
    score = data.scores(block, by_output)[:, 0, 0]
    return _gram(_with_intercept(data, block), torch.sigmoid(score) * torch.sigmoid(-score))


def _class_curvature(data: Data, block: Block, by_output: Tensor) -> Tensor:
    """Blocks (n_classes - 1, n_classes - 1, n_columns, n_columns) of all classes but the last."""
    share = torch.softmax(data.scores(block, by_output)[:, :, 0], dim=1)
    x = _with_intercept(data, block)
    n = data.n_classes - 1
    out = x.new_empty(n, n, x.shape[1], x.shape[1])
    for a in range(n):
        for b in range(a + 1):
            out[a, b] = out[b, a] = _gram(x, share[:, a] * (float(a == b) - share[:, b]))
    return out


def _choice_curvature(data: Data, block: Block, by_output: Tensor) -> Tensor:
    example, place, _ = data.candidate_slots(block)
    share = torch.softmax(data.scores(block, by_output)[:, :, 0], dim=1)[example, place]
    x = _with_intercept(data, block)
    mean = x.new_zeros(block.last - block.first, x.shape[1]).index_add_(0, example, x * share[:, None])
    return _gram(x, share) - _gram(mean)
