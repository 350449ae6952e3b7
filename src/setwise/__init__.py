"""setwise: learn with the loss you are judged by.

``import setwise`` loads NumPy and SciPy only; each part is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setwise import estimators, fields, functions, learning, losses, plots, surrogates
    from setwise.estimators import SetClassifier

__version__ = "0.1.0"

__all__ = [
    "SetClassifier",
    "estimators",
    "fields",
    "functions",
    "learning",
    "losses",
    "plots",
    "surrogates",
]


def __getattr__(name: str) -> Any:
    if name in __all__ and name.islower():
        return import_module(f"setwise.{name}")
    if name in __all__:  # classes are estimators, and load scikit-learn
        return getattr(import_module("setwise.estimators"), name)
    raise AttributeError(f"module 'setwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
