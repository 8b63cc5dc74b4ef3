"""Loss and gradient of many regularised linear classifiers in one pass over the features.

Conventions
-----------
Axes: `n_rows` (rows of `x`), `n_examples`, `n_fits`, `n_outputs` (score columns per fit), `n_columns`
(`n_features`, plus one for the intercept, last; multiple choice has none).
Multiple choice keeps the candidates of example i in rows `offsets[i]:offsets[i + 1]`; otherwise a row is an example.
Scores of a block are laid out (rows, n_outputs, n_fits), so that every operation runs along `n_fits`.
Products run in float32 or float64 on one block of rows at a time; sums over blocks are float64.
Blocks are shared out to threads, each with one BLAS thread, and added up in a fixed order: the result is the
same for any number of threads.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.nn import functional

Item = TypeVar("Item")
Result = TypeVar("Result")
MAX_PARTIAL_SUMS = 64
GPU_BLOCK_ROWS = 32_768
"""Least rows per block on a GPU, which has no cache to stay in and calls to save."""


class Block(NamedTuple):
    """Examples `first:last`, which hold rows `first_row:last_row` of the features."""

    first: int
    last: int
    first_row: int
    last_row: int


@dataclass(frozen=True)
class Data:
    """Features and answers of all examples; shapes in `fit_classifiers`."""

    x: Tensor
    y: Tensor
    offsets: Tensor | None
    n_classes: int

    @property
    def n_examples(self) -> int:
        return self.y.shape[0]

    @property
    def n_features(self) -> int:
        return self.x.shape[1]

    @property
    def n_outputs(self) -> int:
        """Score columns per fit: one for binary and for multiple choice."""
        return 1 if self.offsets is not None or self.n_classes == 2 else self.n_classes

    @property
    def n_columns(self) -> int:
        """Coefficients per score column."""
        return self.n_features + (self.offsets is None)

    def blocks(self, block_rows: int) -> list[Block]:
        """Cut the examples into blocks of about `block_rows` rows; an example is never split."""
        if self.x.device.type != "cpu":
            block_rows = max(block_rows, GPU_BLOCK_ROWS)
        size = max(1, block_rows * self.n_examples // max(1, self.x.shape[0]))
        edges = [*range(0, self.n_examples, size), self.n_examples]
        rows = edges if self.offsets is None else self.offsets[edges].tolist()
        return [Block(*edges[i : i + 2], *rows[i : i + 2]) for i in range(len(edges) - 1)]

    def take(self, examples: Tensor) -> Data:
        """Copy of some examples; `examples` (n,) int64 on the device of `x`."""
        if self.offsets is None:
            return Data(self.x[examples], self.y[examples], None, self.n_classes)
        sizes = self.offsets.diff()[examples]
        offsets = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        rows = torch.arange(int(offsets[-1]), device=self.x.device)
        rows += torch.repeat_interleave(self.offsets[examples] - offsets[:-1], sizes)
        return Data(self.x[rows], self.y[examples], offsets, self.n_classes)

    def candidate_slots(self, block: Block) -> tuple[Tensor, Tensor, int]:
        """Example within the block and place within the example of each row, and the largest candidate count."""
        assert self.offsets is not None
        sizes = self.offsets[block.first : block.last + 1].diff()
        example = torch.repeat_interleave(torch.arange(len(sizes), device=sizes.device), sizes)
        starts = self.offsets[block.first : block.last] - block.first_row
        place = torch.arange(len(example), device=sizes.device) - starts[example]
        return example, place, int(sizes.max())

    def scores(self, block: Block, coefficients: Tensor) -> Tensor:
        """Scores of a block, (examples, n_outputs, n_fits); for multiple choice (examples, candidates, n_fits).

        `coefficients` is (n_outputs, n_fits, n_columns) and sets the precision. Missing candidates score -inf.
        """
        n_outputs, n_fits, _ = coefficients.shape
        x = self.x[block.first_row : block.last_row].to(coefficients.dtype)
        flat = coefficients.reshape(n_outputs * n_fits, -1)
        if self.offsets is None:
            return torch.addmm(flat[:, -1], x, flat[:, :-1].T).view(-1, n_outputs, n_fits)
        example, place, width = self.candidate_slots(block)
        padded = x.new_full((block.last - block.first, width, n_fits), -torch.inf)
        padded[example, place] = x @ flat.T
        return padded


@contextlib.contextmanager
def block_threads(device: torch.device | str) -> Iterator[Callable[..., Iterable]]:
    """Give a `map` that spreads blocks over torch's threads, one BLAS thread each, results in order.

    Inside, torch's own thread count is one and float32 products are not cut to fewer bits; both settings are torch's
    for the whole process and are put back at the end. On a GPU it is the plain `map`.
    """
    n_threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    alone = n_threads == 1 or torch.device(device).type != "cpu"
    torch.set_float32_matmul_precision("highest")
    torch.set_num_threads(1)
    try:
        if alone:
            yield map
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                yield pool.map
    finally:
        torch.set_num_threads(n_threads)
        torch.set_float32_matmul_precision(precision)


def _losses(data: Data, block: Block, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Log loss (examples, n_fits) and its derivative by the scores, shaped as `scores` (in nats)."""
    y = data.y[block.first : block.last]
    if data.offsets is None and data.n_classes == 2:
        sign = (2 * y - 1).to(scores.dtype).view(-1, 1, 1)
        against = -sign * scores
        return functional.softplus(against)[:, 0], -sign * torch.sigmoid(against)
    log_share = torch.log_softmax(scores, dim=1)
    right = y.view(-1, 1, 1).expand(-1, 1, scores.shape[2])
    loss = -log_share.gather(1, right)[:, 0]
    residual = log_share.exp_()
    residual.scatter_add_(1, right, residual.new_full((), -1.0).expand(right.shape))
    return loss, residual


