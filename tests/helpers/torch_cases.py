"""What the tests of setwise.torch share: the registry of losses, where they run, their values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves, tree_map  # noqa: E402

import setwise as sw  # noqa: E402

t = sw.torch

HAS_GPU = torch.cuda.is_available()
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not HAS_GPU, reason="no CUDA device")),
]
# The CPU with its compiled kernels, the CPU without them, and a GPU.
PLACES = ["compiled", "plain", *DEVICES[1:]]


def go_to(place: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The device of a place; "plain" leaves the compiled kernels out."""
    from setwise.torch import _cpu

    if place == "plain":
        monkeypatch.setattr(_cpu, "is_compiled", lambda: False)
    return "cuda" if place == "cuda" else "cpu"


def value_and_gradient(criterion, scores, target, device="cpu", dtype=None):
    """Values and the gradient of their sum, as NumPy arrays in double precision."""
    x = torch.as_tensor(np.asarray(scores) if not torch.is_tensor(scores) else scores)
    x = x.detach().to(device, dtype or x.dtype).requires_grad_()
    y = torch.as_tensor(target).to(device)
    values = criterion(x, y)
    values.sum().backward()
    return values.detach().double().cpu().numpy(), x.grad.double().cpu().numpy()


CRITERIA = [
    t.LovaszHingeLoss(),
    t.LovaszHingeLoss(sw.losses.Exponential(0.4), per_image=True),
    t.LovaszHingeLoss(per_class=True, weight=[1.0, 2.0, 3.0], ignore_index=255),
    t.LovaszHingeLoss(sw.losses.Jaccard() + sw.losses.Hamming()),
    t.DecomposedHingeLoss("dice", per_class=True, per_image=True, reduction="sum"),
    t.DecomposedHingeLoss(sw.losses.FBeta(0.5)),
    t.MarginRescalingLoss("jaccard", scale=0.5, per_image=True),
    t.SlackRescalingLoss("dice", per_image=True),
    t.LovaszSigmoidLoss("dice", per_image=True),
]
SOFTMAX = [
    t.LovaszSoftmaxLoss(),
    t.LovaszSoftmaxLoss(classes=[0, 2], per_image=True, ignore_index=255),
    t.LovaszSoftmaxLoss(reduction="none"),
    t.LovaszSoftmaxLoss(buckets=8192, weight=[1.0, 2.0, 3.0]),
]
# The registry: every public loss, by the arguments of its function and of its module.
FUNCTIONS = {
    t.lovasz_hinge: t.LovaszHingeLoss,
    t.decomposed_hinge: t.DecomposedHingeLoss,
    t.margin_rescaling: t.MarginRescalingLoss,
    t.slack_rescaling: t.SlackRescalingLoss,
    t.lovasz_sigmoid: t.LovaszSigmoidLoss,
    t.lovasz_softmax: t.LovaszSoftmaxLoss,
}


def draw(criterion, device, dtype=torch.float64, pixels=7):
    """Scores (2, 3, pixels) that require grad, and targets for a loss."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 3, pixels, dtype=torch.float64, generator=generator).to(device, dtype)
    if isinstance(criterion, t.LovaszSoftmaxLoss) or criterion is t.lovasz_softmax:
        return x.requires_grad_(), torch.randint(0, 3, (2, pixels), generator=generator).to(device)
    return x.requires_grad_(), (torch.rand(2, 3, pixels, generator=generator) < 0.4).to(device)


class SinglePrecisionTensor(torch.Tensor):
    """A tensor on a device that refuses float64, as Apple's MPS does; its numbers lie in ``host``.

    "lazy" is a device that every build of torch knows and that none of ours has.
    """

    @staticmethod
    def __new__(cls, host: torch.Tensor) -> SinglePrecisionTensor:
        if host.dtype == torch.float64:
            raise TypeError("the device has no float64")
        return torch.Tensor._make_wrapper_subclass(
            cls, host.shape, strides=host.stride(), dtype=host.dtype, dispatch_device=True
        )

    def __init__(self, host: torch.Tensor) -> None:
        self.host = host

    @classmethod
    def __torch_dispatch__(cls, function: Any, *_: Any) -> torch.device:
        assert function is torch.ops.prim.device.default, f"{function} runs outside the mode"
        return torch.device("lazy")


class SinglePrecisionDevice(TorchDispatchMode):
    """A device "lazy" that has the operations of torch, but no float64 and no kernels of ours."""

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function is torch.ops.prim.device.default:
            return torch.device("lazy")
        given = tree_leaves((args, kwargs or {}))
        away = any(isinstance(value, SinglePrecisionTensor) for value in given)
        for value in given:
            if isinstance(value, torch.device):
                away = value.type == "lazy"
        if away and function.namespace == "setwise":
            raise NotImplementedError(f"{function} has no kernel for the device")
        args, kwargs = tree_map(_on_host, (args, kwargs or {}))
        answer = function(*args, **kwargs)
        return tree_map(_away, answer) if away else answer


def _on_host(value: Any) -> Any:
    if isinstance(value, torch.device):
        return torch.device("cpu")
    return value.host if isinstance(value, SinglePrecisionTensor) else value


def _away(value: Any) -> Any:
    return SinglePrecisionTensor(value) if isinstance(value, torch.Tensor) else value
