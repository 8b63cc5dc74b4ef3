"""Random training subsets, drawn from keyed hashes of `example_id`.

Conventions
-----------
A mask has shape (n_partitions, n_examples), True where the example is in the training subset.
Subset `partition` of round `filtering_round` holds the examples with the smallest
`mix(hashes, seed, "partition", filtering_round, partition)`, so it depends on ids and key
alone: not on row order, device, the other subsets, or how far a generator has run.
Without groups the draw is stratified by label, by largest remainder and with at least one
row of each label that is left. With groups, whole groups are drawn: first one for each
label, then in hash order as long as `train_size` is not exceeded; label balance is then
approximate and a subset may be up to one group short of `train_size`.
Groups larger than `train_size`, and draws that leave no row held out, are refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from advsets.errors import UserError
from advsets.seeding import mix

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Hashes = NDArray[np.uint64]


def draw_masks(
    hashes: Hashes,
    strata: Ints,
    train_size: int,
    n_partitions: int,
    *,
    seed: int,
    filtering_round: int,
    groups: Ints | None = None,
    group_hashes: Hashes | None = None,
) -> Bools:
    """Draw the training subsets of one round.

    Parameters
    ----------
    hashes : ndarray of uint64, shape (n_examples,)
        `id_hashes` of the retained training rows.
    strata : ndarray of int64, shape (n_examples,)
        Label index of each row (all 0: not stratified).
    train_size : int
        Rows per subset.
    n_partitions : int
        Subsets to draw.
    seed, filtering_round : int
        Key of the draw.
    groups : ndarray of int64, shape (n_examples,), optional
        Index of each row's group in `group_hashes`.
    group_hashes : ndarray of uint64, shape (n_groups,), optional
        Hash of each group; groups without a row here are never drawn.

    Returns
    -------
    ndarray of bool, shape (n_partitions, n_examples)

    Raises
    ------
    UserError
        If `train_size` is smaller than the number of labels, or groups leave no row held out.
    """
    masks = np.zeros((n_partitions, len(hashes)), dtype=bool)
    if groups is None:
        quotas = label_quotas(strata, train_size)
        for partition in range(n_partitions):
            keys = mix(hashes, int(seed), "partition", filtering_round, partition)
            _draw_rows(masks[partition], keys, strata, quotas)
        return masks
    if group_hashes is None:
        raise ValueError("groups need group_hashes")
    present, codes = np.unique(groups, return_inverse=True)
    label_quotas(strata, train_size)
    for partition in range(n_partitions):
        keys = mix(group_hashes[present], int(seed), "partition", filtering_round, partition)
        masks[partition] = _draw_groups(keys, codes, strata, train_size)[codes]
    if masks.all():
        raise UserError(
            f"group_id: in filtering round {filtering_round} one group of each label makes up all {len(hashes)}"
            f" training rows, so none would be held out (train_size is {train_size}); allowed: smaller groups;"
            " leave group_id out, or set use_groups to false"
        )
    return masks


def check_groups(groups: Ints, group_names: Sequence[str], train_size: int) -> None:
    """Raise `UserError` if a group, whole as it is drawn, would not fit into a subset.

    Parameters
    ----------
    groups : ndarray of int64, shape (n_examples,)
        Index of each row's group in `group_names`.
    group_names : sequence of str, shape (n_groups,)
    train_size : int
        Rows per subset.
    """
    sizes = np.bincount(groups, minlength=len(group_names))
    largest = int(np.argmax(sizes))
    if sizes[largest] > train_size:
        n_larger = int((sizes > train_size).sum())
        raise UserError(
            f"group_id {group_names[largest]!r} has {sizes[largest]} training rows, the largest of {n_larger}"
            f" group(s) with more than train_size, {train_size}; allowed: at most train_size rows; raise train_size,"
            " leave group_id out, or set use_groups to false"
        )


def label_quotas(strata: Ints, train_size: int) -> dict[int, int]:
    """Rows to draw per label: proportional, by largest remainder, at least 1, `train_size` in all."""
    labels, sizes = np.unique(strata, return_counts=True)
    if train_size < len(labels):
        raise UserError(
            f"train_size: {train_size} rows cannot hold one row of each of the {len(labels)} labels;"
            f" allowed: at least {len(labels)}; raise train_size"
        )
    exact = [(int(size) * train_size, int(label)) for label, size in zip(labels, sizes, strict=True)]
    n_rows = len(strata)
    quotas = {label: share // n_rows for share, label in exact}
    by_remainder = sorted(exact, key=lambda item: (-(item[0] % n_rows), item[1]))
    for _, label in by_remainder[: train_size - sum(quotas.values())]:
        quotas[label] += 1
    for label in [label for label, quota in quotas.items() if quota == 0]:
        richest = max(quotas, key=lambda other: (quotas[other], -other))
        quotas[richest] -= 1
        quotas[label] = 1
    return quotas


def _draw_rows(mask: Bools, keys: Hashes, strata: Ints, quotas: dict[int, int]) -> None:
    """Set `mask` True for the rows of smallest key within each label."""
    for label, quota in quotas.items():
        rows = np.flatnonzero(strata == label)
        if quota < len(rows):
            rows = rows[np.argpartition(keys[rows], quota - 1)[:quota]]
        mask[rows] = True


def _draw_groups(keys: Hashes, codes: Ints, strata: Ints, train_size: int) -> Bools:
    """Groups of one subset, shape (n_groups,): one per label, then in key order while they fit."""
    order = np.argsort(keys, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    first: list[int] = []
    for label in np.unique(strata):
        of_label = codes[strata == label]
        if not np.isin(of_label, first).any():
            first.append(int(of_label[np.argmin(rank[of_label])]))
    queue = np.concatenate([np.array(first, dtype=order.dtype), order[~np.isin(order, first)]])
    sizes = np.bincount(codes, minlength=len(keys))
    n_taken = max(len(first), int(np.searchsorted(np.cumsum(sizes[queue]), train_size, side="right")))
    drawn = np.zeros(len(keys), dtype=bool)
    drawn[queue[:n_taken]] = True
    return drawn
