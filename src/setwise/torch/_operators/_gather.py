"""The gathered batch of all ranks, for sets that extend over the whole batch."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

if dist.is_available() and not dist.is_initialized():
    # The first call of a custom operator loads torch's compiler, which imports the module below.
    # Its functions keep the process group of that moment as a default argument. Because of this
    # reference, destroy_process_group cannot end the group's threads, and a thread that releases a
    # tensor while the interpreter exits aborts the process ("terminate called without an active
    # exception"). The import here happens before there is a group, so the defaults are None, which
    # means the current group.
    import torch.distributed.nn.functional


class _Gather(torch.autograd.Function):
    """The concatenation of the parts of all ranks, whose gradient is that of the own part.

    Every rank computes the same loss of the same batch and returns the gradient of its own part,
    multiplied by the number of ranks: DistributedDataParallel takes the mean over the ranks, and
    the gradient of the whole batch is the sum.
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
    """Return the tensors of all ranks joined along dimension 0; ``part`` itself for one rank."""
    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        return part
    if part.ndim == 0:
        raise ValueError("across_ranks needs tensors with a dimension to join, got a scalar")
    if part.dtype == torch.bool:  # some backends send no booleans
        joined: Tensor = _Gather.apply(part.view(torch.uint8))  # type: ignore[no-untyped-call]
        return joined.view(torch.bool)
    result: Tensor = _Gather.apply(part.contiguous())  # type: ignore[no-untyped-call]
    return result
