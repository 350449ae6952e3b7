"""CUDA tensors outside ``torch.compile``: one node in the graph and no more calls than it takes.

A custom operator with its autograd registration costs more host time than the kernels of a million
pixels take. Its autograd.Function does the same; a compiler would have to look into it, so that it
never sees it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from setwise.torch import _cuda
from setwise.torch._dispatch import evaluate
from setwise.torch._inputs._loss_words import loss_of


def is_transformed() -> bool:
    """Whether a transform of ``torch.func`` or a level of forward mode is at work."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def is_eager(tensor: Tensor) -> bool:
    """Whether a tensor lies on a CUDA device and no compiler, tracer or wrapper is at work."""
    return (
        tensor.is_cuda
        and type(tensor) is Tensor
        and not torch.compiler.is_compiling()
        and not is_transformed()
        and not torch._C._len_torch_dispatch_stack()
    )


# Whether the backward pass under way keeps its graph for another one, and the hooks that look at
# what is saved; where torch does not tell, the careful answer.
_keeps_graph: Any = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", lambda: True)
_saving_hooks: Any = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", lambda _: True)


def keep(ctx: Any, gradient: Tensor) -> None:
    """Saves a gradient that nobody else has, to be given away by the last backward pass."""
    ctx.save_for_backward(gradient)
    ctx.own = _saving_hooks(True) is None


def kept_times(ctx: Any, slopes: Tensor, dtype: torch.dtype) -> Tensor:
    """The saved gradient times slopes, in its own memory where no other pass will ask for it."""
    last = ctx.own and not torch.is_grad_enabled() and not _keeps_graph()
    return times(ctx.saved_tensors[0], slopes, dtype, last)


def times(gradient: Tensor, slopes: Tensor, dtype: torch.dtype, in_place: bool = False) -> Tensor:
    """gradient (S, ...) times slopes (S,) or (), in ``dtype``; itself differentiable."""
    if is_eager(gradient) and not torch.is_grad_enabled():
        answer = _cuda.scaled(gradient, slopes, dtype, in_place)
        if isinstance(answer, Tensor):
            return answer
    if slopes.ndim:
        slopes = slopes.view(-1, *(1,) * (gradient.ndim - 1))
    return (slopes * gradient).to(dtype)


def once(gradient: Tensor) -> Tensor:
    """The gradient; an error where a graph of it is asked for, to differentiate it again.

    That of the logits is the gradient at the probabilities through a softmax, so that as a constant
    it would have second derivatives that are wrong in silence. To have them right, the logits would
    have to be kept as well.
    """
    if torch.is_grad_enabled():
        raise NotImplementedError(
            "create_graph must be False for lovasz_softmax with reduction='mean', which keeps no "
            "second derivative: take reduction='sum' or 'none', or torch.func.hessian"
        )
    return gradient


class Rows(torch.autograd.Function):
    """``setwise::hinge`` without its second output: values (S,) of scores and targets (S, n)."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, target: Tensor, *rest: Any) -> Tensor:
        """The values; the gradient is kept."""
        surrogate, loss, *options = rest
        values, gradient = evaluate(surrogate, loss_of(loss), scores, target, *options)
        keep(ctx, gradient)
        ctx.dtype, ctx.rest = scores.dtype, len(rest) + 1
        return values

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        """The gradient, times the slopes."""
        return (kept_times(ctx, slopes[0], ctx.dtype), *(None,) * ctx.rest)


class OneSet(Rows):
    """All elements of input and target as one set, a scalar."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, target: Tensor, *rest: Any) -> Tensor:
        """The value; the gradient is kept."""
        ctx.shape = input.shape
        rows = (input.reshape(1, -1), target.reshape(1, -1))
        return Rows.forward(ctx, *rows, *rest).view(())

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        """The gradient, times the slope."""
        gradient, *rest = Rows.backward(ctx, *slopes)
        assert gradient is not None
        return (gradient.view(ctx.shape), *rest)


class MeanOfClasses(torch.autograd.Function):
    """``setwise::softmax`` without its second output."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, *arguments: Any) -> Tensor:
        """The mean; the gradient is kept."""
        from setwise.torch._operators._softmax import mean_of_classes

        total, gradient = mean_of_classes(logits, *arguments)
        keep(ctx, gradient)
        ctx.dtype, ctx.from_logits = logits.dtype, arguments[-1]
        return total

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        """The gradient, times the slope."""
        gradient = kept_times(ctx, slopes[0], ctx.dtype)
        return (once(gradient) if ctx.from_logits else gradient, *(None,) * 9)
