"""Readers for the argument ``n_jobs``, the number of threads."""

from __future__ import annotations

import os

import numpy as np

MOST_THREADS = 1024  # larger numbers are reduced to this one


def as_jobs(n_jobs: object) -> int | None:
    """Return ``n_jobs`` after checking that it is None or a nonzero integer."""
    if n_jobs is None:
        return None
    if isinstance(n_jobs, bool | np.bool_) or not isinstance(n_jobs, int | np.integer):
        raise TypeError(f"n_jobs must be an integer or None, got {type(n_jobs).__name__}")
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0, got 0: -1 is all cores, -2 all but one")
    return int(n_jobs)


def as_threads(n_jobs: object, *, default: int = -1) -> int:
    """Return the number of threads: -1 means all cores of this process, -2 one fewer, and so on.

    None means ``default``. The result is between 1 and 1024.
    """
    given = as_jobs(n_jobs)
    jobs = default if given is None else given
    if jobs < 0:
        if hasattr(os, "sched_getaffinity"):
            available = len(os.sched_getaffinity(0))
        else:  # macOS and Windows
            available = os.cpu_count() or 1
        jobs = max(available + 1 + jobs, 1)
    return min(jobs, MOST_THREADS)
