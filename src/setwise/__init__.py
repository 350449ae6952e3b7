"""setwise: learn with the loss you are judged by.

``import setwise`` loads NumPy and SciPy only; each part is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

__version__ = "0.1.0"

__all__ = ["functions", "losses", "plots", "surrogates"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"setwise.{name}")
    raise AttributeError(f"module 'setwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
