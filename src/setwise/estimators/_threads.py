"""How many threads an estimator's ``n_jobs`` stands for."""

from __future__ import annotations

import numpy as np
from joblib import effective_n_jobs


def threads(n_jobs: int | None) -> int:
    """None is one, -1 all cores, as in scikit-learn."""
    if n_jobs is not None and (
        isinstance(n_jobs, bool | np.bool_) or not isinstance(n_jobs, int | np.integer)
    ):
        raise TypeError(f"n_jobs must be an integer or None, got {type(n_jobs).__name__}")
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0, got 0: None is one thread, -1 all cores")
    return int(effective_n_jobs(n_jobs))
