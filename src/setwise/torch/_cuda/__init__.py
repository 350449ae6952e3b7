"""Kernels for CUDA tensors: losses l(n, q) = (a n + q) / (c m - d n + q), such as Jaccard.

The kernels are CUDA C++ in ``_kernels``, and in ``_fields`` for random fields. The NVRTC that comes
with torch compiles them when they are first used. A function returns ``NotImplemented`` if no
kernel can run. Then plain torch computes the answer.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch

from setwise.torch._cuda import _sorted
from setwise.torch._cuda._hinge import hinge_of_buckets
from setwise.torch._cuda._scale import scaled
from setwise.torch._cuda._softmax import softmax_of_buckets, weights_of
from setwise.torch._inputs._sets import HALVES

__all__ = ["lovasz_ratio", "lovasz_softmax", "on", "scaled"]


def on(device: torch.device) -> Any:
    """Make ``device`` the current device, at no cost if it is the current one already."""
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
    """Return values (S,) and gradient (S, n) of the Lovász hinge; 0 buckets mean sorting.

    Scores of 16 bits are always counted in buckets, which is exact because they have few values.
    """
    if target.dtype in HALVES:
        target = target.float()
    with on(scores.device):
        if buckets or scores.dtype in HALVES:
            answer = hinge_of_buckets(scores, target, ignore, a, c, d, buckets or 8192)
            if answer is not NotImplemented:
                return answer
        return _sorted.hinge_of_sort(scores, target, ignore, a, c, d)


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
    """Return the total and the gradient of the Lovász softmax loss; 0 buckets mean sorting."""
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
        return _sorted.softmax_of_sort(
            logits, target, ignore, weights, present, per_image, a, c, d, from_logits
        )
