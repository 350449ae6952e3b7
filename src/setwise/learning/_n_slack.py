"""Cutting planes with a slack for each example."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np

from setwise.functions._arguments import FloatArray, as_count, as_number
from setwise.learning._blocks import Block, ExampleOracle, evaluate
from setwise.learning._fit import Fit, Log, Planes, Progress


def n_slack(
    oracle: ExampleOracle,
    n: int,
    dimension: int,
    C: float = 1.0,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    callback: Callable[[Progress], object] | None = None,
) -> Fit:
    r"""Minimise 1/2 |w|^2 + C sum_i risk_i(w) with planes for each example.

    The problem of ``one_slack``, with a finer model: each round asks for the plane of every
    example, keeps those that rise above the planes it has, and maximises the dual over all of them
    by moving weight between pairs of planes. Fewer rounds than one slack, each with a larger
    master problem: O(planes d) memory and O(n d) for each sweep.

    Parameters
    ----------
    oracle : callable
        (i, w) -> (risk of example i, subgradient); no risk may be negative.
    n : int
        Number of examples.
    dimension : int
        Length of w.
    C, tol, max_iter, callback
        As in ``one_slack``.

    Returns
    -------
    Fit

    Examples
    --------
    >>> import numpy as np
    >>> from setwise.learning import n_slack
    >>> def hinge(i, w):
    ...     slack = 1 - 2 * w[0]
    ...     return max(slack, 0.0), np.array([-2.0 if slack > 0 else 0.0])
    >>> n_slack(hinge, 1, 1, C=10.0, tol=1e-6).w.round(4).tolist()
    [0.5]
    """
    C = as_number(C, "C", positive=True)
    tol = as_number(tol, "tol", nonnegative=True)
    limit = as_count(max_iter, "max_iter", least=1)
    blocks = [Block(dimension) for _ in range(as_count(n, "n"))]
    start, log = perf_counter(), Log()
    w = np.zeros(dimension)
    best, value, bound = w.copy(), np.inf, -np.inf
    interrupted = False
    while True:
        try:
            risk, planes = evaluate(oracle, n, w)
            objective = 0.5 * float(w @ w) + C * risk
            if objective < value:
                best, value = w.copy(), objective
            for block, (height, slope) in zip(blocks, planes, strict=True):
                if height > block.slack(w) + 1e-12:
                    block.add(slope, height - float(slope @ w))
            _maximize(blocks, w, C, accuracy=0.1 * tol * max(1.0, abs(value)) / max(1, C * n))
        except KeyboardInterrupt:
            if not log.rows:
                raise
            interrupted = True
            break
        dual = C * sum(float(b.offsets @ b.alpha) for b in blocks) - 0.5 * float(w @ w)
        bound = min(max(bound, dual), value)
        progress = log.add(value, bound, perf_counter() - start)
        if callback is not None and callback(progress) is True:
            interrupted = progress.relative_gap > tol
            break
        if progress.relative_gap <= tol or progress.n_iter == limit:
            break
    return Fit(
        w=best,
        value=value,
        bound=bound,
        n_iter=len(log.rows),
        converged=log.rows[-1].relative_gap <= tol,
        interrupted=interrupted,
        history=log.history(),
        planes=Planes(np.empty((0, dimension)), np.empty(0)),
    )


def _maximize(blocks: list[Block], w: FloatArray, C: float, accuracy: float) -> None:
    """Sweeps over the blocks until their planes in use are level to the accuracy."""
    for _ in range(100):
        apart = 0.0
        for block in blocks:
            if len(block.alpha) > 1:
                apart = max(apart, block.improve(w, C))
        if apart <= accuracy:
            break
    for block in blocks:
        block.drop_idle()
    # The sum is made anew: rounding of many small steps does not build up.
    w[:] = 0.0
    for block in blocks:
        w -= C * (block.alpha @ block.slopes)
