"""Cutting planes with a slack for each example."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from setwise._foundation._arguments import FloatArray, as_count, as_function
from setwise._foundation._certificate import EPS
from setwise._foundation._deadline import Deadline
from setwise._foundation._display import check_display, progress_callback
from setwise._foundation._progress import Progress
from setwise.learning._cutting_planes._blocks import Block, ExampleOracle, evaluate
from setwise.learning._cutting_planes._fit import Fit
from setwise.learning._cutting_planes._search import MOST_WEIGHTS, Search

# A sweep that changes weights by less has no direction but that of rounding.
_SURE = 1e-8
# After so many sweeps their direction is that of the valley, if they are in one.
_LEAP = 30


def n_slack(
    oracle: ExampleOracle,
    n: int,
    dimension: int,
    C: float = 1.0,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    time_limit: float | None = None,
    verbose: bool = False,
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
    C, tol, max_iter, time_limit, verbose, callback
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
    check_display(verbose, callback)
    if verbose:
        with progress_callback(True, tol, callback) as shown:
            return n_slack(
                oracle,
                n,
                dimension,
                C,
                tol=tol,
                max_iter=max_iter,
                time_limit=Deadline.of(time_limit, armed=False).inherited,
                callback=shown,
            )
    as_function(oracle, "oracle", "i", "w")
    dimension = as_count(dimension, "dimension", most=MOST_WEIGHTS)
    search = Search(dimension, C, tol, max_iter, callback, time_limit=time_limit)
    blocks = [Block(dimension) for _ in range(as_count(n, "n"))]
    w = np.zeros(dimension)
    try:
        while True:
            _, planes = evaluate(oracle, n, w, search)
            for block, (height, slope) in zip(blocks, planes, strict=True):
                along = slope * w
                terms = abs(height) + float(np.abs(along).sum())
                if height > block.slack(w) + 8 * EPS * terms:
                    block.add(slope, height - float(along.sum()))
            # The dual is then as near its maximum as the gap needs it.
            room = search.room if search.rounds else search.value  # P(0) - 0, to begin with
            enough = max(search.tol * room, search.rounding)
            _maximize(blocks, w, search, 0.1 * enough / (search.C * max(n, 1)))
            heights = search.C * np.array([float(b.offsets @ b.alpha) for b in blocks])
            if search.end_round_of_blocks(heights, w):
                break
    except KeyboardInterrupt:
        search.interrupt()
    return search.fit("n_slack")


def _maximize(blocks: list[Block], w: FloatArray, search: Search, accuracy: float) -> None:
    """Sweeps over the blocks until their planes in use are level to the accuracy."""
    C = search.C
    movable = [block for block in blocks if len(block.alpha) > 1]
    for sweep in range(1, 101):
        search.deadline.check()
        leap = sweep % _LEAP == 0
        before, w_before = ([b.alpha.copy() for b in movable], w.copy()) if leap else ([], w)
        apart = max((block.improve(w, C) for block in movable), default=0.0)
        if apart <= accuracy:
            break
        if leap:
            changes = [block.alpha - alpha for block, alpha in zip(movable, before, strict=True)]
            if max(float(np.abs(change).max()) for change in changes) > _SURE:
                _go_on(movable, changes, w, w - w_before, C)
                _sum_anew(blocks, w, C)
    for block in blocks:
        block.drop_idle()
    _sum_anew(blocks, w, C)


def _sum_anew(blocks: list[Block], w: FloatArray, C: float) -> None:
    """w as the sum that it is: rounding of many small steps does not build up."""
    w[:] = 0.0
    for block in blocks:
        w -= C * (block.alpha @ block.slopes)


def _go_on(
    blocks: list[Block], changes: list[FloatArray], w: FloatArray, along: FloatArray, C: float
) -> None:
    r"""On in the direction of a sweep, to the highest dual in reach.

    Where blocks pull against each other the sweeps follow a valley in tiny steps, however long it
    is. The dual is a parabola along it, :math:`t \langle b, \delta \rangle C - |w + t d|^2 / 2`.
    """
    linear = C * sum(float(b.offsets @ change) for b, change in zip(blocks, changes, strict=True))
    slope, curvature = linear - float(w @ along), float(along @ along)
    if slope <= 0.0:
        return
    step = slope / curvature if curvature > 0.0 else np.inf
    for block, change in zip(blocks, changes, strict=True):
        falls = change < 0.0
        step = min(step, float((block.alpha[falls] / -change[falls]).min(initial=np.inf)))
    if not 0.0 < step < np.inf:
        return
    for block, change in zip(blocks, changes, strict=True):
        block.alpha = np.maximum(block.alpha + step * change, 0.0)
        block.alpha /= block.alpha.sum()
