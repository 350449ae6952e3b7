"""The compiled kernels, loaded with the first that is called.

Everything that only names a loss or asks what it knows of itself works without them, as
``setwise.torch`` does.
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
