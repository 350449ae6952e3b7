"""Cutting planes with a slack per example."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from setwise._foundation._arguments import MOST_ENTRIES, FloatArray, as_count, as_function
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS
from setwise._foundation._progress import Progress, displayed
from setwise.learning._cutting_planes._blocks import Block, ExampleOracle, evaluate
from setwise.learning._cutting_planes._fit import Fit
from setwise.learning._cutting_planes._learner import Learner

# A line search follows every _LEAP sweeps. If the sweeps follow a long valley of the dual, their
# joint step then has its direction. Not tuned.
_LEAP = 30


@displayed("fit")
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

    This solves the problem of ``one_slack`` with a finer model. Each round asks for a plane of
    every example, stores it if it is above the known planes, and maximises the dual over all planes
    by moving weight between pairs of planes. It takes fewer rounds than ``one_slack``, each with a
    larger master problem: O(planes d) memory and O(n d) per sweep.

    Parameters
    ----------
    oracle : callable
        A function (i, w) -> (risk of example i, subgradient). Risks must be nonnegative.
    n : int
        The number of examples.
    dimension : int
        The length of w.
    C, tol, max_iter, time_limit, verbose, callback
        See ``one_slack``.

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
    as_function(oracle, "oracle", "i", "w")
    dimension = as_count(dimension, "dimension", most=MOST_ENTRIES)
    learner = _NSlack(dimension, C, tol, max_iter, callback, time_limit=time_limit)
    learner.start(oracle, as_count(n, "n"))
    return learner.fit()


class _NSlack(Learner):
    """The learner with planes of each example, and a dual over all planes."""

    name = "n_slack"

    def start(self, oracle: ExampleOracle, n: int) -> None:
        """Set up a block per example."""
        self._oracle = oracle
        self._blocks = [Block(len(self.best)) for _ in range(n)]
        self._w = np.zeros(len(self.best))
        self._is_first = True

    def step(self) -> bool:
        blocks, w = self._blocks, self._w
        _, planes = evaluate(self._oracle, len(blocks), w, self)
        for block, (height, slope) in zip(blocks, planes, strict=True):
            along = slope * w
            terms = abs(height) + float(np.abs(along).sum())
            if height > block.slack(w) + FEW_ROUNDINGS * EPS * terms:
                block.add(slope, height - float(along.sum()))
        # The required accuracy of the dual depends on the gap.
        gap_scale = self.value if self._is_first else self.gap_scale  # initially P(0) - 0
        enough = max(self.tol * gap_scale, self.rounding)
        _maximize(blocks, w, self, 0.1 * enough / (self.C * max(len(blocks), 1)))
        self.know_blocks(self.C * np.array([float(b.offsets @ b.alpha) for b in blocks]), w)
        self._is_first = False
        return False


def _maximize(blocks: list[Block], w: FloatArray, learner: Learner, accuracy: float) -> None:
    """Sweep over the blocks until the planes in use of each block are nearly equally high."""
    C = learner.C
    movable = [block for block in blocks if len(block.alpha) > 1]
    for sweep in range(1, 101):
        learner.deadline.check()
        leap = sweep % _LEAP == 0
        before, w_before = ([b.alpha.copy() for b in movable], w.copy()) if leap else ([], w)
        apart = max((block.improve(w, C) for block in movable), default=0.0)
        if apart <= accuracy:
            break
        if leap:
            changes = [block.alpha - alpha for block, alpha in zip(movable, before, strict=True)]
            if max(float(np.abs(change).max()) for change in changes) > EPS**0.5:  # else rounding
                _go_on(movable, changes, w, w - w_before, C)
                _sum_anew(blocks, w, C)
    for block in blocks:
        block.drop_idle()
    _sum_anew(blocks, w, C)


def _sum_anew(blocks: list[Block], w: FloatArray, C: float) -> None:
    """Recompute w as a sum, so that rounding errors of many small steps do not accumulate."""
    w[:] = 0.0
    for block in blocks:
        w -= C * (block.alpha @ block.slopes)


def _go_on(
    blocks: list[Block], changes: list[FloatArray], w: FloatArray, along: FloatArray, C: float
) -> None:
    r"""Move along the direction of a sweep to the feasible point with the highest dual.

    If blocks compete with each other, sweeps follow a long valley in tiny steps. Along the valley
    the dual is a parabola, :math:`t \langle b, \delta \rangle C - |w + t d|^2 / 2`.
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
