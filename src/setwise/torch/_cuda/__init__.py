"""Kernels for CUDA tensors: losses l(n, q) = (a n + q) / (c m - d n + q), such as Jaccard.

CUDA C++, compiled by the NVRTC that comes with torch when a kernel is first used; where that cannot
be had, the exact path runs in Triton. What no kernel does is answered with ``NotImplemented``.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from importlib import metadata
from typing import Any

import torch

from setwise.torch._cuda import _sorted, _triton
from setwise.torch._cuda._hinge import hinge_of_buckets
from setwise.torch._cuda._scale import scaled
from setwise.torch._cuda._softmax import softmax_of_buckets, weights_of
from setwise.torch._inputs._sets import HALVES

__all__ = ["has_triton", "lovasz_ratio", "lovasz_softmax", "on", "scaled"]


@cache
def has_triton() -> bool:
    """Whether there is a Triton that the kernels are tested with."""
    try:
        version = metadata.version("triton")
    except metadata.PackageNotFoundError:
        return False
    return tuple(int(part) for part in version.split(".")[:2]) >= (3, 6)


def on(device: torch.device) -> Any:
    """Makes a device the current one; costs nothing where it is that already."""
    return (
        nullcontext() if device.index == torch.cuda.current_device() else torch.cuda.device(device)
    )


def lovasz_ratio(
    scores: torch.Tensor,
    target: torch.Tensor,
    ignore: float,
    a: float,
    c: float,
    d: float,
    buckets: int,
) -> Any:
    """Values (S,) and gradient (S, n) of the Lovász hinge, case 1; 0 buckets: exact.

    Scores of 16 bits are always counted: they have few values, so that it is exact.
    """
    if target.dtype in HALVES:
        target = target.float()
    with on(scores.device):
        if buckets or scores.dtype in HALVES:
            answer = hinge_of_buckets(scores, target, ignore, a, c, d, buckets or 8192)
            if answer is not NotImplemented:
                return answer
        answer = _sorted.hinge_of_sort(scores, target, ignore, a, c, d)
        if answer is NotImplemented and has_triton():
            return _triton.hinge_of_sort(scores, target, ignore, a, c, d)
        return answer


def lovasz_softmax(
    logits: torch.Tensor,
    target: torch.Tensor,
    ignore: int | None,
    classes: list[int],
    present: bool,
    weight: torch.Tensor | None,
    per_image: bool,
    a: float,
    c: float,
    d: float,
    buckets: int,
    from_logits: bool,
) -> Any:
    """Total () and gradient of the Lovász softmax loss; 0 buckets: exact."""
    if not logits.numel():
        return NotImplemented
    with on(logits.device):
        weights = weights_of(classes, weight, logits.shape[1], logits.device)
        if buckets:
            answer = softmax_of_buckets(
                logits, target, ignore, weights, present, per_image, a, c, d, buckets, from_logits
            )
            if answer is not NotImplemented:
                return answer
        exact = (logits, target, ignore, weights, present, per_image, a, c, d, from_logits)
        answer = _sorted.softmax_of_sort(*exact)
        if answer is NotImplemented and has_triton():
            return _triton.softmax_of_sort(*exact)
        return answer
