"""The exact path in Triton: one sort of 32-bit keys for all sets, the rest in three kernels."""

from __future__ import annotations

from typing import Any

import torch

from setwise.torch._cuda._types import LABELS
from setwise.torch._inputs._labels import read_target, void_label

_BLOCK = 2048
_CHUNKS = 1024  # pieces of a set whose counts each program adds up by itself


def _bytes(target: torch.Tensor) -> torch.Tensor:
    return target.view(torch.uint8) if target.dtype == torch.bool else target


def _along_sorted(
    keys: torch.Tensor,
    positives: torch.Tensor,
    scale: torch.Tensor,
    gradient: torch.Tensor,
    ratio: tuple[float, float, float],
) -> torch.Tensor:
    """Value of each set, times its scale; scatters the scaled slopes of the errors."""
    from setwise.torch._cuda import _triton_kernels as kernels

    rows, n = keys.shape
    keys, order = torch.sort(keys, dim=1, descending=True)
    # A power of two, because kernels are compiled for it.
    chunk = _BLOCK << max(0, -(-n // (_BLOCK * _CHUNKS)) - 1).bit_length()
    chunks = -(-n // chunk)
    counts = torch.empty(rows, chunks, dtype=torch.int32, device=keys.device)
    partial = torch.empty(rows, chunks, dtype=torch.float64, device=keys.device)
    kernels.count_positives[chunks, rows](keys, counts, n, chunk, _BLOCK, num_warps=8)
    kernels.scatter_gains[chunks, rows](
        keys, order, positives, counts, scale, gradient, partial, n, *ratio,
        chunk=chunk, chunks_padded=1 << (chunks - 1).bit_length(), block=_BLOCK, num_warps=8,
    )  # fmt: skip
    return partial.sum(1)


def hinge_of_sort(
    scores: torch.Tensor, target: torch.Tensor, ignore: float, a: float, c: float, d: float
) -> Any:
    """Values (S,) and gradient (S, n) of the Lovász hinge of (a n + q) / (c m - d n + q)."""
    rows, n = scores.shape
    if scores.dtype == torch.float64 or target.dtype not in LABELS or not 0 < rows < 65536:
        return NotImplemented
    if not 0 < n < 2**31:
        return NotImplemented
    from setwise.torch._cuda import _triton_kernels as kernels

    read_target(target, ignore)  # its labels are looked at
    void = void_label(ignore, target.dtype)
    keys = torch.empty_like(scores, dtype=torch.int32)
    gradient = torch.empty_like(scores, dtype=torch.float32)
    blocks = -(-n // _BLOCK)
    found = torch.empty(rows, blocks, dtype=torch.int32, device=scores.device)
    kernels.hinge_keys[blocks, rows](
        scores, _bytes(target), keys, gradient, found, n, void or 0, void is not None, _BLOCK
    )
    ones = torch.ones(rows, dtype=torch.float64, device=scores.device)
    values = _along_sorted(keys, found.sum(1), ones, gradient, (a, c, d))
    return values.float(), gradient


def softmax_of_sort(
    logits: torch.Tensor,
    target: torch.Tensor,
    ignore: int | None,
    weights: torch.Tensor,
    present: bool,
    per_image: bool,
    a: float,
    c: float,
    d: float,
    from_logits: bool,
) -> Any:
    """Total () and gradient of the Lovász softmax loss; ``weights`` (C,) float64, 0 for none."""
    images, classes, pixels = logits.shape
    groups = images if per_image else 1
    group = images // groups
    if logits.dtype == torch.float64 or target.dtype not in LABELS or target.is_floating_point():
        return NotImplemented
    padded = 1 << (classes - 1).bit_length()
    if not logits.numel() or padded > 1024 or groups * classes > 65535 or images > 65535:
        return NotImplemented
    if group * pixels >= 2**31:
        return NotImplemented
    from setwise.torch._cuda import _triton_kernels as kernels

    void = void_label(ignore, target.dtype)
    device = logits.device
    shape = (groups * classes, group * pixels)
    keys = torch.empty(shape, dtype=torch.int32, device=device)
    slopes = torch.empty(shape, dtype=torch.float32, device=device)
    gradient = torch.empty_strided(
        logits.shape, logits.stride(), dtype=torch.float32, device=device
    )
    block = max(32, 4096 // padded)
    blocks = -(-pixels // block)
    found = torch.empty(groups, group * blocks, classes, dtype=torch.int32, device=device)
    labels = _bytes(target)
    kernels.softmax_keys[blocks, images](
        logits, labels, keys, slopes, found, images, pixels, group, classes, *logits.stride(),
        void or 0, void is not None, from_logits, padded, block,
    )  # fmt: skip
    positives = found.sum(1)
    counting = weights * (positives > 0) if present else weights.expand(groups, classes)
    norm = counting.sum(1, keepdim=True) * groups
    scale = torch.where(norm > 0, counting / norm, 0.0).reshape(-1)
    values = _along_sorted(keys, positives.view(-1), scale, slopes, (a, c, d))
    kernels.softmax_gradient[blocks, images](
        logits, labels, slopes, gradient, pixels, group, classes, *logits.stride(), void or 0,
        void is not None, from_logits, padded, block,
    )  # fmt: skip
    return values.sum().float(), gradient
