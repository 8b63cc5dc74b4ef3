"""What lets a large model learn on a small device: a batch in several passes, layers computed twice.

Conventions
-----------
A batch is what one optimiser step learns from. It is cut into passes, in its order; each pass
adds its gradient, weighted by its share of the batch's examples, so that the sum is the whole
batch's gradient up to rounding. Dropout is drawn anew for each pass, keyed by where it begins.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.checkpoint import checkpoint

from advsets.errors import UserError
from advsets.models.batching import Tokenised
from advsets.models.classifier import Classifier
from advsets.models.dropout import light_dropout

_LAYERS = ("AlbertLayer",)
"""Layers of classes for which transformers has no such switch."""


@dataclass(frozen=True)
class Pass:
    """Examples of one forward and backward pass: `rows`, which begin at position `start` of their batch."""

    start: int
    rows: NDArray[np.int64]


def cut_passes(data: Tokenised, batch: NDArray[np.int64], n_tokens: int | None, n_examples: int) -> list[Pass]:
    """Cut a batch into passes of at most `n_tokens` padded tokens and `n_examples` examples, one at least.

    Parameters
    ----------
    batch : array of shape (n_examples_of_batch,)
        Positions in `data`.
    n_tokens : int, optional
        None: no limit.
    """
    if n_tokens is None and len(batch) <= n_examples:
        return [Pass(0, batch)]
    passes, start, longest, n_sequences = [], 0, 0, 0
    for stop, row in enumerate(batch):
        lengths = np.diff(data.starts[data.offsets[row] : data.offsets[row + 1] + 1])
        longest, n_sequences = max(longest, int(lengths.max())), n_sequences + len(lengths)
        too_long = n_tokens is not None and longest * n_sequences > n_tokens
        if stop > start and (too_long or stop - start == n_examples):
            passes.append(Pass(start, batch[start:stop]))
            start, longest, n_sequences = stop, int(lengths.max()), len(lengths)
    return [*passes, Pass(start, batch[start:])]


def recompute_layers(classifier: Classifier, device: torch.device) -> None:
    """Let the network keep each layer's input alone, and compute the layer again in the backward pass.

    Dropout draws the same values both times: torch puts its generators back, and light dropout,
    which autograd leaves behind like any torch function mode, is entered again.

    Raises
    ------
    UserError
        If the network's class has no layers that can be computed again.
    """

    def contexts() -> tuple[contextlib.AbstractContextManager[Any], contextlib.AbstractContextManager[Any]]:
        return contextlib.nullcontext(), light_dropout(device)

    how: dict[str, Any] = {"use_reentrant": False, "context_fn": contexts}
    network = classifier.network
    by_hand = [module for module in network.modules() if type(module).__name__ in _LAYERS]
    for layer in by_hand:
        layer.forward = partial(checkpoint, layer.forward, **how)
    if by_hand:
        return
    try:
        network.activation_checkpointing_enable(how)
    except ValueError:
        raise UserError(
            f"fine_tune.gradient_checkpointing: true: {type(network).__name__} cannot compute its layers again;"
            " allowed: false; set it in the row of this model, and lower fine_tune.tokens_per_pass instead"
        ) from None
