"""One Cholesky factor that makes the objectives of all fits well conditioned.

Conventions
-----------
The fits share most of their rows, so the Hessian of one pooled fit, scaled to the size of a subset,
stands for all of them: H = C * sum of loss Hessians + diag(1, …, 1, 0), H = L L'.
The solver works on variables u with coefficients w = L'^-1 u, in which each Hessian is close to the identity.
Coefficients are flattened as (n_outputs, n_columns). The factor steers the path only, never the solution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations_with_replacement

import torch
from torch import Tensor

from advsets.aflite.objective import Block, Data, Linear, Objective, evenly, spread

FEWEST_SUMS, MOST_SUMS, SUMS_SHARE = 8, 64, 4
"""Sums that threads hold at a time: as many as fit into a quarter of the features' memory, within limits."""
GRAM_PANEL = 128
"""Columns of a symmetric product computed at a time, down from the diagonal."""
SOLVED_AT_ONCE = 32
"""Right-hand sides of one triangular solve on a CPU: the same for any number of threads."""


@dataclass(frozen=True)
class Preconditioner:
    """Change of variables by a Cholesky factor.

    Attributes
    ----------
    factor : Tensor
        (n, n) lower triangular float64; n is n_outputs * n_columns, or n_columns when all outputs share it.
    bound : Tensor
        (n_columns, n_columns) factor of the Hessian at zero, where curvature is about highest, shared by the outputs.
    run : callable
        `map` of `block_threads`.
    """

    factor: Tensor
    bound: Tensor
    run: Callable[..., Iterable]

    def to(self, device: torch.device) -> Preconditioner:
        """The same on another device."""
        return Preconditioner(self.factor.to(device), self.bound.to(device), self.run)

    def curvature_bound(self, direction: Tensor) -> Tensor:
        """Curvature (n_fits,) along a direction of the variables (n_fits, n_outputs * n_columns), at its highest."""
        columns = self.coefficients(direction).view(len(direction), -1, self.bound.shape[0])
        return (columns @ self.bound).square().sum((1, 2))

    def variables(self, coefficients: Tensor) -> Tensor:
        """Variables of coefficients, both (n_fits, n_outputs * n_columns)."""
        return (coefficients.reshape(-1, self.factor.shape[0]) @ self.factor).reshape(coefficients.shape)

    def coefficients(self, variables: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:
        """Coefficients of variables, both (n_fits, n_outputs * n_columns) float64, computed in `dtype`."""
        return self._solve(self._factor_in(dtype).T, variables, upper=True)

    def gradient(self, gradient: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:
        """Gradient by the variables of a gradient by the coefficients, shapes and `dtype` as in `coefficients`."""
        return self._solve(self._factor_in(dtype), gradient, upper=False)

    def newton_step(self, gradient: Tensor) -> Tensor:
        """-H^-1 times the gradient."""
        return -self.coefficients(self.gradient(gradient))

    def _factor_in(self, dtype: torch.dtype) -> Tensor:
        return self.factor if dtype is torch.float64 else self._low_factor

    @cached_property
    def _low_factor(self) -> Tensor:
        return self.factor.to(torch.float32)

    def _solve(self, triangle: Tensor, rows: Tensor, *, upper: bool) -> Tensor:
        flat = rows.reshape(-1, triangle.shape[0]).to(triangle.dtype)
        parts = flat.split(SOLVED_AT_ONCE if flat.device.type == "cpu" else len(flat))
        solved = self.run(lambda part: torch.linalg.solve_triangular(triangle, part.T, upper=upper).T, parts)
        return torch.cat(list(solved)).to(rows.dtype).reshape(rows.shape)


def features_of(data: Data, block: Block, dtype: torch.dtype) -> Tensor:
    """Features of a block, with a last column of ones where there is an intercept."""
    x = data.x[block.first_row : block.last_row].to(dtype)
    return x if data.offsets is not None else torch.cat([x, x.new_ones(len(x), 1)], dim=1)


def sum_of(pooled: Objective, add: Callable[[Data, Block, Tensor], object], *shape: int) -> Tensor:
    """Sum over the included examples, float64 of this shape: `add` adds those of a block to its last argument.

    Threads sum shares of the blocks whose number depends on the sizes alone, so that the result does not depend on
    the number of threads and what they hold stays small beside the features.
    """
    data = pooled.data
    blocks = data.blocks(pooled.block_rows)
    fitting = data.x.numel() * data.x.element_size() // (SUMS_SHARE * 8 * math.prod(shape))
    n_shares = min(max(fitting, FEWEST_SUMS), MOST_SUMS, len(blocks))

    def of_share(share: list[Block]) -> Tensor:
        total = torch.zeros(shape, dtype=torch.float64, device=data.x.device)
        for block in share:
            part, included = data, pooled.in_subset[block.first : block.last, 0]
            if not bool(included.any()):
                continue
            if not bool(included.all()):
                part, block = data.piece(block, included.nonzero()[:, 0])
            add(part, block, total)
        return total

    parts = iter(pooled.run(of_share, [blocks[part] for part in evenly(len(blocks), n_shares)]))
    total = next(parts)
    for part in parts:
        total += part
    return total


def gram_of(x: Tensor, weight: Tensor | None = None) -> Tensor:
    """Lower triangle, at least, of x' diag(weight) x; what stands above it is not to be used."""
    n_columns = x.shape[1]
    out = x.new_zeros(n_columns, n_columns)
    for start in range(0, n_columns, GRAM_PANEL):
        panel = slice(start, min(start + GRAM_PANEL, n_columns))
        right = x[:, panel] if weight is None else x[:, panel] * weight[:, None]
        torch.mm(x[:, start:].T, right, out=out[start:, panel])
    return out


def _symmetric(lower: Tensor) -> Tensor:
    """Symmetric matrices (..., n, n) of their lower triangles."""
    return lower.tril() + lower.tril(-1).mT


def _ridge(pooled: Objective) -> Tensor:
    """Diagonal of the penalty's Hessian for one output; a trace of it on the intercept keeps the factor finite."""
    ridge = torch.ones(pooled.data.n_columns, dtype=torch.float64, device=pooled.data.x.device)
    if pooled.data.offsets is None:
        ridge[-1] = 1e-9 * pooled.C * pooled.n_included
    return ridge


def factor_of(hessian: Tensor, fallback: Preconditioner) -> Preconditioner:
    factor, failure = torch.linalg.cholesky_ex(hessian)
    if failure or not bool(factor.isfinite().all()):
        return fallback
    return Preconditioner(factor, fallback.bound, fallback.run)


def bound_of(pooled: Objective, gram: Tensor, n_rows: int) -> Preconditioner:
    """Hessian at zero coefficients, one block for all outputs (Böhning 1992), or its diagonal if that fails."""
    data = pooled.data
    if data.offsets is None:
        share = 1.0 / data.n_classes - (0.25 if data.n_classes == 2 else 0.0)
    else:
        share = pooled.n_included / n_rows
    hessian = pooled.C * share * gram + torch.diag(_ridge(pooled))
    diagonal = hessian.diagonal().sqrt().nan_to_num(1.0, 1.0, 1.0)
    diagonal = torch.diag(diagonal)
    factor = factor_of(hessian, Preconditioner(diagonal, diagonal, pooled.run)).factor
    return Preconditioner(factor, factor, pooled.run)


def hessian_of(pooled: Objective, coefficients: Tensor, dtype: torch.dtype) -> Tensor:
    """Hessian of the pooled objective at `coefficients` (n_outputs, n_columns), flattened, float64.

    Products within a block are in `dtype`.
    """
    data = pooled.data
    scale = data.contrast_scale[:, None, None]
    linear = Linear.of((coefficients[:, None, :] * scale).to(dtype), data.n_features)
    ridge = _ridge(pooled)
    if not data.has_contrasts:
        add = _add_binary if data.offsets is None else _add_choice
        lower = sum_of(pooled, partial(add, linear), data.n_columns, data.n_columns)
        return lower.mul_(pooled.C) + torch.diag(ridge)
    # One pair of contrasts at a time: memory for all of them at once would show beside the features.
    hessian = ridge.new_empty(data.n_outputs, data.n_columns, data.n_outputs, data.n_columns)
    for pair in combinations_with_replacement(range(data.n_outputs), 2):
        lower = sum_of(pooled, partial(_add_contrasts, linear, pair), data.n_columns, data.n_columns)
        hessian[pair[0], :, pair[1]] = hessian[pair[1], :, pair[0]] = _symmetric(lower.mul_(pooled.C))
    hessian = hessian.view(data.n_outputs * data.n_columns, -1)
    hessian.diagonal().add_(ridge.repeat(data.n_outputs))
    return hessian


def _add_binary(linear: Linear, data: Data, block: Block, total: Tensor) -> None:
    score = data.scores(block, linear)[:, 0, 0]
    total += gram_of(features_of(data, block, linear.weight.dtype), torch.sigmoid(score) * torch.sigmoid(-score))


def _add_contrasts(linear: Linear, pair: tuple[int, int], data: Data, block: Block, total: Tensor) -> None:
    """Curvature of two scaled contrasts."""
    share = torch.softmax(spread(data.scores(block, linear)), dim=1)[:, :, 0]
    basis = spread(torch.diag(data.contrast_scale).to(share.dtype))  # (n_outputs, n_classes)
    one, other = basis[pair[0]], basis[pair[1]]
    weight = share @ (one * other) - (share @ one) * (share @ other)
    total += gram_of(features_of(data, block, linear.weight.dtype), weight)


def _add_choice(linear: Linear, data: Data, block: Block, total: Tensor) -> None:
    example, place, _ = data.candidate_slots(block)
    share = torch.softmax(data.scores(block, linear)[:, :, 0], dim=1)[example, place]
    x = features_of(data, block, linear.weight.dtype)
    mean = x.new_zeros(block.last - block.first, x.shape[1]).index_add_(0, example, x * share[:, None])
    total += gram_of(x, share)
    total -= gram_of(mean)
