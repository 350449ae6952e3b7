"""The number of threads of an estimator's ``n_jobs``."""

from __future__ import annotations

from joblib import effective_n_jobs

from setwise._foundation._threads import MOST_THREADS, as_jobs
from setwise.learning import Serial, Threads
from setwise.learning._executors import Executor


def threads(n_jobs: int | None) -> int:
    """Return the number of threads, which is one for None; joblib's workers limit it further."""
    return min(int(effective_n_jobs(as_jobs(n_jobs))), MOST_THREADS)


def executor_of(n_jobs: int | None) -> Executor:
    """Return the executor of that number of threads."""
    count = threads(n_jobs)
    return Serial() if count == 1 else Threads(count)
