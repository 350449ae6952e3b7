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


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS on one thread, as long as any thread of this process is inside.

    A limit belongs to the process, so that the first thread sets it and the last one lifts it: each
    for itself, one would lift it while another computes.
    """
    global _users
    with _lock:
        if _users == 0:
            _held.append(_controller().limit(limits=1, user_api="blas"))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _held.pop().restore_original_limits()
