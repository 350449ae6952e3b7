"""Custom operators, which are opaque to ``torch.compile``, and their replacement in old torch.

Releases before 2.4 have no custom operators, and with releases before 2.11 compiled losses do not
pass the tests. For these releases ``torch.autograd.Function`` defines the derivatives, and a
compiled graph ends before a loss, which runs eagerly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass, replace
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import Tensor

from setwise.torch._inputs._sets import DOUBLE_DEVICES

F = TypeVar("F", bound=Callable[..., Any])

HAS_OPERATORS = torch.__version__ >= (2, 11)  # type: ignore[operator]

if not HAS_OPERATORS:
    # Hiding a function needs the compiler, and torch 2.3 cannot load it inside a transform.
    import torch._dynamo


class _PlainOperator:
    """A function in place of an operator; for meta tensors it computes the shapes alone."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = self.shapes = function

    def __call__(self, first: torch.Tensor, *rest: Any) -> Any:
        return (self.shapes if first.is_meta else self.function)(first, *rest)


def operator(name: str) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that makes a function the operator of that name."""
    return torch.library.custom_op(name, mutates_args=()) if HAS_OPERATORS else _PlainOperator


def complete(
    operator: Any, fake: Callable[..., Any], backward: Callable[..., Any], keep: Callable[..., Any]
) -> None:
    """Register the shapes of an operator and its derivative."""
    if HAS_OPERATORS:
        operator.register_fake(fake)
        operator.register_autograd(backward, setup_context=keep)
    else:
        operator.shapes = fake


def compiled_with_operators(function: F) -> F:
    """Return a loss that compiled graphs can hold; without operators the graph ends there."""
    placed = with_doubles(function)
    if HAS_OPERATORS:
        return placed
    hidden: F = torch._dynamo.disable(placed)  # type: ignore[no-untyped-call]
    return hidden


def with_doubles(function: F) -> F:
    """Return the function, run on the host if the device of its first tensor has no float64.

    Tensors are moved before anything is computed, so that derivatives are moved back too. The
    answer is moved to the device, except for float64 tensors, which stay on the host.
    """

    @wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        for value in (*arguments, *options.values()):
            if isinstance(value, Tensor):
                if value.device.type in DOUBLE_DEVICES:
                    break
                arguments = tuple(_on_host(x) for x in arguments)
                options = {name: _on_host(x) for name, x in options.items()}
                return _on_device(function(*arguments, **options), value.device)
        return function(*arguments, **options)

    return run  # type: ignore[return-value]


def _on_host(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_on_host(x) for x in value]
    return value.cpu() if isinstance(value, Tensor) else value


def _on_device(answer: Any, device: torch.device) -> Any:
    if isinstance(answer, Tensor):
        return answer if answer.dtype == torch.float64 else answer.to(device)
    if isinstance(answer, tuple):
        parts = [_on_device(part, device) for part in answer]
        return type(answer)(*parts) if hasattr(answer, "_fields") else tuple(parts)
    if is_dataclass(answer) and not isinstance(answer, type):
        return replace(answer, **{k: _on_device(v, device) for k, v in vars(answer).items()})
    return answer
