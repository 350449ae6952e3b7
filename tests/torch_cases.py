"""What the tests of setwise.torch share: where they run, and values with gradients."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

HAS_GPU = torch.cuda.is_available()
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not HAS_GPU, reason="no CUDA device")),
]
# The CPU with its compiled kernels, the CPU without them, and a GPU.
PLACES = ["compiled", "plain", *DEVICES[1:]]


def go_to(place: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The device of a place; "plain" leaves the compiled kernels out."""
    from setwise.torch import _compiled

    if place == "plain":
        monkeypatch.setattr(_compiled, "is_compiled", lambda: False)
    return "cuda" if place == "cuda" else "cpu"


def value_and_gradient(criterion, scores, target, device="cpu", dtype=None):
    """Values and the gradient of their sum, as NumPy arrays in double precision."""
    x = torch.as_tensor(np.asarray(scores) if not torch.is_tensor(scores) else scores)
    x = x.detach().to(device, dtype or x.dtype).requires_grad_()
    y = torch.as_tensor(target).to(device)
    values = criterion(x, y)
    values.sum().backward()
    return values.detach().double().cpu().numpy(), x.grad.double().cpu().numpy()
