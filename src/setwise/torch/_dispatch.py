"""Which implementation answers: compiled on the CPU, CUDA kernels, plain torch, or the host."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

from setwise.losses import Loss
from setwise.surrogates import DecomposedHinge
from setwise.torch import _cpu, _cuda
from setwise.torch._reference._buckets import bucketed
from setwise.torch._reference._gains import has_gains
from setwise.torch._reference._hinge import Answer, Sets, lovasz
from setwise.torch._reference._rescaling import Rule, has_maximum, rescaled

HALVES = (torch.float16, torch.bfloat16)


def evaluate(
    surrogate: str,
    loss: Loss,
    scores: Tensor,
    target: Tensor,
    ignore: float,
    buckets: int,
    scale: float,
) -> Answer:
    """Values (S,) and gradient (S, n) of the surrogate, for scores and targets (S, n)."""
    device = scores.device
    bare, factor = loss._unscaled()
    if not _is_known(surrogate, bare):
        return _on_host(surrogate, loss, scores, target, ignore, scale)
    answer = None
    if device.type == "cpu" and _cpu.is_compiled():
        if buckets:
            answer = _cpu.in_buckets(bare, scores, target, ignore, buckets)
        else:
            whole = _cpu.surrogate_of(surrogate, loss, scale)
            answer = _cpu.hinge(whole, scores, target, ignore)
            if answer is not None:
                return answer
    if device.type == "cuda":
        answer = _on_cuda(surrogate, bare, scores, target, ignore, buckets)
    if answer is None:
        answer = _in_plain_torch(
            surrogate,
            bare,
            Sets.read(scores, target, ignore),
            scores.dtype,
            buckets,
            scale * factor,
        )
    if answer is None:
        return _on_host(surrogate, loss, scores, target, ignore, scale)
    values, gradient = answer
    return (values, gradient) if factor == 1 else (values * factor, gradient * factor)


def _is_known(surrogate: str, loss: Loss) -> bool:
    """Whether the loss is of a family that every device knows."""
    if surrogate == "lovasz" or loss.is_submodular:
        return has_gains(loss)
    return has_maximum(loss)


def _on_cuda(
    surrogate: str, loss: Loss, scores: Tensor, target: Tensor, ignore: float, buckets: int
) -> Answer | None:
    kernel: Any = getattr(_cuda, "lovasz_ratio", None)
    if kernel is None or surrogate != "lovasz" or loss._fraction is None:
        return None
    answer = kernel(scores, target, ignore, *loss._fraction._constants, buckets)
    return None if answer is NotImplemented else answer


def _in_plain_torch(
    surrogate: str, loss: Loss, sets: Sets, dtype: torch.dtype, buckets: int, scale: float
) -> Answer | None:
    if buckets:
        return bucketed(loss, sets, buckets, dtype if dtype in HALVES else None)
    if surrogate == "lovasz":
        return lovasz(loss, sets)
    if surrogate == "slack":
        return rescaled(loss, sets, Rule(True, 2.0))
    if surrogate == "margin":
        return rescaled(loss, sets, Rule(False, 2.0 / scale))
    submodular, supermodular = loss._parts()
    if not (submodular.is_increasing or loss._has_nonnegative_part):
        whole = _cpu.surrogate_of(surrogate, loss, 1.0)
        assert isinstance(whole, DecomposedHinge)
        whole._warn_if_negative(sets.labels())
    first = lovasz(submodular, sets)
    if first is None or supermodular is None:
        return first
    second = rescaled(supermodular, sets, Rule(True, 2.0))
    return None if second is None else (first[0] + second[0], first[1] + second[1])


def _on_host(
    surrogate: str, loss: Loss, scores: Tensor, target: Tensor, ignore: float, scale: float
) -> Answer:
    if not _cpu.is_compiled():
        raise NotImplementedError(
            f"loss must be one of counts for this surrogate where the compiled kernels of setwise "
            f"are missing, got {loss!r}"
        )
    warnings.warn(
        f"{loss!r} runs through its gains on the host: it is in no family that the device knows",
        UserWarning,
        stacklevel=2,
    )
    answer = _cpu.hinge(
        _cpu.surrogate_of(surrogate, loss, scale), scores.cpu(), target.cpu(), ignore
    )
    if answer is None:
        raise ValueError(
            f"ignore_index must be None and input finite for {loss!r}, whose elements cannot be "
            "left out or compared"
        )
    return answer[0].to(scores.device), answer[1].to(scores.device)
