"""How far a model's distribution over labels lies from that of the annotators.

Conventions
-----------
Natural logarithms. `js_distance` is the square root of the Jensen-Shannon divergence: ChaosNLI
(Nie et al. 2020) reports this distance and calls it JSD. It lies between 0 and sqrt(log 2).
Its KL divergence is that of the annotators' distribution from the model's, in nats, as here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

SMALLEST_PROBABILITY = 1e-12
"""Probabilities below count as this much in cross-entropy and KL divergence, so that they stay finite."""


def normalised(weights: ArrayLike) -> NDArray[np.float64]:
    """Rows that sum to 1; NaN where a row sums to 0, shape (..., n_labels)."""
    values = np.asarray(weights, dtype=np.float64)
    totals = values.sum(axis=-1, keepdims=True)
    return np.divide(values, totals, out=np.full(values.shape, np.nan), where=totals > 0)


def cross_entropy_nats(annotators: ArrayLike, model: ArrayLike) -> NDArray[np.float64]:
    """-sum p log q of the annotators' distribution p under the model's q, shape (...)."""
    q = np.maximum(np.asarray(model, dtype=np.float64), SMALLEST_PROBABILITY)
    return -(np.asarray(annotators, dtype=np.float64) * np.log(q)).sum(axis=-1)


def kl_nats(annotators: ArrayLike, model: ArrayLike) -> NDArray[np.float64]:
    """Kullback-Leibler divergence of the annotators' distribution from the model's, in nats, shape (...)."""
    p = np.asarray(annotators, dtype=np.float64)
    q = np.maximum(np.asarray(model, dtype=np.float64), SMALLEST_PROBABILITY)
    return _kl_nats(p, q)


def js_distance(first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """Square root of the Jensen-Shannon divergence in nats, shape (...)."""
    p, q = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    middle = (p + q) / 2
    divergence = (_kl_nats(p, middle) + _kl_nats(q, middle)) / 2
    return np.sqrt(np.maximum(divergence, 0.0))


def _kl_nats(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Kullback-Leibler divergence; q is positive wherever p is."""
    quotient = np.divide(p, q, out=np.ones_like(p), where=p > 0)
    return (p * np.log(quotient)).sum(axis=-1)
