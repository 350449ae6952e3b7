"""BLAS on one thread, because rounding errors depend on the number of threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_held: list[Any] = []  # the limit while at least one thread uses it; _users counts the threads
_users = 0


@cache
def _controller() -> Any:
    """Return a controller of all loaded libraries, made once, since that takes milliseconds."""
    import scipy.linalg  # noqa: F401, which has its own BLAS

    return ThreadpoolController()


def _open_to_all() -> None:
    """Let any thread set the next limit.

    From threadpoolctl 3.8 on, only the first thread that sets a limit may change it until it
    releases control. The calls of all other threads are ignored.
    """
    for library in _controller().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS to one thread while any thread of this process is inside the context.

    The limit belongs to the process. The first thread sets it and the last one lifts it, since
    otherwise one thread would lift it while another computes.
    """
    global _users
    with _lock:
        if _users == 0:
            _open_to_all()
            _held.append(_controller().limit(limits=1, user_api="blas"))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _open_to_all()
                _held.pop().restore_original_limits()
                _open_to_all()
