"""What fitted classifiers predict for each example: counts of right answers, and margins.

Conventions
-----------
Axes and score layout as in `objective`. The highest score is predicted, the first of equal ones; binary predicts
class 1 when the score is above 0. Products are float64, one block of rows at a time, so that the margin of an
example does not depend on the rows beside it beyond the last digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from advsets.aflite.logreg import Fits, check_data
from advsets.aflite.objective import Block, Data, Linear, block_threads, evenly

SHARES = 64
"""Runs of blocks that are handed to threads: results go into one array, which keeps memory in one piece."""


@dataclass(frozen=True)
class Scores:
    """Predictions counted per example and per classifier.

    Attributes
    ----------
    n_held_out : Tensor
        (n_examples,) int64, classifiers that the example was held out from.
    n_correct : Tensor
        (n_examples,) int64, of these the ones that predict it right.
    margin : Tensor
        (n_examples,) float64, mean over them of the true class's score minus the best other score; nan without any.
        Binary: the score, with its sign turned for class 0.
    n_held_out_per_partition, n_correct_per_partition : Tensor
        (n_partitions,) int64, the same counted per classifier.
    """

    n_held_out: Tensor
    n_correct: Tensor
    margin: Tensor
    n_held_out_per_partition: Tensor
    n_correct_per_partition: Tensor


def score_examples(
    x: Tensor,
    y: Tensor,
    fits: Fits,
    *,
    n_classes: int,
    offsets: Tensor | None = None,
    held_out: Tensor | None = None,
    device: str = "cpu",
    block_rows: int = 512,
) -> Scores:
    """Count right predictions and average margins of every example.

    Parameters
    ----------
    x, y, n_classes, offsets, device, block_rows
        As in `fit_classifiers`; the examples need not be those fitted on. No examples at all is fine.
    fits : Fits
    held_out : Tensor, optional
        (n_partitions, n_examples) bool, which classifiers count for which example; all when omitted.

    Returns
    -------
    Scores

    Raises
    ------
    ValueError
        If shapes, types or values do not fit together.
    """
    n_partitions = len(fits.coefficients)
    if held_out is None:
        held_out = torch.ones(n_partitions, len(y), dtype=torch.bool)
    if held_out.shape != (n_partitions, len(y)):
        raise ValueError(f"held_out {tuple(held_out.shape)}: want {(n_partitions, len(y))}")
    if len(y):
        check_data(x, y, held_out, n_classes, offsets)
    place = torch.device(device)
    data = Data(x.detach().to(place), y.to(place), None if offsets is None else offsets.to(place), n_classes)
    counts = held_out.T.contiguous().to(place)
    by_output = fits.coefficients.to(place, torch.float64).transpose(0, 1)
    by_output = by_output if offsets is None else by_output[:, :, :-1]
    if by_output.shape[0] != data.n_scores or by_output.shape[2] != data.n_columns:
        raise ValueError(
            f"coefficients {tuple(fits.coefficients.shape)}: want (n_partitions, {data.n_scores}, {x.shape[1] + 1})"
        )
    linear = Linear.of(by_output, data.n_features)
    blocks = data.blocks(block_rows) if len(y) else []
    n_correct = torch.zeros(len(y), dtype=torch.int64, device=place)
    n_held_out = torch.zeros_like(n_correct)
    margin = torch.zeros(len(y), dtype=torch.float64, device=place)

    def of_share(share: list[Block]) -> Tensor:
        per_partition = torch.zeros(2, n_partitions, dtype=torch.int64, device=place)
        for block in share:
            rows = slice(block.first, block.last)
            right, margins = _score_block(data, block, linear)
            counted = torch.stack([counts[rows], right & counts[rows]])
            n_held_out[rows], n_correct[rows] = counted.sum(2)
            margin[rows] = torch.where(counts[rows], margins, 0.0).sum(1)
            per_partition += counted.sum(1)
        return per_partition

    with torch.no_grad(), block_threads(place) as run:
        shares = [blocks[part] for part in evenly(len(blocks), SHARES)]
        per_partition = sum(run(of_share, shares), torch.zeros(2, n_partitions, dtype=torch.int64, device=place)).cpu()
    return Scores(n_held_out.cpu(), n_correct.cpu(), (margin / n_held_out).cpu(), per_partition[0], per_partition[1])


def _score_block(data: Data, block: Block, linear: Linear) -> tuple[Tensor, Tensor]:
    """Whether each fit predicts each example right (examples, n_fits) bool, and its margin (examples, n_fits)."""
    scores = data.scores(block, linear)
    y = data.y[block.first : block.last]
    if data.offsets is None and data.n_classes == 2:
        right = (scores[:, 0] > 0) == (y == 1)[:, None]
        margin = scores[:, 0] * (2 * y - 1)[:, None]
    else:
        place = (torch.arange(len(y), device=y.device), y)
        own = scores[place]
        scores[place] = -torch.inf
        margin = own - scores.amax(1)
        right = margin > 0
        if bool((margin == 0).any()):
            tied = scores.argmax(1)
            right |= (margin == 0) & (y[:, None] < tied)
    return right, margin
