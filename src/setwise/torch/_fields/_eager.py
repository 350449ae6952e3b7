"""What a compiler does not look into: a graph ends before it and goes on after it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import Tensor

F = TypeVar("F", bound=Callable[..., Any])


def eager(function: F) -> F:
    """What torch.compiler.disable makes of a function, without loading the compiler for it.

    Autocast is off in it: sums of energies need the digits.
    """
    hidden: list[Callable[..., Any]] = []

    def plain(*arguments: Any, **options: Any) -> Any:
        given = (*arguments, *options.values())
        device = next((a.device.type for a in given if isinstance(a, Tensor)), "cpu")
        if device == "meta":  # which has no autocast
            return function(*arguments, **options)
        with torch.autocast(device, enabled=False):
            return function(*arguments, **options)

    @wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        if "torch._dynamo" not in sys.modules:
            return plain(*arguments, **options)
        if not hidden:
            hidden.append(sys.modules["torch._dynamo"].disable(plain))
        return hidden[0](*arguments, **options)

    run._torchdynamo_disable = True  # type: ignore[attr-defined]
    return run  # type: ignore[return-value]
