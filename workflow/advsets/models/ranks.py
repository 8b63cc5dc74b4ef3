"""This process among those that share one job, one per device: which it is, and sums over all.

Conventions
-----------
Processes of a job are its ranks, from 0; a job in one process has rank 0 alone, and nothing here
costs anything. All ranks hold the same weights, and reach each function here equally often.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import torch
from torch import Tensor, distributed, nn

_BUCKET = 1 << 25
"""Numbers that are summed over the ranks in one call: 128 MiB of float32."""
_PATIENCE = timedelta(days=2)
"""Ranks wait for each other as long as the job may take: who starts them sees when one has died."""
_LOOPBACK = {"linux": "lo", "darwin": "lo0"}


def join(rank: int, n_ranks: int, device: str, meeting: Path) -> None:
    """Become one of `n_ranks` processes on this machine, which meet through the file `meeting`."""
    if sys.platform in _LOOPBACK:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", _LOOPBACK[sys.platform])
    if device.startswith("cuda"):
        torch.cuda.set_device(device)
    backend = "cpu:gloo,cuda:nccl" if device.startswith("cuda") else "gloo"
    distributed.init_process_group(
        backend, init_method=f"file://{meeting}", rank=rank, world_size=n_ranks, timeout=_PATIENCE
    )


def leave() -> None:
    """End what `join` began."""
    distributed.destroy_process_group()


def _are_several() -> bool:
    return distributed.is_available() and distributed.is_initialized()


def n_ranks() -> int:
    """Processes that share this job."""
    return distributed.get_world_size() if _are_several() else 1


def rank() -> int:
    """Number of this process among them."""
    return distributed.get_rank() if _are_several() else 0


def is_first() -> bool:
    """Whether this process is the one that writes and tells."""
    return rank() == 0


def tell(line: str) -> None:
    """Write a line to stderr, once for all ranks."""
    if is_first():
        print(line, file=sys.stderr, flush=True)


def wait_for_all() -> None:
    """Go on when all ranks are here."""
    sum_values(0.0)


def sum_values(*values: float) -> list[float]:
    """Each value summed over the ranks, in float64."""
    if not _are_several():
        return list(values)
    sums = torch.tensor(values, dtype=torch.float64)
    distributed.all_reduce(sums)
    return sums.tolist()


def sum_gradients(parameters: Sequence[nn.Parameter]) -> None:
    """Give every rank the sum of all ranks' gradients; a parameter that none of them used keeps none."""
    if not _are_several():
        return
    used = torch.tensor([p.grad is not None for p in parameters], dtype=torch.int32)
    distributed.all_reduce(used)
    for bucket in _buckets([p for p, n in zip(parameters, used.tolist(), strict=True) if n > 0]):
        flat = torch.cat([_gradient(p).reshape(-1) for p in bucket])
        distributed.all_reduce(flat)
        for parameter, part in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
            parameter.grad = part.view_as(parameter)


def _gradient(parameter: nn.Parameter) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _buckets(parameters: Sequence[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """Runs of parameters of `_BUCKET` numbers together, or one parameter."""
    bucket: list[nn.Parameter] = []
    for parameter in parameters:
        if bucket and sum(p.numel() for p in bucket) + parameter.numel() > _BUCKET:
            yield bucket
            bucket = []
        bucket.append(parameter)
    if bucket:
        yield bucket
