"""Choice of the implementation: compiled CPU kernels, CUDA kernels, plain torch or the host."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from setwise.losses import Loss
from setwise.torch import _cpu, _cuda
from setwise.torch._inputs._sets import HALVES
from setwise.torch._reference._buckets import bucketed
from setwise.torch._reference._gains import has_gains
from setwise.torch._reference._hinge import Answer, Sets, lovasz
from setwise.torch._reference._rescaling import RescalingObjective, has_maximum, rescaled


def evaluate(
    surrogate: str,
    loss: Loss,
    scores: Tensor,
    target: Tensor,
    ignore: float,
    buckets: int,
    scale: float,
) -> Answer:
    """Return values (S,) and gradient (S, n) of the surrogate for scores and targets (S, n)."""
    device = scores.device
    bare, factor = loss._unscaled()
    known = SURROGATES[surrogate]
    if not known.knows(bare):
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
        kernel = getattr(_cuda, known.kernel, None)
        answer = _on_cuda(kernel, bare, scores, target, ignore, buckets)
    if answer is None:
        sets = Sets.read(scores, target, ignore)
        if buckets:
            half = scores.dtype if scores.dtype in HALVES else None
            answer = bucketed(bare, sets, buckets, half)
        else:
            answer = known.plain(bare, sets, scale * factor)
    if answer is None:
        return _on_host(surrogate, loss, scores, target, ignore, scale)
    values, gradient = answer
    return (values, gradient) if factor == 1 else (values * factor, gradient * factor)


def _on_cuda(
    kernel: Any, loss: Loss, scores: Tensor, target: Tensor, ignore: float, buckets: int
) -> Answer | None:
    if kernel is None or loss._fraction is None:
        return None
    answer = kernel(scores, target, ignore, *loss._fraction._constants, buckets)
    return None if answer is NotImplemented else answer


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


# The surrogates in plain torch.


def _knows(loss: Loss) -> bool:
    return has_gains(loss) if loss.is_submodular else has_maximum(loss)


def _lovasz(loss: Loss, sets: Sets, scale: float) -> Answer | None:
    return lovasz(loss, sets)


def _slack(loss: Loss, sets: Sets, scale: float) -> Answer | None:
    return rescaled(loss, sets, RescalingObjective(True, 2.0))


def _margin(loss: Loss, sets: Sets, scale: float) -> Answer | None:
    return rescaled(loss, sets, RescalingObjective(False, 2.0 / scale))


def _decomposed(loss: Loss, sets: Sets, scale: float) -> Answer | None:
    submodular, supermodular = loss._parts()
    if not (submodular.is_increasing or loss._traits.has_nonnegative_part):
        _cpu.surrogate_of("decomposed", loss, 1.0)._warn_if_negative(sets.labels())
    first = lovasz(submodular, sets)
    if first is None or supermodular is None:
        return first
    second = rescaled(supermodular, sets, RescalingObjective(True, 2.0))
    return None if second is None else (first[0] + second[0], first[1] + second[1])


@dataclass(frozen=True)
class DeviceSurrogate:
    """A surrogate on any device: its supported losses, its plain torch code and its CUDA kernel."""

    knows: Callable[[Loss], bool]
    plain: Callable[[Loss, Sets, float], Answer | None]
    kernel: str = ""


SURROGATES = {
    "lovasz": DeviceSurrogate(has_gains, _lovasz, "lovasz_ratio"),
    "slack": DeviceSurrogate(_knows, _slack),
    "margin": DeviceSurrogate(_knows, _margin),
    "decomposed": DeviceSurrogate(_knows, _decomposed),
}
