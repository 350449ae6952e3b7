"""CUDA tensors outside ``torch.compile``: one node in the graph and no more calls than it takes.

A custom operator with its autograd registration costs more host time than the kernels of a million
pixels take. Its autograd.Function does the same; a compiler would have to look into it, so that it
never sees it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from setwise.torch import _cuda
from setwise.torch._evaluate import evaluate
from setwise.torch._names import loss_of


def is_eager(tensor: Tensor) -> bool:
    """Whether a tensor lies on a CUDA device and no compiler, tracer or wrapper is at work."""
    return tensor.is_cuda and type(tensor) is Tensor and not torch.compiler.is_compiling()


def times(gradient: Tensor, slopes: Tensor, dtype: torch.dtype) -> Tensor:
    """gradient (S, ...) times slopes (S,) or (), in ``dtype``; itself differentiable."""
    if is_eager(gradient) and not torch.is_grad_enabled():
        answer = _cuda.scaled(gradient, slopes, dtype)
        if isinstance(answer, Tensor):
            return answer
    if slopes.ndim:
        slopes = slopes.view(-1, *(1,) * (gradient.ndim - 1))
    return (slopes * gradient).to(dtype)


class OneSet(torch.autograd.Function):
    """The surrogate of all elements as one set, a scalar."""

    @staticmethod
    def forward(
        ctx: Any,
        input: Tensor,
        target: Tensor,
        surrogate: str,
        loss: str,
        ignore: float,
        buckets: int,
        scale: float,
    ) -> Tensor:
        """The value; the gradient is kept."""
        rows = (input.reshape(1, -1), target.reshape(1, -1))
        values, gradient = evaluate(surrogate, loss_of(loss), *rows, ignore, buckets, scale)
        ctx.save_for_backward(gradient)
        ctx.like = (input.shape, input.dtype)
        return values.view(())

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        """The gradient, times the slope."""
        shape, dtype = ctx.like
        return (times(ctx.saved_tensors[0], slopes[0], dtype).view(shape), *(None,) * 6)


class MeanOfClasses(torch.autograd.Function):
    """``setwise::softmax`` without its second output."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, *arguments: Any) -> Tensor:
        """The mean; the gradient is kept."""
        from setwise.torch._softmax_operators import mean_of_classes

        total, gradient = mean_of_classes(logits, *arguments)
        ctx.save_for_backward(gradient)
        ctx.dtype = logits.dtype
        return total

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        """The gradient, times the slope."""
        return (times(ctx.saved_tensors[0], slopes[0], ctx.dtype), *(None,) * 9)
