"""Decisions: every loss with a suitable method, in all layouts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import setwise as sw
from benchmarks.problems import Problem


def answer(*args: Any, **options: Any) -> Any:
    """Return the values on which two builds must agree; empty for builds without decisions."""
    if not hasattr(sw, "decide"):
        return []
    found = sw.decide(*args, **options)
    return [found.mask, found.expected, found.bound, found.exact, found.method]


def timed() -> Iterator[Problem]:
    """Yield large sets and many small ones."""
    rng = np.random.default_rng(0)
    large, rows = rng.random(1_000_000), rng.random((20_000, 14))
    for loss in ("jaccard", "dice"):
        yield f"{loss}, 1e6", partial(answer, large, loss, n_jobs=1)
        yield f"{loss}, 20000 x 14", partial(answer, rows, loss, n_jobs=1)


def wide() -> Iterator[Problem]:
    """Yield every named loss, sizes, weights and ragged sets."""
    rng = np.random.default_rng(0)
    for loss in sw.losses.names():
        for n in (1, 5, 30):
            yield f"{loss}, {n}", partial(answer, rng.random((3, n)), loss, n_jobs=1)
    p, weights = rng.random(12), rng.random(12)
    yield "weighted", partial(answer, p, "jaccard", weights=weights)
    yield "ragged", partial(answer, p, "dice", offsets=np.array([0, 3, 3, 12]))
    yield "grouped", partial(answer, p, "dice", groups=rng.integers(0, 4, 12))
