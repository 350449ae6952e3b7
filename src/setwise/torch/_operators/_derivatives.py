r"""Derivatives by ``torch.func``, forward mode and ``vmap``, and compositions of these.

A surrogate of scores is piecewise linear, and so is the value of a class as a function of its
probabilities. With mu the gradient that was computed with the value, the derivative along v is
:math:`\langle \mu, v \rangle`, and mu is constant almost everywhere. So the functions here keep mu
as an output without a derivative. Second derivatives are zero for a surrogate of scores, and those
of the softmax for ``lovasz_softmax``.

Custom operators do not support this: in forward mode their derivative would silently be zero. The
compiler cannot trace the functions here, so a transform ends the graph and runs eagerly.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import torch
from torch import Tensor

from setwise.torch._operators._eager import times
from setwise.torch._operators._scores import hinge
from setwise.torch._operators._softmax import probabilities, slopes_of_classes


def _batched(info: Any, dims: tuple[Any, ...], *tensors: Tensor) -> tuple[Tensor, ...]:
    """Return the tensors with the batch dimension first, inserted where it is missing."""
    return tuple(
        tensor.expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
        for tensor, dim in zip(tensors, dims, strict=False)
    )


def _own(tensor: Tensor) -> Tensor:
    """Return a tensor that is not a view, because forward mode returns no views."""
    return tensor.clone() if tensor._is_view() else tensor


def _keep(ctx: Any, gradient: Tensor) -> None:
    """Save the gradient for backward and forward mode, and mark it as not differentiable."""
    ctx.mark_non_differentiable(gradient)
    ctx.save_for_backward(gradient)
    ctx.save_for_forward(gradient)


class Hinge(torch.autograd.Function):
    """``setwise::hinge``: values (S,) and gradient (S, n) of scores and targets (S, n)."""

    @staticmethod
    def forward(scores: Tensor, target: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
        """Call the operator."""
        values, gradient = hinge(scores.contiguous(), target.contiguous(), *rest)
        return _own(values), _own(gradient)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        """Save the gradient."""
        _keep(ctx, output[1])
        ctx.dtype, ctx.rest = inputs[0].dtype, len(inputs) - 1

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient times the slopes."""
        return (times(ctx.saved_tensors[0], slopes[0], ctx.dtype), *(None,) * ctx.rest)

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor) -> tuple[Tensor, None]:
        """Return <gradient, tangent> of each set."""
        (gradient,) = ctx.saved_tensors
        return (gradient * tangents[0].to(gradient.dtype)).sum(1), None

    @staticmethod
    def vmap(info: Any, in_dims: Any, scores: Tensor, target: Tensor, *rest: Any) -> Any:
        """Treat a batch of rows as further rows."""
        x, y = _batched(info, in_dims, scores, target)
        values, gradient = Hinge.apply(x.flatten(0, 1), y.flatten(0, 1), *rest)  # type: ignore[no-untyped-call]
        return (values.view(x.shape[:2]), gradient.view(x.shape)), (0, 0)


class ValuesOfClasses(torch.autograd.Function):
    """``setwise::probabilities``: values (T, K) and gradient (N, K, P) of probabilities (N, C, P).

    T is N with ``per_image``, else 1.
    """

    @staticmethod
    def forward(p: Tensor, target: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
        """Call the operator."""
        values, gradient = probabilities(p.contiguous(), target.contiguous(), *rest)
        return _own(values), _own(gradient)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        """Save the gradient."""
        _keep(ctx, output[1])
        ctx.n_classes, ctx.rest = inputs[0].shape[1], len(inputs) - 1
        ctx.classes, ctx.per_image = inputs[4], inputs[5]

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient times the slopes, at its classes."""
        (gradient,) = ctx.saved_tensors
        whole = slopes_of_classes(gradient, slopes[0], ctx.classes, ctx.n_classes)
        return (whole, *(None,) * ctx.rest)

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor) -> tuple[Tensor, None]:
        """Return <gradient, tangent> of each set."""
        (gradient,) = ctx.saved_tensors
        along = gradient * tangents[0][:, ctx.classes]
        return along.sum(2) if ctx.per_image else along.sum((0, 2))[None], None

    @staticmethod
    def vmap(info: Any, in_dims: Any, p: Tensor, target: Tensor, *rest: Any) -> Any:
        """Treat a batch of images as further images, and a batch of sets as one image per set."""
        loss, ignore, classes, per_image, buckets = rest
        x, y = _batched(info, in_dims, p, target)
        size, images, _, pixels = x.shape
        if per_image:
            x, y = x.flatten(0, 1), y.flatten(0, 1)
        else:
            x, y = x.transpose(1, 2).flatten(2), y.flatten(1)
        values, gradient = ValuesOfClasses.apply(x, y, loss, ignore, classes, True, buckets)  # type: ignore[no-untyped-call]
        if per_image:
            shape = (size, images, len(classes), pixels)
            return (values.view(size, images, -1), gradient.view(shape)), (0, 0)
        gradient = gradient.view(size, len(classes), images, pixels).transpose(1, 2)
        return (values[:, None], gradient), (0, 0)


def untraced(function: Any) -> Any:
    """Hide the function from the compiler, without loading the compiler."""
    return _hidden(function) if "torch._dynamo" in sys.modules else function


@cache
def _hidden(function: Any) -> Any:
    return sys.modules["torch._dynamo"].disable(function)


def hinge_values(*arguments: Any) -> Tensor:
    """Return values (S,) that support every derivative."""
    values: Tensor = untraced(Hinge.apply)(*arguments)[0]
    return values


def class_values(*arguments: Any) -> Tensor:
    """Return values (T, K) that support every derivative."""
    values: Tensor = untraced(ValuesOfClasses.apply)(*arguments)[0]
    return values


# This has the effect of torch.compiler.disable without loading the compiler: a graph ends at a
# transform of a loss.
hinge_values._torchdynamo_disable = True  # type: ignore[attr-defined]
class_values._torchdynamo_disable = True  # type: ignore[attr-defined]
