"""The compiled kernels, which are loaded with the first access.

Code that only constructs losses or reads their properties works without them, as does
``setwise.torch``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from setwise._foundation._imports import load

if TYPE_CHECKING:
    from setwise._core import *  # noqa: F403


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    kernel = getattr(load("setwise._core"), name)
    globals()[name] = kernel
    return kernel
