"""A network with a head that scores every token as the begin and as the end of an answer.

Conventions
-----------
The head is our own and the same for every class of transformers, on the last layer's state of
each token; of an encoder-decoder model these are the decoder's, which has read the whole text
through the encoder. Scores have shape (n_windows, length, 2), begin first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from advsets.models import backbone
from advsets.models.checkpoint import Checkpoint, load_checkpoint
from advsets.models.classifier import Classifier, head_dropout, made_ready
from advsets.registry import EXTRACTIVE_QA, ModelRow


class SpanHead(nn.Module):
    """Dropout and a linear layer: (n_windows, length, n_features) to (n_windows, length, 2)."""

    def __init__(self, n_features: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(n_features, 2)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.out(self.dropout(hidden))


class Reader(Classifier):
    """A bare network and a `SpanHead`; whatever the row's pooling, all tokens are read."""

    head: nn.Module

    def __init__(self, network: Any, words_only: bool) -> None:
        super().__init__(network, None, "mean", words_only)
        self.head = SpanHead(self.n_features, head_dropout(network.config))

    def scores(self, inputs: dict[str, Tensor]) -> Tensor:
        """Scores before the softmax, shape (n_windows, length, 2)."""
        return self.head(self.hidden(inputs))


def new_reader(model: ModelRow, folder: Path, config: Any) -> Reader:
    """Reader to be fine-tuned; seed torch first, as fresh weights come from its generator.

    Raises
    ------
    UserError
        If the network cannot be made as the row asks.
    """
    with backbone.as_asked(model, config):
        config = backbone.adapt_config(config, model)
        network = backbone.load_network(
            folder, config, native_head=False, random_init=model.random_init, strict_head=False
        )
        reader = Reader(network, model.n_layers == 0)
    made_ready(model, config, reader)
    return reader


def load_reader(folder: Path, device: torch.device) -> Checkpoint:
    """Checkpoint of a reader on `device`, ready to infer; errors as of `load_checkpoint`."""
    return load_checkpoint(folder, device, (EXTRACTIVE_QA,), _reader_of)


def _reader_of(network: Any, description: dict[str, Any]) -> Reader:
    return Reader(network, description["words_only"])
