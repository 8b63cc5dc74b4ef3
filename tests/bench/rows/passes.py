"""What a solver pass costs beside the two matrix products that it cannot do without."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import problems
from measure import cores, interleaved

from advsets.aflite.compute import thread_limit

PASSES = 5
"""Passes that are timed: every fit still runs."""


def overhead(*, small: bool) -> dict[str, Any]:
    """Against products with a column for each class, and beside it with the solver's own: one less than classes."""
    problem = problems.real()
    n_outputs = problem.n_classes - 1 if problem.n_classes > 2 else 1
    with passes_of(problem) as ours:
        found = interleaved(
            {
                "ours": ours,
                "peer": lambda: _products(problem, problem.n_classes),
                "narrower": lambda: _products(problem, n_outputs),
            },
            7 if small else 21,
        )
    return {
        "ratio": found["ours"] / found["peer"],
        "ours_s": found["ours"],
        "peer_s": found["peer"],
        "ratio_to_own_narrower_products": found["ours"] / found["narrower"],
    }


def _products(problem: problems.Problem, columns_per_fit: int) -> float:
    """Seconds of both products with so many columns for each fit."""
    import torch

    x = torch.from_numpy(problem.x)
    n_columns = problem.n_partitions * columns_per_fit
    right, left = torch.randn(x.shape[1], n_columns), torch.randn(len(x), n_columns)
    with thread_limit(cores()):
        began = time.perf_counter()
        for _ in range(PASSES):
            torch.matmul(x, right)
            torch.matmul(left.T, x)
        return (time.perf_counter() - began) / PASSES


def median_pass(problem: problems.Problem, repeats: int) -> float:
    """Median seconds of a pass, the pooled fit apart."""
    with passes_of(problem) as ours:
        return statistics.median([ours() for _ in range(repeats + 1)][1:])


@contextmanager
def passes_of(problem: problems.Problem) -> Iterator[Callable[[], float]]:
    """Function that runs a few passes of all fits from the pooled fit and returns the seconds of one."""
    import torch

    from advsets.aflite.logreg import fits_per_group
    from advsets.aflite.objective import Data, Objective, block_threads
    from advsets.aflite.pooled import fit_pooled
    from advsets.aflite.solver import Solver

    masks = torch.from_numpy(problem.draw())
    data = Data(torch.from_numpy(problem.x), torch.from_numpy(problem.y), None, problem.n_classes)
    group = fits_per_group(problem.train_size / len(problem.y), problem.n_partitions, data.n_outputs)
    with torch.no_grad(), thread_limit(cores()), block_threads("cpu") as run:
        objective = Objective(data, masks.T.contiguous(), 1.0, 2048, run, group)
        pooled = fit_pooled(objective, problem.train_size)

        def seconds() -> float:
            sizes = masks.sum(1).double()
            solver = Solver(objective, pooled.preconditioner, sizes, noise=0.0, tolerance=1e-12)
            solver.start_at(pooled.coefficients)
            began = time.perf_counter()
            fits = solver.solve(PASSES)
            if fits.n_passes != PASSES or "converged" in fits.status:
                raise RuntimeError(f"fits ended within {PASSES} passes: time fewer of them")
            return (time.perf_counter() - began) / PASSES

        yield seconds
