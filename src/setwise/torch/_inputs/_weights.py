"""Checks of class weights: finite, not negative, one per class."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from setwise.torch._inputs._sets import DOUBLE_DEVICES, REALS, check_dense

_MEANT = "weight must be finite, with a finite sum, and not negative"


def read_weight(weight: Any) -> Tensor | None:
    """Return the weights as a checked tensor (C,); None for none."""
    weights = _as_tensor(weight)
    if weights is not None:
        _check_values(weights)
    return weights


def _as_tensor(weight: Any) -> Tensor | None:
    """Return the weights as a tensor (C,) of real numbers."""
    if weight is None:
        return None
    weights: Tensor
    if isinstance(weight, Tensor):
        weights = weight
    else:
        if isinstance(weight, np.ma.MaskedArray) and np.ma.is_masked(weight):
            raise ValueError("weight must be given for every class, got a masked array")
        try:
            if hasattr(weight, "__array__"):
                # torch reads neither negative strides nor another order of bytes.
                array = np.array(weight)
                weights = torch.as_tensor(array.astype(array.dtype.newbyteorder("=")))
            else:
                weights = torch.as_tensor(weight)
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(
                f"weight must be a tensor or numbers, got {type(weight).__name__}"
            ) from error
    check_dense("weight", weights)
    if weights.dtype not in REALS:
        raise TypeError(f"weight must be real, got {weights.dtype}")
    if weights.ndim != 1:
        raise ValueError(f"weight must have shape (C,), got {tuple(weights.shape)}")
    return weights


def _check_values(weights: Tensor) -> None:
    """Check that weights are finite and not negative, and so is their sum.

    The host checks its own weights. Elsewhere, and in a compiled graph, the device asserts it, so
    that the host does not wait.
    """
    compiling = torch.compiler.is_compiling()
    weights = weights.detach()
    while not compiling and torch._C._functorch.is_functorch_wrapped_tensor(weights):
        weights = torch._C._functorch.get_unwrapped(weights)
    if weights.is_meta:
        return
    if weights.device.type not in DOUBLE_DEVICES:
        weights = weights.cpu()
    wide = weights.double()
    good = (wide >= 0).all() & wide.sum().isfinite()
    if compiling or weights.device.type != "cpu":
        torch._assert_async(good, _MEANT)
    elif not bool(good):
        wrong = wide[~((wide >= 0) & wide.isfinite())].tolist() or wide.tolist()
        raise ValueError(f"{_MEANT}, got {wrong[0]}")


def on_device(weights: Tensor | None, input: Tensor) -> Tensor | None:
    """Return the weights on the device of the input, copied from the host if necessary.

    Weights on another device are refused. Inputs on a device without float64 are moved to the host,
    and weights follow them.
    """
    if weights is None or weights.device == input.device:
        return weights
    if weights.device.type in DOUBLE_DEVICES and weights.device.type != "cpu":
        raise ValueError(
            f"weight must be on the device of input, {input.device}, or on the CPU, "
            f"got {weights.device}"
        )
    return weights.to(input.device)


def changed(options: Any, weight: Tensor | None, **more: object) -> list[str]:
    """Return the parts of a repr: options that differ from their defaults, and the weights."""
    usual = type(options)()
    known = {k: v for k, v in vars(options).items() if v != getattr(usual, k)} | more
    words = [f"{name}={value!r}" for name, value in known.items()]
    if weight is None:
        return words
    numbers = ["?"] * len(weight) if weight.is_meta else [f"{w:g}" for w in weight.tolist()]
    if len(numbers) > (shown := 8):
        numbers[shown:] = [f"... {len(numbers)} in all"]
    return [*words, f"weight=[{', '.join(numbers)}]"]
