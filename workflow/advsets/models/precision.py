"""Arithmetic on the device, and the check that every number is finite.

Conventions
-----------
The CPU computes in float32. On a GPU `auto` fine-tunes in bfloat16 where the device has it and
infers in float32, so that representations do not depend on the batch; TF32 stays off.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from advsets.errors import UserError, allowed

_NAMES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def prepare_device(device: str) -> torch.device:
    """Device by name (`cpu`, `cuda`, `cuda:1`, `auto`), with settings that repeat.

    Raises
    ------
    UserError
        If a GPU is asked for and none is there.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(f"device {device!r}: torch finds no GPU here; allowed: cpu; set the device to cpu or auto")
    torch.set_flush_denormal(True)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    return torch.device(device)


def half_dtype(precision: str, device: torch.device, training: bool) -> torch.dtype | None:
    """Half-precision dtype to compute in, or None for float32."""
    if device.type != "cuda" or precision == "float32":
        return None
    if precision == "auto":
        return torch.bfloat16 if training and torch.cuda.is_bf16_supported() else None
    return _NAMES[precision]


def keep_half(network: Any) -> None:
    """Keep attention of DeBERTa's first version in half precision where the network computes in it.

    Its biases are float32 and lift queries and values out of half precision; scores are then masked
    with the smallest number of the queries' type, which scores in half precision cannot hold.
    """
    for module in network.modules():
        if hasattr(module, "q_bias") and hasattr(module, "transpose_for_scores"):
            module.transpose_for_scores = partial(_in_type_of_autocast, module.transpose_for_scores)


def _in_type_of_autocast(function: Callable[[Tensor], Tensor], values: Tensor) -> Tensor:
    kind = values.device.type
    result = function(values)
    return result.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else result


def finite(
    compute: Callable[[], Tensor], owners: Sequence[str], dtype: torch.dtype | None, device: torch.device
) -> Tensor:
    """Result of `compute` in float32; tried again in float32 when half precision gave infinities.

    Parameters
    ----------
    compute : callable
        Gives a tensor with one row per sequence.
    owners : sequence of str
        `example_id` of each row, for the message.

    Raises
    ------
    UserError
        If values are not finite in float32.
    """
    with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
        values = compute()
    if dtype is not None and not bool(torch.isfinite(values).all()):
        ids = _bad_ids(values, owners)
        print(f"not finite in {dtype} for {ids}: computed again in float32", file=sys.stderr, flush=True)
        values = compute()
    if not bool(torch.isfinite(values).all()):
        raise UserError(
            f"the model gave values that are not finite for example_id {_bad_ids(values, owners)};"
            " allowed: finite values; look at these rows, or use other weights"
        )
    return values.float()


def _bad_ids(values: Tensor, owners: Sequence[str]) -> str:
    bad = (~torch.isfinite(values.flatten(1)).all(1)).nonzero().flatten().tolist()
    return allowed(dict.fromkeys(owners[i] for i in bad))


@contextlib.contextmanager
def device_errors(advice: str) -> Iterator[None]:
    """One line when the GPU runs out of memory; `advice` names the setting to lower."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise UserError(f"the GPU ran out of memory; lower {advice}, or use a GPU with more memory") from None
