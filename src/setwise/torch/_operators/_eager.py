"""Losses of CUDA tensors outside ``torch.compile``, with as few calls on the host as possible.

A custom operator with its autograd registration costs more host time than the kernels of a million
pixels take. The autograd functions here do the same with less overhead. They are hidden from the
compiler, which would otherwise trace them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from setwise.torch import _cuda
from setwise.torch._inputs._loss_words import loss_of
from setwise.torch._operators._dispatch import evaluate


def is_transformed() -> bool:
    """Return whether a transform of ``torch.func`` or a level of forward mode is active."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def is_eager(tensor: Tensor) -> bool:
    """Return whether a tensor is on a CUDA device and no compiler, tracer or wrapper is active."""
    return (
        tensor.is_cuda
        and type(tensor) is Tensor
        and not torch.compiler.is_compiling()
        and not is_transformed()
        and not torch._C._len_torch_dispatch_stack()
    )


# Whether the present backward pass keeps its graph for another one, and the hooks on saved tensors.
# Where torch does not tell, the answer is True, which is always safe.
_keeps_graph: Any = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", lambda: True)
_saving_hooks: Any = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", lambda _: True)


def keep(ctx: Any, gradient: Tensor) -> None:
    """Save a gradient to which nothing else refers, so that the last backward pass may reuse it."""
    ctx.save_for_backward(gradient)
    ctx.own = _saving_hooks(True) is None


def kept_times(ctx: Any, slopes: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the saved gradient times slopes, in place if no other pass will need it."""
    last = ctx.own and not torch.is_grad_enabled() and not _keeps_graph()
    return times(ctx.saved_tensors[0], slopes, dtype, last)


def times(gradient: Tensor, slopes: Tensor, dtype: torch.dtype, in_place: bool = False) -> Tensor:
    """Return gradient (S, ...) times slopes (S,) or () in ``dtype``, with a derivative."""
    if is_eager(gradient) and not torch.is_grad_enabled():
        answer = _cuda.scaled(gradient, slopes, dtype, in_place)
        if isinstance(answer, Tensor):
            return answer
    if slopes.ndim:
        slopes = slopes.view(-1, *(1,) * (gradient.ndim - 1))
    return (slopes * gradient).to(dtype)


def once(gradient: Tensor) -> Tensor:
    """Return the gradient. Differentiating it again raises an error.

    The gradient in the logits depends on the softmax. If it were treated as a constant, second
    derivatives would be wrong without an error. Correct second derivatives would require keeping
    the logits.
    """
    if torch.is_grad_enabled():
        raise NotImplementedError(
            "create_graph must be False for lovasz_softmax with reduction='mean', which keeps no "
            "second derivative: take reduction='sum' or 'none', or torch.func.hessian"
        )
    return gradient


class RowsOfSets(torch.autograd.Function):
    """``setwise::hinge`` without its second output: values (S,) of scores and targets (S, n)."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, target: Tensor, *rest: Any) -> Tensor:
        """Return the values and save the gradient."""
        surrogate, loss, *options = rest
        values, gradient = evaluate(surrogate, loss_of(loss), scores, target, *options)
        keep(ctx, gradient)
        ctx.dtype, ctx.rest = scores.dtype, len(rest) + 1
        return values

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient times the slopes."""
        return (kept_times(ctx, slopes[0], ctx.dtype), *(None,) * ctx.rest)


class OneSet(RowsOfSets):
    """The value of all elements of input and target as one set, a scalar."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, target: Tensor, *rest: Any) -> Tensor:
        """Return the value and save the gradient."""
        ctx.shape = input.shape
        rows = (input.reshape(1, -1), target.reshape(1, -1))
        return RowsOfSets.forward(ctx, *rows, *rest).view(())

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient times the slope."""
        gradient, *rest = RowsOfSets.backward(ctx, *slopes)
        assert gradient is not None
        return (gradient.view(ctx.shape), *rest)


class MeanOfClasses(torch.autograd.Function):
    """``setwise::softmax`` without its second output."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, *arguments: Any) -> Tensor:
        """Return the mean and save the gradient."""
        from setwise.torch._operators._softmax import mean_of_classes

        total, gradient = mean_of_classes(logits, *arguments)
        keep(ctx, gradient)
        ctx.dtype, ctx.from_logits = logits.dtype, arguments[-1]
        return total

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient times the slope."""
        gradient = kept_times(ctx, slopes[0], ctx.dtype)
        return (once(gradient) if ctx.from_logits else gradient, *(None,) * 9)
