"""Dropout on a CPU from a quarter of the random numbers.

Conventions
-----------
torch draws one number per element with a generator that takes about 7 ns each, a tenth of a
fine-tuning step. Here one 64-bit draw decides four elements, each by 16 bits of its own, so a
rate is met to within 1/131072, and what is kept is scaled by the exact inverse of its share.
Draws come from torch's default generator, one after another, whatever the thread count.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

_LEVELS = 1 << 16
_PER_DRAW = 4


def light_dropout(device: torch.device) -> contextlib.AbstractContextManager[object]:
    """Context in which networks on a CPU drop out by `drop_out`; a GPU's own dropout is as fast.

    Autograd leaves it: what computes forward passes in a backward pass must enter it again.
    """
    return _LightDropout() if device.type == "cpu" else contextlib.nullcontext()


def drop_out(values: Tensor, rate: float) -> Tensor:
    """Zero each of `values` with probability `rate` and scale the others so that means stay."""
    n_drawn = -(-values.numel() // _PER_DRAW)
    drawn = torch.empty(n_drawn, dtype=torch.int64).random_(-(2**63), None)
    levels = drawn.view(torch.int16)[: values.numel()].view(values.shape)
    n_dropped = round(rate * _LEVELS)
    if n_dropped == _LEVELS:
        return values * 0.0
    kept = (levels >= n_dropped - _LEVELS // 2).to(values.dtype)
    return values * kept.mul_(_LEVELS / (_LEVELS - n_dropped))


class _LightDropout(TorchFunctionMode):
    """Takes the calls of dropout, and of attention with dropout, that reach torch from any module."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is functional.dropout:
            return _dropout(*args, **kwargs)
        if func is functional.scaled_dot_product_attention and kwargs.get("dropout_p") and _is_plain(kwargs):
            return _attention(*args, **kwargs)
        return func(*args, **kwargs)


def _dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """As `torch.nn.functional.dropout`, but never in place: the result is what callers use."""
    return drop_out(input, p) if training and p > 0 else input


def _is_plain(kwargs: dict[str, Any]) -> bool:
    return not kwargs.get("is_causal") and not kwargs.get("enable_gqa")


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """As `torch.nn.functional.scaled_dot_product_attention` without its last two options."""
    scores = (query * (query.shape[-1] ** -0.5 if scale is None else scale)) @ key.transpose(-1, -2)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, float("-inf"))
    elif attn_mask is not None:
        scores = scores + attn_mask
    return drop_out(scores.softmax(-1), dropout_p) @ value
