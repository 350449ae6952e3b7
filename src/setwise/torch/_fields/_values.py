"""Checks of the arguments of the layers: numbers, words and single tensors."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setwise._foundation._arguments import did_you_mean
from setwise.torch._inputs._sets import FLOATS, check_dense

METHODS = ("projection", "trees")


def as_real(value: object, name: str, *, positive: bool = False) -> float:
    """Return a finite number that is not negative."""
    if isinstance(value, Tensor) and value.ndim == 0 and not value.requires_grad:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number < 0 or (positive and number == 0):
        least = "positive" if positive else "at least 0"
        raise ValueError(f"{name} must be {least} and finite, got {number:g}")
    return number


def as_reals(value: object, name: str) -> list[float]:
    """Return a list of numbers that are not negative, from one number or several."""
    if isinstance(value, Tensor | np.ndarray) and value.ndim == 1:
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [as_real(item, name) for item in value]
    return [as_real(value, name)]


def as_passes(value: object) -> int | None:
    """Return the maximum number of passes, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"max_iter must be an integer or None, got {type(value).__name__}")
    if value < 1:
        raise ValueError(f"max_iter must be at least 1, got {value}")
    return int(value)


def check_word(value: object, name: str, words: tuple[str, ...]) -> str:
    """Check that ``value`` is one of ``words``."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {type(value).__name__}")
    if value not in words:
        near = did_you_mean(value, words)
        raise ValueError(f"{name} must be one of {', '.join(words)}, got {value!r}{near}")
    return value


def check_tensor(value: Any, name: str, like: Tensor | None = None) -> Tensor:
    """Check that ``value`` is a dense tensor of a floating dtype on the device of the logits."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}")
    check_dense(name, value)
    if value.dtype not in FLOATS:
        raise TypeError(f"{name} must be float16, bfloat16, float32 or float64, got {value.dtype}")
    check_place(value, name, like)
    return value


def check_place(value: Tensor, name: str, like: Tensor | None) -> None:
    """Check that ``value`` is on the device of the logits."""
    if like is not None and value.device != like.device:
        raise ValueError(
            f"{name} must be on the device of logits, {like.device}, got {value.device}"
        )


def check_all(good: Tensor, message: str, value: Tensor) -> None:
    """Raise a ``ValueError`` if an entry is bad; devices other than the CPU assert it instead."""
    if good.device.type != "cpu":
        torch._assert_async(good.all(), message)
    elif not bool(good.all()):
        raise ValueError(f"{message}, got {value[~good].flatten()[0].item():g}")
