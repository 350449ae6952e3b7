"""Custom operators, opaque to ``torch.compile``, where torch has them: from 2.4 on.

Before, the function alone is there, and ``torch.autograd.Function`` gives its derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

HAS_OPERATORS = hasattr(torch.library, "custom_op")


def operator(name: str) -> Callable[[Callable[..., Any]], Any]:
    """Makes a function the operator of that name."""
    if HAS_OPERATORS:
        return torch.library.custom_op(name, mutates_args=())
    return lambda function: function


def complete(
    operator: Any, fake: Callable[..., Any], backward: Callable[..., Any], keep: Callable[..., Any]
) -> None:
    """Gives an operator the shapes of its answers, and its derivative from what was kept."""
    if HAS_OPERATORS:
        operator.register_fake(fake)
        operator.register_autograd(backward, setup_context=keep)
