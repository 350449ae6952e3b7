"""How many threads an argument ``n_jobs`` stands for."""

from __future__ import annotations

import os

import numpy as np

from setwise._foundation._arguments import as_count


def as_threads(n_jobs: object) -> int:
    """None and -1: as many as this process may run on; otherwise ``n_jobs``, at least 1."""
    if n_jobs is None or (isinstance(n_jobs, int | np.integer) and n_jobs == -1):
        if hasattr(os, "sched_getaffinity"):
            available = len(os.sched_getaffinity(0))
        else:  # neither macOS nor Windows has it
            available = os.cpu_count() or 1
    else:
        available = as_count(n_jobs, "n_jobs", least=1)
    return min(available, 1024)
