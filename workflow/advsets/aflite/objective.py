"""Loss and gradient of many regularised linear classifiers in one pass over the features.

Conventions
-----------
Axes: `n_rows` (rows of `x`), `n_examples`, `n_fits`, `n_outputs` (score columns per fit), `n_columns`
(`n_features`, plus one for the intercept, last; multiple choice has none).
Three classes or more: the penalty makes the coefficients of all classes add up to zero, so a fit has one output less
than classes, its coefficients by an orthonormal (Helmert) basis of the vectors that add up to zero (`contrasts`).
Multiple choice keeps the candidates of example i in rows `offsets[i]:offsets[i + 1]`; otherwise a row is an example.
Scores of a block are laid out (rows, n_outputs, n_fits), so that every operation runs along `n_fits`.
Products run in float32 or float64 on one block of rows at a time; sums over blocks are float64.
Blocks are shared out to threads, each with one BLAS thread, and added up in a fixed order: the result is the
same for any number of threads.
Masked form: one product serves all fits, and the residuals of examples outside a fit's subset are set to zero.
Gathered form: fits go in groups, and each group's product has the examples of its subsets alone; where subsets are a
small share of the examples this saves more arithmetic than narrow products lose. One group of all fits is the masked
form, less the examples that no fit uses.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.nn import functional

Item = TypeVar("Item")
Result = TypeVar("Result")
MAX_PARTIAL_SUMS = 64
SUMMED_ROWS = 2048
"""Rows over which a gradient may be summed in the precision of its products before float64 takes over."""
GPU_BLOCK_ROWS = 32_768
"""Least rows per block on a GPU, which has no cache to stay in and calls to save."""
GATHERED_SHARE = 0.9
"""Examples of a block are taken out of it where fewer than this share of them are in a subset."""


class Block(NamedTuple):
    """Examples `first:last`, which hold rows `first_row:last_row` of the features."""

    first: int
    last: int
    first_row: int
    last_row: int


class Linear(NamedTuple):
    """Coefficients of many fits side by side: output k of fit f is row `k * n_fits + f`.

    `weight` is (n_outputs * n_fits, n_features), `bias` (n_outputs * n_fits,), both contiguous.
    """

    weight: Tensor
    bias: Tensor
    n_outputs: int
    n_fits: int

    @classmethod
    def of(cls, coefficients: Tensor, n_features: int) -> Linear:
        """Copy of `coefficients` (n_outputs, n_fits, n_columns); the bias is 0 where there is no intercept."""
        n_outputs, n_fits, n_columns = coefficients.shape
        flat = coefficients.reshape(-1, n_columns)
        bias = flat[:, -1] if n_columns > n_features else flat.new_zeros(len(flat))
        return cls(flat[:, :n_features].contiguous(), bias.contiguous(), n_outputs, n_fits)

    def zeros(self) -> Linear:
        """As many zeros."""
        return self._replace(weight=torch.zeros_like(self.weight), bias=torch.zeros_like(self.bias))

    def add_to(self, coefficients: Tensor) -> None:
        """Add these to a tensor shaped as that of `of`."""
        n_features = self.weight.shape[1]
        coefficients[:, :, :n_features] += self.weight.view(self.n_outputs, self.n_fits, -1)
        if coefficients.shape[2] > n_features:
            coefficients[:, :, -1] += self.bias.view(self.n_outputs, -1)


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
    def has_contrasts(self) -> bool:
        """Whether outputs are contrasts between classes: three classes or more."""
        return self.offsets is None and self.n_classes > 2

    @property
    def n_outputs(self) -> int:
        """Score columns per fit: one for binary and for multiple choice."""
        return self.n_classes - 1 if self.has_contrasts else 1

    @property
    def n_scores(self) -> int:
        """Score columns per fit once contrasts are spread over the classes."""
        return self.n_classes if self.has_contrasts else 1

    @property
    def contrast_scale(self) -> Tensor:
        """Length 1 of each basis vector (1, …, 1, -j, 0, …, 0): shape (n_outputs,) float64."""
        j = torch.arange(1, self.n_outputs + 1, dtype=torch.float64, device=self.x.device)
        return (j * (j + 1)).rsqrt() if self.has_contrasts else torch.ones_like(j)

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

    def piece(self, block: Block, examples: Tensor) -> tuple[Data, Block]:
        """Copy of the `examples` (n,) int64 of a block, counted from its first, and the block that they make up."""
        piece = self.take(block.first + examples)
        return piece, Block(0, piece.n_examples, 0, piece.x.shape[0])

    def candidate_slots(self, block: Block) -> tuple[Tensor, Tensor, int]:
        """Example within the block and place within the example of each row, and the largest candidate count."""
        assert self.offsets is not None
        sizes = self.offsets[block.first : block.last + 1].diff()
        example = torch.repeat_interleave(torch.arange(len(sizes), device=sizes.device), sizes)
        starts = self.offsets[block.first : block.last] - block.first_row
        place = torch.arange(len(example), device=sizes.device) - starts[example]
        return example, place, int(sizes.max())

    def coefficients(self, outputs: Tensor) -> Tensor:
        """Coefficients (n_fits, n_scores, n_features + 1), intercept last, of outputs (n_fits, n_outputs, n_columns).

        A gradient by outputs becomes that by coefficients in the same way.
        """
        if self.offsets is not None:
            return functional.pad(outputs, (0, 1))
        return spread(outputs * self.contrast_scale[:, None]) if self.has_contrasts else outputs

    def scores(self, block: Block, linear: Linear) -> Tensor:
        """Scores of a block, (examples, n_outputs, n_fits); for multiple choice (examples, candidates, n_fits).

        `linear` sets the precision. Missing candidates score -inf.
        """
        x = self.x[block.first_row : block.last_row].to(linear.weight.dtype)
        if self.offsets is None:
            return torch.addmm(linear.bias, x, linear.weight.T).view(-1, linear.n_outputs, linear.n_fits)
        example, place, width = self.candidate_slots(block)
        padded = x.new_full((block.last - block.first, width, linear.n_fits), -torch.inf)
        padded[example, place] = x @ linear.weight.T
        return padded


def touched_share(share: float, n_fits: int) -> float:
    """Share of the examples that are expected in one subset at least, if each of `n_fits` holds `share` of them."""
    return 1 - (1 - share) ** n_fits


def evenly(n_items: int, n_runs: int) -> list[slice]:
    """Runs of about equal length that follow each other, none of them empty; at most `n_runs`."""
    edges = [n_items * i // n_runs for i in range(n_runs + 1)]
    return [slice(a, b) for a, b in pairwise(edges) if a < b]


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


def spread(contrasts: Tensor) -> Tensor:
    """Class values (n, n_classes, …) of unscaled contrasts (n, n_classes - 1, …): contrast j sets class j apart."""
    last = contrasts.shape[1]
    out = contrasts.new_empty(len(contrasts), last + 1, *contrasts.shape[2:])
    rest = contrasts[:, last - 1]
    torch.mul(rest, -last, out=out[:, last])
    for k in range(last - 1, 0, -1):
        torch.sub(rest, contrasts[:, k - 1], alpha=k, out=out[:, k])
        rest = rest + contrasts[:, k - 1]
    out[:, 0] = rest
    return out


def gather_contrasts(by_class: Tensor) -> Tensor:
    """Transpose of `spread`: (n, n_classes - 1, …) of (n, n_classes, …)."""
    out = by_class.new_empty(len(by_class), by_class.shape[1] - 1, *by_class.shape[2:])
    total = by_class[:, 0]
    for j in range(1, by_class.shape[1]):
        if j > 1:
            total = total + by_class[:, j - 1]
        torch.sub(total, by_class[:, j], alpha=j, out=out[:, j - 1])
    return out


def _losses(data: Data, block: Block, scores: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Sum of log losses (n_fits,) float64 in nats, and its derivative by the scores, shaped as `scores`.

    `scores` of three classes or more are contrasts before their scale.
    `weight` (examples, n_fits) is 1 for the examples of a fit's subset and 0 for others.
    """
    y = data.y[block.first : block.last]
    if data.offsets is None and data.n_classes == 2:
        sign = (2 * y - 1).to(scores.dtype).view(-1, 1, 1)
        against = -sign * scores
        loss = functional.softplus(against)[:, 0].mul_(weight).sum(0, dtype=torch.float64)
        return loss, (-sign * torch.sigmoid(against)).mul_(weight[:, None, :])
    if data.has_contrasts:
        scores = spread(scores)
    right = (torch.arange(len(y), device=y.device), y)
    residual = torch.softmax(scores, dim=1)
    share = residual[right]
    loss = -share.log().mul_(weight).sum(0, dtype=torch.float64)
    if not bool(loss.isfinite().all()):
        # A share that rounds to 0 has a finite logarithm all the same.
        loss = -torch.log_softmax(scores, dim=1)[right].mul_(weight).sum(0, dtype=torch.float64)
    residual[right] = share.sub_(1)
    residual = gather_contrasts(residual) if data.has_contrasts else residual
    return loss, residual.mul_(weight[:, None, :])


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
    fits_per_group : int
        Fits that share a product.
    """

    data: Data
    in_subset: Tensor
    C: float
    block_rows: int
    run: Callable[..., Iterable]
    fits_per_group: int

    @cached_property
    def n_included(self) -> int:
        """Pairs of fit and example in its subset."""
        return int(self.in_subset.count_nonzero())

    @cached_property
    def touched_share(self) -> float:
        """Share of the examples that a group of fits is expected to touch."""
        return touched_share(self.n_included / self.in_subset.numel(), self.fits_per_group)

    @property
    def gathers(self) -> bool:
        """Whether groups of fits leave enough examples unused for gathering the others to pay."""
        return self.touched_share < GATHERED_SHARE

    def evaluate(self, coefficients: Tensor, fits: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Objective (n,) and gradient (n, n_outputs, n_columns), float64, at `coefficients` of the fits `fits` (n,).

        `fits` ascend.
        """
        by_output = coefficients.transpose(0, 1).contiguous()
        scale = self.data.contrast_scale[:, None, None]
        low = (by_output * scale).to(dtype)
        blocks = self.data.blocks(self.block_rows)
        together = max(-(-SUMMED_ROWS // self.block_rows), -(-len(blocks) // MAX_PARTIAL_SUMS))
        shares = [blocks[i : i + together] for i in range(0, len(blocks), together)]
        value = coefficients.new_zeros(len(coefficients))
        gradient = torch.zeros_like(by_output)
        for part_value, part_gradient in self.run(lambda share: self._sum_blocks(share, low, fits), shares):
            value += part_value
            gradient += part_gradient
        weights = by_output[:, :, : self.data.n_features]
        gradient *= self.C * scale
        gradient[:, :, : self.data.n_features] += weights
        return self.C * value + 0.5 * weights.square().sum((0, 2)), gradient.transpose(0, 1).contiguous()

    def _sum_blocks(self, blocks: list[Block], coefficients: Tensor, fits: Tensor) -> tuple[Tensor, Tensor]:
        """Loss (n_fits,) and its gradient (n_outputs, n_fits, n_columns), summed over some blocks in float64."""
        value = coefficients.new_zeros(coefficients.shape[1], dtype=torch.float64)
        gradient = torch.zeros_like(coefficients, dtype=torch.float64)
        for members in self._groups(fits):
            columns = fits[members]
            everyone = len(columns) == self.in_subset.shape[1]
            own = Linear.of(coefficients[:, members], self.data.n_features)
            partial, n_rows = own.zeros(), 0
            for block in blocks:
                included = self.in_subset[block.first : block.last]
                value[members] += self._add(block, included if everyone else included[:, columns], own, partial)
                n_rows += block.last_row - block.first_row
                if n_rows >= SUMMED_ROWS:
                    partial.add_to(gradient[:, members])
                    partial, n_rows = own.zeros(), 0
            if n_rows:
                partial.add_to(gradient[:, members])
        return value, gradient

    def _groups(self, fits: Tensor) -> list[slice]:
        """Runs of the fits that share a product."""
        edges = torch.arange(0, self.in_subset.shape[1] + self.fits_per_group, self.fits_per_group, device=fits.device)
        places = torch.searchsorted(fits, edges).tolist()
        return [slice(a, b) for a, b in zip(places, places[1:], strict=False) if a < b]

    def _used(self, block: Block, included: Tensor) -> tuple[Data, Block, Tensor]:
        """Data, block and `included` (examples, n_fits) of the examples in a subset, or of all where most are."""
        if self.gathers:
            used = included.any(1)
            if int(used.sum()) < GATHERED_SHARE * len(used):
                examples = used.nonzero()[:, 0]
                return *self.data.piece(block, examples), included[examples]
        return self.data, block, included

    def _add(self, block: Block, included: Tensor, linear: Linear, partial: Linear) -> Tensor:
        """Losses (n_fits,) float64 of a block's examples in their subsets; the gradient is added to `partial`.

        `included` is (examples, n_fits).
        """
        data, block, included = self._used(block, included)
        if block.last == block.first:
            return linear.bias.new_zeros(linear.n_fits, dtype=torch.float64)
        loss, residual = _losses(data, block, data.scores(block, linear), included.to(linear.weight.dtype))
        if data.offsets is not None:
            example, place, _ = data.candidate_slots(block)
            residual = residual[example, place]
        residual = residual.view(block.last_row - block.first_row, -1)
        if data.offsets is None:
            partial.bias.add_(residual.new_ones(len(residual)) @ residual)
        partial.weight.addmm_(residual.T, data.x[block.first_row : block.last_row].to(linear.weight.dtype))
        return loss
