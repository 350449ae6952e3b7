"""The custom operators of Lovász-softmax.

``setwise::softmax`` returns the mean over classes and keeps its gradient, 4 bytes per pixel and
class. ``setwise::probabilities`` returns the value of each class, for other reductions.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from setwise.torch import _cuda
from setwise.torch._inputs._class_sets import check_probabilities, class_values, coefficients
from setwise.torch._inputs._loss_words import loss_of
from setwise.torch._operators._eager import once, times
from setwise.torch._operators._library import complete, operator
from setwise.torch._operators._scores import wide


def mean_of_classes(
    logits: Tensor,
    target: Tensor,
    loss: str,
    ignore: int | None,
    classes: list[int],
    present: bool,
    weight: Tensor | None,
    per_image: bool,
    buckets: int,
    from_logits: bool,
) -> tuple[Tensor, Tensor]:
    """Return the mean over sets of the weighted mean over classes, and its gradient (N, C, P)."""
    bare, factor = loss_of(loss)._unscaled()
    kernel: Any = getattr(_cuda, "lovasz_softmax", None)
    if logits.device.type == "cuda" and kernel is not None and bare._fraction is not None:
        answer = kernel(
            logits,
            target,
            ignore,
            classes,
            present,
            weight,
            per_image,
            *bare._fraction._constants,
            buckets,
            from_logits,
        )
        if answer is not NotImplemented:
            total, gradient = answer
            return total * factor, gradient * factor if factor != 1 else gradient
    dtype = wide(logits.dtype)
    p = torch.softmax(logits, 1, dtype=dtype) if from_logits else logits.to(dtype)
    if not from_logits:
        check_probabilities(p)
    named = classes or list(range(logits.shape[1]))
    values, gradient = class_values(p, target, bare, ignore, named, per_image, buckets)
    scales = coefficients(target, p.shape[1], ignore, named, present, weight, per_image)
    scales = factor * scales / max(len(scales), 1)
    total = torch.where(scales == 0, 0.0, scales * values).sum().to(dtype)
    gradient = gradient * scales.to(dtype)[:, :, None]
    if named != list(range(p.shape[1])):
        gradient = torch.zeros_like(p).index_copy_(
            1, torch.as_tensor(named, device=p.device), gradient
        )
    if from_logits:
        gradient = torch._softmax_backward_data(gradient, p, 1, dtype)
    return total, gradient.contiguous()


softmax = operator("setwise::softmax")(mean_of_classes)


def _shapes(
    logits: Tensor,
    target: Tensor,
    loss: str,
    ignore: int | None,
    classes: list[int],
    present: bool,
    weight: Tensor | None,
    per_image: bool,
    buckets: int,
    from_logits: bool,
) -> tuple[Tensor, Tensor]:
    dtype = wide(logits.dtype)
    return logits.new_empty((), dtype=dtype), logits.new_empty(logits.shape, dtype=dtype)


@operator("setwise::probabilities")
def probabilities(
    p: Tensor,
    target: Tensor,
    loss: str,
    ignore: int | None,
    classes: list[int],
    per_image: bool,
    buckets: int,
) -> tuple[Tensor, Tensor]:
    """Return values (T, K) of the classes and the gradient (N, K, P) for probabilities."""
    bare, factor = loss_of(loss)._unscaled()
    values, gradient = class_values(p, target, bare, ignore, classes, per_image, buckets)
    return values * factor, (gradient * factor).contiguous()


def _shapes_of_classes(
    p: Tensor,
    target: Tensor,
    loss: str,
    ignore: int | None,
    classes: list[int],
    per_image: bool,
    buckets: int,
) -> tuple[Tensor, Tensor]:
    return p.new_empty((p.shape[0] if per_image else 1, len(classes))), p.new_empty(
        (p.shape[0], len(classes), p.shape[2])
    )


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(output[1])
    ctx.mark_non_differentiable(output[1])
    ctx.dtype, ctx.from_logits = inputs[0].dtype, inputs[-1]


def _backward(ctx: Any, slope: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    gradient = times(ctx.saved_tensors[0], slope, ctx.dtype)
    return (once(gradient) if ctx.from_logits else gradient, *(None,) * 9)


def _keep_classes(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(output[1])
    ctx.mark_non_differentiable(output[1])
    ctx.classes, ctx.n_classes = inputs[4], inputs[0].shape[1]


def _backward_of_classes(ctx: Any, slopes: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    (gradient,) = ctx.saved_tensors
    return (slopes_of_classes(gradient, slopes, ctx.classes, ctx.n_classes), *(None,) * 6)


def slopes_of_classes(
    gradient: Tensor, slopes: Tensor, classes: list[int], n_classes: int
) -> Tensor:
    """Return (N, C, P): gradient (N, K, P) times slopes (T, K) at its classes, zero elsewhere."""
    whole = gradient.new_zeros((gradient.shape[0], n_classes, gradient.shape[2]))
    where = torch.tensor(classes, device=gradient.device)
    return whole.index_copy(1, where, slopes[:, :, None] * gradient)


complete(softmax, _shapes, _backward, _keep)
complete(probabilities, _shapes_of_classes, _backward_of_classes, _keep_classes)
