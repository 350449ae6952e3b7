"""The treatment of Ctrl-C in inner calls."""

from __future__ import annotations

from typing import TypeVar

R = TypeVar("R")


def completed(result: R) -> R:
    """Return the result, or raise ``KeyboardInterrupt`` if Ctrl-C cut it short.

    Searches and fits end at Ctrl-C with their best answer and set ``interrupted``. A caller whose
    own answer has no such flag must not use an incomplete result. A result without the flag is
    complete, because functions without the flag let ``KeyboardInterrupt`` pass.
    """
    if getattr(result, "interrupted", False):
        raise KeyboardInterrupt
    return result
