"""The last layer at the first token alone, where nothing after it reads another.

Conventions
-----------
Attention of the last layer still sees every token. What follows it works on each token by
itself, three quarters of a layer's arithmetic, so the first token's vector is the same.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

CLASSES = ("bert", "camembert", "deberta", "deberta-v2", "electra", "roberta", "xlm-roberta")
"""`model_type` of networks whose last module on all tokens is `encoder.layer[-1].attention`."""


def keep_first_token(network: Any) -> bool:
    """Let `network` compute its last layer's output at the first token only, if its class is known.

    Returns
    -------
    bool
        Whether it does: its `last_hidden_state` then has shape (n_sequences, 1, hidden).
    """
    if network.config.model_type not in CLASSES:
        return False
    encoder = network.base_model.encoder
    mixes_tokens_later = getattr(encoder, "conv", None) is not None and len(encoder.layer) == 1
    if len(encoder.layer) == 0 or mixes_tokens_later:
        return False
    encoder.layer[-1].attention.output.register_forward_pre_hook(_first_of_each)
    return True


def _first_of_each(module: Any, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Attention's output and the layer's input, each of shape (n_sequences, length, hidden), cut to length 1."""
    return tuple(tensor[:, :1] for tensor in inputs)
