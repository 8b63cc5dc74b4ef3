"""Distances between label distributions, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy

from advsets.stats.divergence import SMALLEST_PROBABILITY, cross_entropy_nats, js_distance, kl_nats, normalised


def test_js_distance_equals_scipy() -> None:
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(4), 50), rng.dirichlet(np.full(4, 0.3), 50)
    p[:5, 0] = 0
    p = normalised(p)
    np.testing.assert_allclose(js_distance(p, q), [jensenshannon(a, b) for a, b in zip(p, q, strict=True)], atol=1e-9)


def test_js_distance_limits() -> None:
    assert js_distance([0.2, 0.8], [0.2, 0.8]) == 0
    assert js_distance([1.0, 0.0], [0.0, 1.0]) == pytest.approx(np.sqrt(np.log(2)))


def test_cross_entropy_is_entropy_plus_divergence() -> None:
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])
    assert cross_entropy_nats(p, q) == pytest.approx(entropy(p) + entropy(p, q))


def test_divergence_of_annotators_from_the_model_equals_scipy() -> None:
    rng = np.random.default_rng(1)
    p, q = rng.dirichlet(np.ones(3), 50), rng.dirichlet(np.ones(3), 50)
    p[:5, 0] = 0
    p = normalised(p)
    np.testing.assert_allclose(kl_nats(p, q), entropy(p, q, axis=1), atol=1e-12)
    assert kl_nats([1.0, 0.0], [0.0, 1.0]) == pytest.approx(-np.log(SMALLEST_PROBABILITY))
    assert kl_nats([0.3, 0.7], [0.3, 0.7]) == 0


def test_cross_entropy_stays_finite_at_zero() -> None:
    assert cross_entropy_nats([1.0, 0.0], [0.0, 1.0]) == pytest.approx(-np.log(SMALLEST_PROBABILITY))
    assert cross_entropy_nats([0.0, 1.0], [0.0, 1.0]) == 0


def test_normalised_rows() -> None:
    np.testing.assert_array_equal(normalised([[1, 3], [0, 0]]), [[0.25, 0.75], [np.nan, np.nan]])
