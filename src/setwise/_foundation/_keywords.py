"""Arguments by name: one that is nearly right is answered with the right one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

from setwise._foundation._arguments import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")


def hints_at_names(function: Callable[P, R]) -> Callable[P, R]:
    """The function itself, whose refusal of an unknown argument ends with the nearest known one.

    From Python 3.13 on the interpreter does so, and nothing is added.
    """
    if sys.version_info >= (3, 13):
        return function

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            traceback = error.__traceback__
            if traceback is not None and traceback.tb_next is not None:
                raise  # of the function's own, not of how it was called
            known = [name for name in signature(function).parameters if name != "self"]
            unknown = [name for name in kwargs if name not in known]
            near = did_you_mean(unknown[0], known) if unknown else ""
            if not near:
                raise
            raise TypeError(f"{error}{near}") from None

    return call
