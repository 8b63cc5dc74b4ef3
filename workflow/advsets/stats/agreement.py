"""Bins of annotator agreement.

Conventions
-----------
Agreement is a share, 0 to 1. Bins are of equal width; the lower edge belongs to the bin, the
upper edge to the next, but for the last. Edges are k / n_bins, computed as that division, so an
agreement of 3 / 5 lies exactly on the edge 3 / 5.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def bin_edges(n_bins: int) -> NDArray[np.float64]:
    """Edges from 0 to 1, shape (n_bins + 1,)."""
    return np.arange(n_bins + 1) / n_bins


def bin_of(agreement: ArrayLike, n_bins: int) -> NDArray[np.int64]:
    """Index of each value's bin, -1 where it is NaN, shape of `agreement`."""
    values = np.asarray(agreement, dtype=np.float64)
    index = np.searchsorted(bin_edges(n_bins), values, side="right") - 1
    return np.where(np.isnan(values), -1, np.clip(index, 0, n_bins - 1))


def membership(agreement: ArrayLike, n_bins: int) -> NDArray[np.bool_]:
    """Whether each value lies in each bin, shape (n_values, n_bins)."""
    return bin_of(agreement, n_bins)[:, None] == np.arange(n_bins)
