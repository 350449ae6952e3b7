"""The problems on which the answers and the speed of two builds of the library are compared.

Each module has generators of pairs of a name and a call without arguments that solves the problem:
``timed()`` yields the benchmarks' kinds of input at sizes of 0.05 to 1 second, ``wide()`` many
small ones that together call every public function. Answers of one build are reproducible to the
last bit. Only public names are called, so that the files run with older and newer builds alike.
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
    "small",
    "torch_losses",
)


def problems(kind: str, modules: list[str] | None = None) -> Iterator[Problem]:
    """Yield all problems of a kind, "timed" or "wide"; names begin with their module's."""
    for module in modules or MODULES:
        for name, run in getattr(import_module(f"benchmarks.problems.{module}"), kind)():
            yield f"{module}/{name}", run


# New spellings, and those of builds before 0.1.0.
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
    """Return the attribute of an owner with a name, or with the older name."""
    return getattr(owner, name if hasattr(owner, name) else OLDER.get(name, name))


def call(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function with its keywords in the spelling of its signature."""
    from inspect import signature

    known = signature(function).parameters
    spelt = {key if key in known else OLDER.get(key, key): value for key, value in options.items()}
    return function(*args, **spelt)


def attempt(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return the answer of a call, or its ``ValueError``, whose text may change between builds."""
    try:
        return call(function, *args, **options)
    except ValueError as error:
        return Refusal(str(error))


class Refusal(str):
    """The message of a ``ValueError``."""


class Failure(str):
    """An error that no build should raise: an unknown spelling, or a bug."""


class Recorder(list[dict[str, Any]]):
    """A callback that records its arguments and never stops a search."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.names = names

    def __call__(self, progress: Any) -> bool:
        self.append({k: getattr(progress, k) for k in self.names if hasattr(progress, k)})
        return False
