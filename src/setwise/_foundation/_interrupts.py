"""What becomes of Ctrl-C in a call within a call."""

from __future__ import annotations

from typing import TypeVar

R = TypeVar("R")


def whole(result: R) -> R:
    """The result, unless Ctrl-C cut it short: then ``KeyboardInterrupt``.

    Searches and fits end at Ctrl-C with what they have and say so in ``interrupted``. Whoever calls
    one on the way to an answer that has no such flag must not take a part for the whole, nor go on.
    A result without the flag is whole: what has none raises by itself.
    """
    if getattr(result, "interrupted", False):
        raise KeyboardInterrupt
    return result
