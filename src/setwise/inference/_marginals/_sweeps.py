"""Sweeps over all variables until nothing moves: how a method without a gap ends."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple

from setwise.inference._marginals._options import Options


class Settled(NamedTuple):
    """How the sweeps ended."""

    n_iter: int
    converged: bool
    interrupted: bool


def settle(sweep: Callable[[int], tuple[float, float]], most: int, options: Options) -> Settled:
    """Sweep until the largest change is at most ``tol``, ``max_iter`` (or ``most``) times.

    ``sweep`` is told how many there were; it gives the largest change, and the value to report.
    """
    change, n_iter, interrupted = inf, 0, False
    limit = most if options.max_iter is None else options.max_iter
    try:
        while change > options.tol and n_iter < limit and not interrupted:
            change, value = sweep(n_iter)
            n_iter += 1
            interrupted = options.report(n_iter, value)
    except KeyboardInterrupt:
        interrupted = True
    return Settled(n_iter, change <= options.tol, interrupted)
