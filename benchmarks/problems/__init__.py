"""The problems that two builds of the library are compared on, by what they answer and how fast.

Each module has generators of pairs of a name and a call without arguments that answers it:
``timed()`` gives the benchmarks' kinds of input at sizes of 0.05 to 1 second, ``wide()`` many small
ones that reach every public function. The same answer of the same build is the same to the last
bit. Only what is public is called, so that the files run against older and newer builds alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

Problem = tuple[str, Callable[[], Any]]

MODULES = (
    "functions",
    "surrogates",
    "potentials",
    "flows",
    "maps",
    "marginals",
    "lists",
    "images",
    "decisions",
    "learning",
    "estimators",
    "torch_losses",
)


def problems(kind: str, modules: list[str] | None = None) -> Iterator[Problem]:
    """All problems of a kind, "timed" or "wide"; names begin with their module's."""
    for module in modules or MODULES:
        for name, run in getattr(import_module(f"benchmarks.problems.{module}"), kind)():
            yield f"{module}/{name}", run


# New spellings, and those that builds before 0.1.0 have for them.
OLDER = {
    "rng": "random_state",
    "init": "warm_start",
    "ignore": "void",
    "normalized": "normalised",
    "double_random": "double-random",
    "DecomposedHingeLoss": "DecomposedLoss",
    "StumpSearch": "Stumps",
    "PerceptronSearch": "Perceptrons",
    "ClassifierSearch": "SklearnLearners",
}


def named(owner: ModuleType | object, name: str) -> Any:
    """What an owner has under a name, or under the older one."""
    return getattr(owner, name if hasattr(owner, name) else OLDER.get(name, name))


def call(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """A call whose keywords are spelt as the function's signature spells them."""
    from inspect import signature

    known = signature(function).parameters
    spelt = {key if key in known else OLDER.get(key, key): value for key, value in options.items()}
    return function(*args, **spelt)


def attempt(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The answer of a call, or that it was refused: whose words may change, not the fact."""
    try:
        return call(function, *args, **options)
    except ValueError as error:
        return Refusal(str(error))


class Refusal(str):
    """The sentence of a ``ValueError``."""


class Failure(str):
    """An error that no build should raise: a spelling it does not know, or a fault."""


class Heard(list[dict[str, Any]]):
    """A callback that notes what it is told, and never stops a search."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.names = names

    def __call__(self, progress: Any) -> bool:
        self.append({k: getattr(progress, k) for k in self.names if hasattr(progress, k)})
        return False
