"""Warnings that are attributed to the first caller outside the library, or collected in a list."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_gathering: ContextVar[list[str] | None] = ContextVar("_gathering", default=None)


def callers_level() -> int:
    """Return the stack level of the first caller outside the library, for ``warnings.warn``."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("setwise."):
        level, frame = level + 1, frame.f_back
    return level


def warn_caller(message: str) -> None:
    """Warn the first caller outside the library, or add to ``gathered_warnings``."""
    gathered = _gathering.get()
    if gathered is None:
        warnings.warn(message, UserWarning, stacklevel=callers_level())
    else:
        gathered.append(message)


@contextmanager
def gathered_warnings() -> Iterator[list[str]]:
    """Collect the messages of ``warn_caller`` in this thread instead of warning.

    ``warnings.catch_warnings`` would change the filters of all threads.
    """
    messages: list[str] = []
    token = _gathering.set(messages)
    try:
        yield messages
    finally:
        _gathering.reset(token)
