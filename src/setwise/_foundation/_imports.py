"""Imports by need that Ctrl-C cannot leave half done."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any


def load(name: str) -> Any:
    """The module of this name; Ctrl-C in its import is held back until all of it is there.

    Compiled modules turn ``KeyboardInterrupt`` into ``ImportError`` while they are set up, and many
    refuse to be set up a second time: the process could not import them any more.
    """
    if name in sys.modules:
        return import_module(name)
    with _held_back():
        return import_module(name)


@contextmanager
def _held_back() -> Iterator[None]:
    """Ctrl-C comes at the end instead. Only the main thread sees signals and may say so."""
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