@dataclass(frozen=True)
class Objective:
    """C * (sum of log losses over each fit's subset) + 0.5 * ||weights||^2, for many fits.

    Attributes
    ----------
    data : Data
    in_subset : Tensor
        (n_examples, n_fits) bool, True where the example is in the fit's training subset.
    C : float
        Inverse strength of the penalty, as in scikit-learn.
    block_rows : int
    run : callable
        `map` of `block_threads`.
    """

    data: Data
    in_subset: Tensor
    C: float
    block_rows: int
    run: Callable[..., Iterable]

    def evaluate(self, coefficients: Tensor, fits: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Objective (n,) and gradient (n, n_outputs, n_columns), float64, at `coefficients` of the fits `fits` (n,)."""
        by_output = coefficients.transpose(0, 1).contiguous()
        low = by_output.to(dtype)
        blocks = self.data.blocks(self.block_rows)
        share = -(-len(blocks) // MAX_PARTIAL_SUMS)
        groups = [blocks[i : i + share] for i in range(0, len(blocks), share)]
        everyone = len(fits) == self.in_subset.shape[1]
        columns = None if everyone else fits
        value = coefficients.new_zeros(len(coefficients))
        gradient = torch.zeros_like(by_output)
        for part_value, part_gradient in self.run(lambda group: self._sum_blocks(group, low, columns), groups):
            value += part_value
            gradient += part_gradient
        weights = by_output[:, :, : self.data.n_features]
        gradient *= self.C
        gradient[:, :, : self.data.n_features] += weights
        return self.C * value + 0.5 * weights.square().sum((0, 2)), gradient.transpose(0, 1).contiguous()

    def _sum_blocks(self, blocks: list[Block], coefficients: Tensor, columns: Tensor | None) -> tuple[Tensor, Tensor]:
        """Loss (n_fits,) and its gradient (n_outputs, n_fits, n_columns), summed over some blocks in float64."""
        value = coefficients.new_zeros(coefficients.shape[1], dtype=torch.float64)
        gradient = torch.zeros_like(coefficients, dtype=torch.float64)
        n_features = self.data.n_features
        for block in blocks:
            included = self.in_subset[block.first : block.last]
            included = (included if columns is None else included[:, columns]).to(coefficients.dtype)
            loss, residual = _losses(self.data, block, self.data.scores(block, coefficients))
            value += loss.mul_(included).sum(0, dtype=torch.float64)
            residual.mul_(included[:, None, :])
            if self.data.offsets is not None:
                example, place, _ = self.data.candidate_slots(block)
                residual = residual[example, place].unsqueeze(1)
            else:
                gradient[:, :, n_features] += residual.sum(0, dtype=torch.float64)
            x = self.data.x[block.first_row : block.last_row].to(coefficients.dtype)
            product = residual.view(len(x), -1).T @ x
            gradient[:, :, :n_features] += product.view(*coefficients.shape[:2], n_features)
        return value, gradient
