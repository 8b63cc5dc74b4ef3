"""Bins of agreement at their edges."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from advsets.stats.agreement import bin_edges, bin_of, membership


@pytest.mark.parametrize("n_bins", [1, 3, 5, 10, 100])
@pytest.mark.parametrize("n_annotators", [3, 5, 7, 10, 20, 100])
def test_every_share_of_annotators_lies_in_its_exact_bin(n_bins: int, n_annotators: int) -> None:
    votes = np.arange(n_annotators + 1)
    exact = [min(int(Fraction(int(k), n_annotators) * n_bins), n_bins - 1) for k in votes]
    np.testing.assert_array_equal(bin_of(votes / n_annotators, n_bins), exact)


def test_unknown_agreement_is_in_no_bin() -> None:
    found = membership([np.nan, 1.0, 0.0, 0.5], 2)
    np.testing.assert_array_equal(found, [[0, 0], [0, 1], [1, 0], [0, 1]])


def test_edges() -> None:
    np.testing.assert_array_equal(bin_edges(4), [0, 0.25, 0.5, 0.75, 1])
