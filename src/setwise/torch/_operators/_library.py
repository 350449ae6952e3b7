"""Custom operators, opaque to ``torch.compile``, and what stands for them where torch is old.

Before ``FIRST`` the compiler was not seen to go through the losses, or torch has no custom
operators at all (they came with 2.4). There ``torch.autograd.Function`` gives the derivatives, and
a compiled graph ends before a loss, which runs as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

F = TypeVar("F", bound=Callable[..., Any])

FIRST = (2, 11)
HAS_OPERATORS = torch.__version__ >= FIRST  # type: ignore[operator]

if not HAS_OPERATORS:
    # What hides a function lies in the compiler; and torch 2.3 cannot load that inside a transform.
    import torch._dynamo


class _Plain:
    """A function in the place of an operator: where there is nothing to compute, its shapes."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = self.shapes = function

    def __call__(self, first: torch.Tensor, *rest: Any) -> Any:
        return (self.shapes if first.is_meta else self.function)(first, *rest)


def operator(name: str) -> Callable[[Callable[..., Any]], Any]:
    """Makes a function the operator of that name."""
    return torch.library.custom_op(name, mutates_args=()) if HAS_OPERATORS else _Plain


def complete(
    operator: Any, fake: Callable[..., Any], backward: Callable[..., Any], keep: Callable[..., Any]
) -> None:
    """Gives an operator the shapes of its answers, and its derivative from what was kept."""
    if HAS_OPERATORS:
        operator.register_fake(fake)
        operator.register_autograd(backward, setup_context=keep)
    else:
        operator.shapes = fake


def compiled_with_operators(function: F) -> F:
    """A loss that a compiled graph can hold where its operators are; elsewhere the graph ends."""
    if HAS_OPERATORS:
        return function
    hidden: F = torch._dynamo.disable(function)  # type: ignore[no-untyped-call]
    return hidden
