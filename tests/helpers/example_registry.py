"""One small good call of every public callable: what is listed here is tested with bad input.

An example names the callable as ``public_api.txt`` does, gives every argument by its name, and
may say how to look at the answer. A callable that is public and not listed fails a test.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from public_api import described_objects


def itself(answer: Any) -> Any:
    return answer


@dataclass(frozen=True)
class Example:
    """A call ``run(**arguments)`` that is right, and what to look at in its answer."""

    run: Callable[..., Any]
    arguments: dict[str, Any]
    look: Callable[[Any], Any] = itself


EXAMPLES: dict[str, Example] = {}
DESCRIBED = dict(described_objects())


def resolve(name: str) -> Any:
    """What a dotted name stands for."""
    if name in DESCRIBED:
        return DESCRIBED[name]
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        return functools.reduce(getattr, parts[k:], found)
    raise LookupError(name)


def listed(name: str, look: Callable[[Any], Any] = itself, /, **arguments: Any) -> None:
    """A function or a constructor, called as it is."""
    EXAMPLES[f"setwise.{name}"] = Example(resolve(f"setwise.{name}"), arguments, look)


def method(
    name: str, make: Callable[[], Any], look: Callable[[Any], Any] = itself, /, **arguments: Any
) -> None:
    """A method of an object that is made anew for each call."""

    def run(**given: Any) -> Any:
        return getattr(make(), name.rpartition(".")[2])(**given)

    EXAMPLES[f"setwise.{name}"] = Example(run, arguments, look)


def array(*values: Any) -> np.ndarray:
    return np.array(values)


def go_on(progress: object) -> None:
    """A callback that stops nothing."""
