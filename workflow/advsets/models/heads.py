"""From the last layer to scores: pooling, the head of our own, scores grouped by example.

Conventions
-----------
A sequence is one text, pair, or context with one candidate; an example is one sequence, or
n candidates' sequences that stand next to each other. Hidden states have shape
(n_sequences, length, hidden), masks (n_sequences, length) with 1 for a real token.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

POOLINGS = ("first", "mean", "last")


def pool(hidden: Tensor, mask: Tensor, pooling: str) -> Tensor:
    """One vector per sequence, shape (n_sequences, hidden), whichever side the padding is on.

    Parameters
    ----------
    hidden : Tensor
        Last layer, shape (n_sequences, length, hidden).
    mask : Tensor
        1 for real tokens, shape (n_sequences, length).
    pooling : str
        `first` or `last` unmasked token, or the `mean` over unmasked tokens.
    """
    if pooling == "mean":
        weights = mask.to(hidden.dtype).unsqueeze(-1)
        return (hidden * weights).sum(1) / weights.sum(1)
    first, last = mask.long().argmax(1), mask.shape[1] - 1 - mask.long().flip(1).argmax(1)
    position = first if pooling == "first" else last
    return hidden[torch.arange(hidden.shape[0], device=hidden.device), position]


class Head(nn.Module):
    """Dropout, dense layer, tanh, dropout, linear layer: (n_sequences, n_features) to (n_sequences, n_outputs)."""

    def __init__(self, n_features: int, n_outputs: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.dense = nn.Linear(n_features, n_features)
        self.out = nn.Linear(n_features, n_outputs)

    def forward(self, vectors: Tensor) -> Tensor:
        hidden = torch.tanh(self.dense(self.dropout(vectors)))
        return self.out(self.dropout(hidden))


def group_scores(scores: Tensor, counts: Tensor) -> Tensor:
    """Scores by example: a softmax over a row is then over that example's candidates alone.

    Parameters
    ----------
    scores : Tensor
        One score per candidate, shape (n_sequences, 1).
    counts : Tensor
        Candidates of each example, shape (n_examples,).

    Returns
    -------
    Tensor
        Shape (n_examples, max(counts)); minus infinity where an example has no candidate.
    """
    return group_sequences(scores.squeeze(-1), counts, -torch.inf)


def group_sequences(values: Tensor, counts: Tensor, fill: float) -> Tensor:
    """Values by example, (n_sequences, ...) to (n_examples, max(counts), ...); `fill` where there is no sequence."""
    rows = torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)
    columns = torch.arange(len(rows), device=counts.device) - (counts.cumsum(0) - counts)[rows]
    grouped = values.new_full((len(counts), int(counts.max()), *values.shape[1:]), fill)
    return grouped.index_put((rows, columns), values)
