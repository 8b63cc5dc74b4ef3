"""Resampling of examples: bootstrap draws and size-matched random subsets as matrix products.

Conventions
-----------
Rows are examples in canonical order (sorted by `example_id`), so a draw depends on the seed
and the number of examples alone. A bootstrap draw is a vector of counts: how often each example
was drawn in `n_examples` draws with replacement. All columns (models, subsets, classes) share
the counts of a draw, so differences between columns are paired.
Sums are exact, hence equal for any thread count: values are integers or fixed-point numbers
(`fixed_point`), in float32 while sums stay below 2**24 and in float64 below 2**53.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advsets.seeding import rng_for

_BLOCK_ELEMENTS = 2**24
_COLUMNS_AT_ONCE = 512


def fixed_point(values: ArrayLike) -> tuple[NDArray[np.float64], float]:
    """Values times a power of two, rounded to integers, and that power.

    The power is the largest for which sums over a draw of the first axis (its length times the
    largest value at most) stay within 2**52: for 10,000 shares the rounding is 2**-39.
    """
    array = np.asarray(values, dtype=np.float64)
    bound = max(len(array) * float(np.abs(array).max(initial=0.0)), 1.0)
    scale = 2.0 ** (52 - int(np.ceil(np.log2(bound))))
    return np.rint(array * scale), scale


def count_blocks(n_examples: int, n_draws: int, seed: int) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """Bootstrap counts in blocks of draws: (draws, counts of shape (n_draws_of_block, n_examples))."""
    step = max(1, _BLOCK_ELEMENTS // max(n_examples, 1))
    for start in range(0, n_draws, step):
        stop = min(start + step, n_draws)
        counts = np.empty((stop - start, n_examples), dtype=np.float32)
        for row, draw in enumerate(range(start, stop)):
            drawn = rng_for(seed, "bootstrap", draw).integers(0, max(n_examples, 1), n_examples)
            counts[row] = np.bincount(drawn, minlength=n_examples)
        yield slice(start, stop), counts


def order_blocks(n_examples: int, n_draws: int, seed: int) -> Iterator[tuple[slice, NDArray[np.int32]]]:
    """Random orders in blocks of draws: the place of each example, shape (n_draws_of_block, n_examples).

    The examples at places below k are a random subset of size k.
    """
    step = max(1, _BLOCK_ELEMENTS // max(n_examples, 1))
    for start in range(0, n_draws, step):
        stop = min(start + step, n_draws)
        places = np.empty((stop - start, n_examples), dtype=np.int32)
        for row, draw in enumerate(range(start, stop)):
            places[row] = rng_for(seed, "random_subset", draw).permutation(n_examples)
        yield slice(start, stop), places


def masked_sums(values: ArrayLike, masks: NDArray[np.bool_], n_draws: int, seed: int) -> NDArray[np.float64]:
    """Sum of every value column within every mask, for each bootstrap draw.

    Parameters
    ----------
    values : array, shape (n_examples, n_values)
        Integers or `fixed_point` numbers.
    masks : array of bool, shape (n_examples, n_masks)
        Subsets over which is summed.

    Returns
    -------
    array, shape (n_draws, n_masks, n_values)
    """
    columns = _exact(values)
    n_examples, n_values = columns.shape
    n_masks = masks.shape[1]
    out = np.zeros((n_draws, n_masks, n_values))
    step = max(1, _COLUMNS_AT_ONCE // max(n_values, 1))
    for draws, counts in count_blocks(n_examples, n_draws, seed):
        weights = counts.astype(columns.dtype, copy=False)
        for start in range(0, n_masks, step):
            chosen = masks[:, start : start + step]
            product = weights @ (chosen[:, :, None] * columns[:, None, :]).reshape(n_examples, -1)
            out[draws, start : start + step] = product.reshape(-1, chosen.shape[1], n_values)
    return out


def subset_sums(values: ArrayLike, sizes: ArrayLike, n_draws: int, seed: int) -> NDArray[np.float64]:
    """Sum of every value column over random subsets of the given sizes.

    Subset i of a smaller size is part of subset i of a larger one.

    Parameters
    ----------
    values : array, shape (n_examples, n_values)
        Integers or `fixed_point` numbers.
    sizes : array of int, shape (n_sizes,)
        Examples per subset.

    Returns
    -------
    array, shape (n_draws, n_sizes, n_values)
    """
    columns = _exact(values)
    wanted = np.asarray(sizes, dtype=np.int64)
    out = np.zeros((n_draws, wanted.size, columns.shape[1]))
    for draws, places in order_blocks(columns.shape[0], n_draws, seed):
        for size in np.unique(wanted):
            sums = (places < size).astype(columns.dtype) @ columns
            out[draws, wanted == size] = sums[:, None, :]
    return out


def _exact(values: ArrayLike) -> NDArray[np.floating]:
    """Values in the narrowest float type in which their sums stay exact, shape (n_examples, n_values)."""
    array = np.asarray(values)
    largest = float(np.abs(array).max()) if array.size else 0.0
    exact: type[np.floating] = np.float32 if largest * array.shape[0] < 2**24 else np.float64
    return array.astype(exact)


def percentile_interval(draws: ArrayLike, confidence: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Percentile bounds over the first axis; draws that are NaN are left out.

    Parameters
    ----------
    draws : array, shape (n_draws, ...)
    confidence : float
        Share of the draws between the bounds, e.g. 0.95.

    Returns
    -------
    low, high : arrays, shape (...)
        NaN where every draw is NaN.
    """
    array = np.asarray(draws, dtype=np.float64)
    flat = array.reshape(array.shape[0], int(np.prod(array.shape[1:])))
    bounds = np.full((2, flat.shape[1]), np.nan)
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    whole = ~np.isnan(flat).any(axis=0)
    if flat.shape[0]:
        bounds[:, whole] = np.quantile(flat[:, whole], tails, axis=0)
        for column in np.flatnonzero(~whole):
            kept = flat[~np.isnan(flat[:, column]), column]
            if kept.size:
                bounds[:, column] = np.quantile(kept, tails)
    low, high = bounds.reshape(2, *array.shape[1:])
    return low, high


def range_over_draws(draws: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Mean, lowest and highest over the first axis; NaN draws are left out."""
    array = np.asarray(draws, dtype=np.float64)
    known = ~np.isnan(array)
    n_known = known.sum(axis=0)
    mean = ratio(np.where(known, array, 0.0).sum(axis=0), n_known)
    low = np.where(known, array, np.inf).min(axis=0, initial=np.inf)
    high = np.where(known, array, -np.inf).max(axis=0, initial=-np.inf)
    return mean, np.where(n_known > 0, low, np.nan), np.where(n_known > 0, high, np.nan)


def known_mean(values: NDArray[np.float64], axis: int | tuple[int, ...] | None = None) -> NDArray[np.float64]:
    """Mean of what is not NaN; NaN where nothing is known."""
    known = ~np.isnan(values)
    return ratio(np.where(known, values, 0.0).sum(axis=axis), known.sum(axis=axis))


def ratio(part: ArrayLike, whole: ArrayLike) -> NDArray[np.float64]:
    """part / whole, NaN where whole is 0."""
    numerator, denominator = np.broadcast_arrays(
        np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    )
    return np.divide(numerator, denominator, out=np.full(numerator.shape, np.nan), where=denominator != 0)
