"""The batch of all ranks, so that a set may reach over the whole of it."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


class _Gather(torch.autograd.Function):
    """Forward: the parts of all ranks one after the other. Backward: the own part, times ranks.

    Every rank computes the same loss of the same batch and sends back the gradient of its own part.
    DistributedDataParallel then takes the mean over the ranks: times their number, that is the sum.
    """

    @staticmethod
    def forward(ctx: Any, part: Tensor) -> Tensor:
        world, rank = dist.get_world_size(), dist.get_rank()
        own = torch.tensor([part.shape[0]], dtype=torch.int64, device=part.device)
        sizes = [torch.empty_like(own) for _ in range(world)]
        dist.all_gather(sizes, own)
        lengths = [int(size) for size in sizes]
        longest = max(lengths)
        padded = part.new_zeros((longest, *part.shape[1:]))
        padded[: part.shape[0]] = part
        everything = [torch.empty_like(padded) for _ in range(world)]
        dist.all_gather(everything, padded)
        ctx.begin, ctx.length, ctx.world = sum(lengths[:rank]), part.shape[0], world
        pieces = [piece[:length] for piece, length in zip(everything, lengths, strict=True)]
        return torch.cat(pieces)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Tensor:
        own: Tensor = slopes[0][ctx.begin : ctx.begin + ctx.length] * ctx.world
        return own


def gathered(part: Tensor) -> Tensor:
    """The tensors of all ranks, joined along dimension 0; the tensor itself where there is one."""
    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        return part
    if part.ndim == 0:
        raise ValueError("across_ranks needs tensors with a dimension to join, got a scalar")
    if part.dtype == torch.bool:  # some backends send no booleans
        joined: Tensor = _Gather.apply(part.view(torch.uint8))  # type: ignore[no-untyped-call]
        return joined.view(torch.bool)
    result: Tensor = _Gather.apply(part.contiguous())  # type: ignore[no-untyped-call]
    return result
