"""What becomes of Ctrl-C in a call within a call."""

from __future__ import annotations

from typing import Protocol, TypeVar


class _Interruptible(Protocol):
    @property
    def interrupted(self) -> bool: ...


R = TypeVar("R", bound=_Interruptible)


def whole(result: R) -> R:
    """The result, unless Ctrl-C cut it short: then ``KeyboardInterrupt``.

    Searches and fits end at Ctrl-C with what they have and say so in ``interrupted``. Whoever calls
    one on the way to an answer that has no such flag must not take a part for the whole, nor go on.
    """
    if result.interrupted:
        raise KeyboardInterrupt
    return result
