"""How many threads an argument ``n_jobs`` stands for."""

from __future__ import annotations

import os

import numpy as np

MOST_THREADS = 1024


def as_jobs(n_jobs: object) -> int | None:
    """``n_jobs`` as it was given, if it is a number of threads, of cores to leave out, or None."""
    if n_jobs is None:
        return None
    if isinstance(n_jobs, bool | np.bool_) or not isinstance(n_jobs, int | np.integer):
        raise TypeError(f"n_jobs must be an integer or None, got {type(n_jobs).__name__}")
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0, got 0: -1 is all cores, -2 all but one")
    return int(n_jobs)


def as_threads(n_jobs: object, *, default: int = -1) -> int:
    """``n_jobs`` threads; -1 for as many as this process may run on, -2 for one less, and so on.

    None is the ``default``. At least 1, at most 1024.
    """
    given = as_jobs(n_jobs)
    jobs = default if given is None else given
    if jobs < 0:
        if hasattr(os, "sched_getaffinity"):
            available = len(os.sched_getaffinity(0))
        else:  # neither macOS nor Windows has it
            available = os.cpu_count() or 1
        jobs = max(available + 1 + jobs, 1)
    return min(jobs, MOST_THREADS)
