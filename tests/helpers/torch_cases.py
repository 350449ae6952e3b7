"""What the tests of setwise.torch share: the registry of losses, where they run, their values."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

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
    t.LovaszSoftmaxLoss(method="bucket", weight=[1.0, 2.0, 3.0]),
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
