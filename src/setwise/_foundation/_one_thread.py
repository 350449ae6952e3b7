"""Products on one thread: more of them would round differently with each number of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_held: list[Any] = []  # the limit, while some thread has it, and how many do
_users = 0


@cache
def _controller() -> Any:
    """All libraries that are loaded, looked through once a process: that takes milliseconds."""
    import scipy.linalg  # noqa: F401, which has a BLAS of its own

    return ThreadpoolController()


def _open_to_all() -> None:
    """Let any thread set the next limit.

    From threadpoolctl 3.8 on the first one to set a limit is the only one that can, until it says
    that it is done: all others are ignored, whoever lifts the limit of another one too.
    """
    for library in _controller().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS on one thread, as long as any thread of this process is inside.

    A limit belongs to the process, so that the first thread sets it and the last one lifts it: each
    for itself, one would lift it while another computes.
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
