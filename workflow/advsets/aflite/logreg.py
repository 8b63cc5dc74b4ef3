"""Many regularised logistic regressions on subsets of one data set, fitted all at once.

Conventions
-----------
The objective of one fit is exactly scikit-learn's `LogisticRegression` (L2, lbfgs):
C * (sum of log losses over the subset) + 0.5 * ||weights||^2; the intercept is not penalised.
Binary: one weight vector, class 1 is predicted when the score is above 0. Three classes or more: softmax with
`n_classes` columns. Multiple choice: one shared scorer without intercept, softmax over an example's candidates.
A fit is converged when max |gradient| / (its training examples) is at or below the tolerance.
Memory beside `x` and `masks`, in bytes, with V = n_outputs * n_columns, m partitions and t threads: the masks once
more (m * n_examples); the Hessian and its factor, 3 * 8 * V^2; steps and gradient changes, 2 * MEMORY * 8 * m * V;
gradients and partial sums of them, about (t + 3) * 8 * m * V; and per thread a block,
4 * block_rows * (2 * n_features + 4 * m * n_classes), and half the Hessian of one output, 2 * 8 * n_columns^2.
The way there is `solver`'s, from the classifier of `pooled` or from zero; the products are `objective`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from advsets.aflite.objective import Data, Objective, block_threads, evenly, touched_share
from advsets.aflite.pooled import fit_pooled
from advsets.aflite.solver import ROUNDING, Fits, Solver

__all__ = ["Fits", "check_data", "fit_classifiers"]

POOLED, ZERO = "pooled", "zero"
OVERHEAD_COLUMNS = 24
"""Score columns whose arithmetic costs as much as gathering an example and multiplying it by a narrow matrix."""


def fit_classifiers(
    x: Tensor,
    y: Tensor,
    masks: Tensor,
    *,
    n_classes: int,
    C: float = 1.0,
    offsets: Tensor | None = None,
    tolerance: float = 1e-5,
    max_passes: int = 500,
    device: str | Sequence[str] = "cpu",
    block_rows: int = 2048,
    start: str = POOLED,
) -> Fits:
    """Fit one linear classifier per partition.

    Parameters
    ----------
    x : Tensor
        (n_rows, n_features) float32, rows contiguous; never copied whole on a CPU.
    y : Tensor
        (n_examples,) int64: class index, or index of the right candidate within the example.
    masks : Tensor
        (n_partitions, n_examples) bool, True where the example is in the partition's training subset.
    n_classes : int
        Length of the full class list; a class absent from a subset keeps its column. Ignored with `offsets`.
    C : float
        Inverse strength of the penalty.
    offsets : Tensor, optional
        (n_examples + 1,) int64, multiple choice: rows `offsets[i]:offsets[i + 1]` are the candidates of example i.
    tolerance : float
        Largest max |gradient| / (training examples) of a converged fit.
    max_passes : int
        Limit on passes over the data, at least 1.
    device : str or sequence of str
        Torch device that computes; results come back on the CPU. Several share out the partitions, each with a copy
        of the features; every fit takes the same steps as on one, but for rounding.
    block_rows : int
        Rows worked on at a time.
    start : {"pooled", "zero"}
        Where every fit starts. The pooled classifier has seen the rows held out from each fit; at the tolerance
        given, predictions are those from zero coefficients.

    Returns
    -------
    Fits

    Raises
    ------
    ValueError
        If shapes, types or values do not fit together.
    """
    check_data(x, y, masks, n_classes, offsets)
    if not C > 0 or not tolerance > 0 or max_passes < 1 or block_rows < 1:
        raise ValueError(f"C {C}, tolerance {tolerance}, max_passes {max_passes}, block_rows {block_rows}: all above 0")
    if start not in (POOLED, ZERO):
        raise ValueError(f"start {start!r}: allowed are {POOLED!r} and {ZERO!r}")
    # A sum of all masks at once would hold them as int64.
    sizes = torch.stack([mask.count_nonzero() for mask in masks])
    if not bool((sizes > 0).all()):
        raise ValueError(f"training subset {int((sizes == 0).nonzero()[0])} is empty: each needs at least one example")
    places = [torch.device(name) for name in ([device] if isinstance(device, str) else device)]
    with torch.no_grad(), block_threads(places[0]) as run:
        problem = _Problem(x.detach(), y, masks, offsets, n_classes, C, block_rows, sizes, run)
        whole = problem.objective_on(places[0], slice(None))
        pooled = fit_pooled(whole, float(sizes.double().mean()))

        def solve(place: torch.device, members: slice) -> Fits:
            objective = whole if len(places) == 1 else problem.objective_on(place, members)
            preconditioner, own_sizes = pooled.preconditioner.to(place), sizes[members].to(place).double()
            solver = Solver(objective, preconditioner, own_sizes, ROUNDING * C * pooled.feature_scale, tolerance)
            if start == POOLED:
                solver.start_at(pooled.coefficients.to(place))
            fits = solver.solve(max_passes)
            coefficients = objective.data.coefficients(fits.coefficients).cpu()
            return replace(fits, coefficients=coefficients, gradient_norm=fits.gradient_norm.cpu())

        return _joined(_on_each(solve, places, len(masks)))


@dataclass(frozen=True)
class _Problem:
    """Arguments of `fit_classifiers`, and the objective of some of its fits on a device."""

    x: Tensor
    y: Tensor
    masks: Tensor
    offsets: Tensor | None
    n_classes: int
    C: float
    block_rows: int
    sizes: Tensor
    run: Callable[..., Iterable]

    def objective_on(self, place: torch.device, members: slice) -> Objective:
        moved = None if self.offsets is None else self.offsets.to(place)
        data = Data(self.x.to(place), self.y.to(place), moved, self.n_classes)
        share = float(self.sizes.double().mean()) / len(self.y)
        group = fits_per_group(share, len(self.masks), data.n_outputs)
        in_subset = self.masks[members].T.contiguous().to(place)
        return Objective(data, in_subset, self.C, self.block_rows, self.run, group)


def _on_each(solve: Callable[[torch.device, slice], Fits], places: list[torch.device], n_fits: int) -> list[Fits]:
    """Results of equal runs of the fits, one run per device, at the same time on GPUs."""
    parts = list(zip(places, evenly(n_fits, len(places)), strict=False))
    if len(parts) == 1 or places[0].type == "cpu":
        return [solve(*part) for part in parts]
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(torch.no_grad()(solve), *zip(*parts, strict=True)))


def _joined(parts: list[Fits]) -> Fits:
    return Fits(
        torch.cat([part.coefficients for part in parts]),
        torch.cat([part.gradient_norm for part in parts]),
        max(part.n_passes for part in parts),
        [status for part in parts for status in part.status],
    )


def fits_per_group(share: float, n_fits: int, n_outputs: int) -> int:
    """Fits whose examples one product serves: all of them (the masked form), or fewer where that costs less.

    A product for `g` fits touches a share 1 - (1 - share)^g of the examples, and each costs its arithmetic and
    once, whatever `g`, as much as `OVERHEAD_COLUMNS` more columns: taking it out, and narrow products being slow.
    """

    def cost(group: int) -> float:
        return touched_share(share, group) * (1 + OVERHEAD_COLUMNS / (group * n_outputs))

    sizes = [2**k for k in range(n_fits.bit_length()) if 2**k < n_fits]
    return min([n_fits, *sizes[::-1]], key=cost)


def check_data(x: Tensor, y: Tensor, masks: Tensor, n_classes: int, offsets: Tensor | None) -> None:
    """Raise ValueError, saying what came, unless shapes and types fit together."""
    came = f"x {tuple(x.shape)} {x.dtype}, y {tuple(y.shape)} {y.dtype}, masks {tuple(masks.shape)} {masks.dtype}"
    if x.ndim != 2 or x.dtype != torch.float32 or y.ndim != 1 or y.dtype != torch.int64:
        raise ValueError(f"{came}: want x (n_rows, n_features) float32 and y (n_examples,) int64")
    if masks.ndim != 2 or masks.dtype != torch.bool or masks.shape[1] != len(y) or 0 in masks.shape:
        raise ValueError(f"{came}: want masks (n_partitions, n_examples) bool, neither 0")
    if offsets is None:
        if len(x) != len(y) or n_classes < 2:
            raise ValueError(f"{came}, n_classes {n_classes}: want one row per example and at least two classes")
        limit: Tensor | int = n_classes
    else:
        limit = offsets.diff()
        if offsets.shape != (len(y) + 1,) or offsets[0] != 0 or offsets[-1] != len(x) or bool((limit < 1).any()):
            raise ValueError(f"{came}, offsets {tuple(offsets.shape)}: want rising offsets from 0 to n_rows")
    if bool(((y < 0) | (y >= limit)).any()):
        raise ValueError(f"{came}: y goes from {int(y.min())} to {int(y.max())}, beyond the classes or candidates")
