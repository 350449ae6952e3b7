"""The custom operator of the surrogates of scores, which is opaque to ``torch.compile``.

``setwise::hinge`` returns the value of each set together with the gradient in its scores. The
backward pass needs only the gradient: 4 bytes per element (8 in float64).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from setwise.torch._inputs._loss_words import loss_of
from setwise.torch._operators._dispatch import evaluate
from setwise.torch._operators._eager import times
from setwise.torch._operators._library import complete, operator


def wide(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of values and gradients: float64 for float64, else float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


@operator("setwise::hinge")
def hinge(
    scores: Tensor,
    target: Tensor,
    surrogate: str,
    loss: str,
    ignore: float,
    buckets: int,
    scale: float,
) -> tuple[Tensor, Tensor]:
    """Return values (S,) and gradient (S, n) of a surrogate for scores and targets (S, n)."""
    return evaluate(surrogate, loss_of(loss), scores, target, ignore, buckets, scale)


def _shapes(
    scores: Tensor,
    target: Tensor,
    surrogate: str,
    loss: str,
    ignore: float,
    buckets: int,
    scale: float,
) -> tuple[Tensor, Tensor]:
    dtype = wide(scores.dtype)
    return scores.new_empty(scores.shape[:1], dtype=dtype), scores.new_empty(
        scores.shape, dtype=dtype
    )


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(output[1])
    ctx.mark_non_differentiable(output[1])
    ctx.dtype = inputs[0].dtype


def _backward(ctx: Any, slopes: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    (gradient,) = ctx.saved_tensors
    return (times(gradient, slopes, ctx.dtype), *(None,) * 6)


complete(hinge, _shapes, _backward, _keep)
