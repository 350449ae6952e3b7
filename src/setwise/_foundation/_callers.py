"""Where a warning points: at the first caller outside the library."""

from __future__ import annotations

import sys


def callers_level() -> int:
    """The stack level of that caller, whichever way it came in, for ``warnings.warn``."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("setwise."):
        level, frame = level + 1, frame.f_back
    return level
