"""One filtering round against scikit-learn's classifiers, fitted one by one."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import problems
from measure import cores, interleaved
from numpy.typing import NDArray
from problems import Problem

from advsets.aflite.compute import thread_limit

MAX_ITER = 100_000


def converged(*, small: bool) -> dict[str, Any]:
    return _against_the_fastest(problems.real(), n_fits=8 if small else 16, repeats=1 if small else 3)


def large(*, small: bool) -> dict[str, Any]:
    return _against_the_fastest(problems.synthetic(100_000, 768, 20_000), n_fits=4, repeats=3)


def default_loop(*, small: bool) -> dict[str, Any]:
    """The loop that public AFLite code runs; 4 of its 64 fits stand for all (8 in the long run)."""
    problem = problems.real()
    masks, n_fits = problem.draw(), 4 if small else 8

    def peer() -> float:
        began = time.perf_counter()
        for mask in masks[:n_fits]:
            _fit_and_predict(problem.x, problem.y, mask, {})
        return (time.perf_counter() - began) * len(masks) / n_fits

    found = interleaved({"ours": lambda: ours(problem), "peer": peer}, 1 if small else 3)
    return {
        "ratio": found["peer"] / found["ours"],
        "ours_s": found["ours"],
        "peer_s": found["peer"],
        "n_peer_fits": n_fits,
    }


def _against_the_fastest(problem: Problem, n_fits: int, repeats: int) -> dict[str, Any]:
    """Ratio to the fastest of the peers, all with one-thread workers on every core."""
    masks = problem.draw()
    peers = {
        "lbfgs float32": {"solver": "lbfgs", "tol": 1e-6},
        "newton-cholesky float32": {"solver": "newton-cholesky", "tol": 1e-6},
    }

    def peer(options: dict[str, Any]) -> Callable[[], float]:
        return lambda: seconds_of_workers(problem, masks[:n_fits], options) * len(masks) / n_fits

    functions: dict[str, Callable[[], object]] = {"ours": lambda: ours(problem)}
    functions |= {name: peer(options) for name, options in peers.items()}
    found = interleaved(functions, repeats)
    best = min(peers, key=found.__getitem__)
    return {
        "ratio": found[best] / found["ours"],
        "ours_s": found["ours"],
        "peer_s": found[best],
        "fastest_peer": best,
        "peers_s": {name: found[name] for name in peers},
        "n_peer_fits": n_fits,
    }


def ours(problem: Problem) -> None:
    """Draws, pooled fit, all fits and all held-out predictions."""
    import torch

    from advsets.aflite.logreg import fit_classifiers
    from advsets.aflite.scoring import score_examples

    with thread_limit(cores()):
        masks = problem.draw()
        x, y = torch.from_numpy(problem.x), torch.from_numpy(problem.y)
        fits = fit_classifiers(x, y, torch.from_numpy(masks), n_classes=problem.n_classes)
        score_examples(x, y, fits, n_classes=problem.n_classes, held_out=torch.from_numpy(~masks))
    if set(fits.status) != {"converged"}:
        raise RuntimeError(f"not every fit converged: {fits.status}")


def seconds_of_workers(problem: Problem, masks: NDArray[np.bool_], options: dict[str, Any]) -> float:
    """Seconds for these fits on workers of one BLAS thread each; the rows are shared, not copied to them."""
    from joblib import Parallel, delayed, parallel_config

    with parallel_config("loky", inner_max_num_threads=1), Parallel(n_jobs=cores()) as pool:
        call = delayed(_fit_and_predict)
        pool(call(problem.x, problem.y, mask, {**options, "max_iter": 1}) for mask in masks[: cores()])
        began = time.perf_counter()
        pool(call(problem.x, problem.y, mask, options) for mask in masks)
        return time.perf_counter() - began


def _fit_and_predict(
    x: NDArray[np.float32], y: NDArray[np.int64], mask: NDArray[np.bool_], options: dict[str, Any]
) -> NDArray[np.bool_]:
    """Which rows held out from this fit are predicted right."""
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        if options.get("max_iter") == 1:
            warnings.simplefilter("ignore")
        model = LogisticRegression(**{"C": 1.0, "max_iter": MAX_ITER, **options}).fit(x[mask], y[mask])
    return model.predict(x[~mask]) == y[~mask]
