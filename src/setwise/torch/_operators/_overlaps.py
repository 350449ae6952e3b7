"""The mean of the overlap losses on CUDA, with one kernel forward and one backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from setwise.torch import _cuda
from setwise.torch._cuda._overlaps import Overlaps, Quotient, fits
from setwise.torch._inputs._sets import HALVES
from setwise.torch._inputs._softmax_options import SoftmaxOptions
from setwise.torch._operators._eager import is_eager

Again = Callable[[Tensor], Tensor]
"""Computes the same mean of an input in plain torch."""


class MeanOfOverlaps(torch.autograd.Function):
    """The mean over the sets of a quotient of sums; it keeps the input and the slopes."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, target: Tensor, call: Overlaps, again: Again) -> Tensor:
        """Return the mean. The backward pass reads both tensors, so torch checks for writes."""
        ctx.save_for_backward(input, target)
        ctx.call, ctx.again = call, again
        with _cuda.on(input.device):
            total, ctx.slopes = call.mean()
        return total

    @staticmethod
    def backward(ctx: Any, *upwards: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient in the logits."""
        input, _ = ctx.saved_tensors
        if torch.is_grad_enabled():  # true if create_graph=True
            value = ctx.again(input)
            (slope,) = torch.autograd.grad(value, input, upwards[0], create_graph=True)
        else:
            with _cuda.on(input.device):
                slope = ctx.call.gradient(ctx.slopes, upwards[0]).view(input.shape)
        return slope, None, None, None


def _read(input: Tensor, target: Tensor, sigmoid: bool) -> tuple[Tensor, Tensor] | None:
    """Return logits (N, C, P) and labels (N, P) or (N, C, P); None for other inputs."""
    n_images, n_classes = input.shape[:2]
    of_pixels = input.shape[:1] + input.shape[2:]
    if target.shape == input.shape and (sigmoid or target.is_floating_point()):
        target = target.reshape(n_images, n_classes, -1)
    elif target.is_floating_point():
        return None
    elif target.shape in (of_pixels, (n_images, 1, *of_pixels[1:])):
        target = target.reshape(n_images, -1)
    else:
        return None
    logits = input.detach().reshape(n_images, n_classes, -1)
    if not logits.transpose(1, 2).is_contiguous():
        logits = logits.contiguous()
    return logits, (target.float() if target.dtype in HALVES else target).contiguous()


def mean_of_overlaps(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    activation: str,
    options: SoftmaxOptions,
    quotient: Quotient,
    again: Again,
) -> Tensor | None:
    """Return the mean over images of the mean over classes; None if no kernel can run."""
    if not options.is_plain or input.ndim < 2 or not is_eager(input) or not fits(input, target):
        return None
    if weight is not None and weight.requires_grad:
        return None
    read = _read(input, target, activation == "sigmoid")
    if read is None:
        return None
    call = Overlaps(
        *read,
        options.ignore_index,
        [] if isinstance(options.classes, str) else options.named(input.shape[1]),
        options.classes == "present",
        weight,
        options.per_image,
        activation,
        quotient,
    )
    if not call.can_run():
        return None
    mean: Tensor = MeanOfOverlaps.apply(input, target, call, again)  # type: ignore[no-untyped-call]
    return mean
