"""Custom operators, opaque to ``torch.compile``, where torch has them: from 2.4 on.

Before, the function alone is there, and ``torch.autograd.Function`` gives its derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

HAS_OPERATORS = hasattr(torch.library, "custom_op")


if not HAS_OPERATORS:
    # A function with transforms of its own loads the compiler when it is called, and torch 2.3 cannot
    # load it inside a transform.
    import torch._dynamo


def operator(name: str, schema: str) -> Callable[[Callable[..., Any]], Any]:
    """Makes a function the operator of that name; torch 2.4 does not read annotations as ours."""
    if HAS_OPERATORS:
        return torch.library.custom_op(name, mutates_args=(), schema=schema)
    return lambda function: function


def complete(
    operator: Any, fake: Callable[..., Any], backward: Callable[..., Any], keep: Callable[..., Any]
) -> None:
    """Gives an operator the shapes of its answers, and its derivative from what was kept."""
    if HAS_OPERATORS:
        operator.register_fake(fake)
        operator.register_autograd(backward, setup_context=keep)
