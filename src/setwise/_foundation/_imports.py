"""Imports on demand that Ctrl-C cannot leave half done."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any


def load(name: str) -> Any:
    """Return the module of this name. Ctrl-C during its import is delayed until it is complete.

    Compiled modules turn ``KeyboardInterrupt`` into ``ImportError`` while they are initialised, and
    many cannot be initialised a second time, so that the process could not import them again.
    """
    if name in sys.modules:
        return import_module(name)
    with _held_back():
        return import_module(name)


@contextmanager
def _held_back() -> Iterator[None]:
    """Delay Ctrl-C until the end. This is for the main thread, which alone receives signals."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if came:
        signal.raise_signal(signal.SIGINT)
