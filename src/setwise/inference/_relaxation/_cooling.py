r"""The cooling of the Lovász relaxation, whose limit at temperature 0 is a linear program.

.. math:: \max_{s \in B(F)} \sum_i \min_j s_{ij} = \min_{p \in \Delta^N} f(p) \le \min_x E(x)

with f the Lovász extension. Any s gives a lower bound, and any p gives an upper limit on the bounds
of this relaxation. So the distance to the best bound is known at every step:

.. math:: f(p) - \sum_i \min_j s_{ij}
   = \mathrm{gap} + \sum_i (\langle s_i, p_i \rangle - \min_j s_{ij})

The first part is the duality gap of the passes, the second the smoothing error of the temperature.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.inference._relaxation._projected_logits import Descent
from setwise.inference._relaxation._relaxation import Relaxation

# The factor by which the temperature falls from stage to stage. On grids with three to five labels,
# 0.075 takes up to a sixth more passes, and 0.7 up to three quarters more.
COOLING = 0.3
# The most passes of a stage. With 5 passes, stages end too early and bounds of grids are lower. 80
# passes change nothing, because stages end sooner.
PASSES_A_STAGE = 20
_COLDEST = float(np.finfo(np.float64).tiny)  # the least temperature that is a normal float


@dataclass(frozen=True, eq=False)
class Stage:
    """The state of the cooling after the passes at one temperature.

    Attributes
    ----------
    scores : array of shape (N, L)
        s, with infinite unaries replaced by finite ones.
    temperature : float
        The temperature of the last passes; the next one is lower.
    bound : float
        The best bound so far.
    magnitude : float
        The sum of the absolute values of the terms of the bound.
        lost : float
            The possible rounding error of the bound, without that of its sum.
    slack : float
        No bound of this relaxation exceeds the best one so far by more than this.
    n_iter : int
        The number of passes so far.
    """

    scores: FloatArray
    temperature: float
    bound: float
    magnitude: float
    lost: float
    slack: float
    n_iter: int


def begin(relaxation: Relaxation, n_threads: int) -> Descent:
    """Return the descent at the first temperature."""
    return Descent(relaxation, first_temperature(relaxation), n_threads)


def stages(descent: Descent, max_iter: int) -> Iterator[Stage]:
    """Yield stages of falling temperature, with at most ``max_iter`` passes in all.

    A stage ends when the duality gap is at most a tenth of the smoothing error, or after 20 passes.
    If the gap is then larger than the smoothing error, the next stage has the same temperature. If
    the relaxation is integral (two labels), all temperatures have the same passes and the same
    minimiser; so the temperature stays, and only p is evaluated near 0.

    The caller ends the iteration. It has access to the descent, whose best bound is valid after
    every pass, so a stage may end at any time.
    """
    return _Stages(descent, max_iter)


class _Stages(Iterator[Stage]):
    """An iterator over stages. It is no generator, because closing one can lose a Ctrl-C."""

    def __init__(self, descent: Descent, max_iter: int) -> None:
        self._descent, self._limit = descent, max_iter
        self._cools = not descent.is_integral
        self._least, self._most = max(descent.temperature * 1e-9, _COLDEST), inf
        self._left: tuple[float, float] | None = None
        self._lost = 0.0

    def __next__(self) -> Stage:
        descent = self._descent
        if self._left is not None:
            if descent.n_iter >= self._limit:
                raise StopIteration
            self._descend(*self._left)
        cooler = 1.0 if self._cools else max(1e-6, _COLDEST / descent.temperature)
        undone, smoothed = self._left = descent.slack(cooler)
        self._most = min(self._most, descent.bound + undone + smoothed)
        slack = max(self._most - descent.best_bound, 0.0)
        scores, bound = descent.scores(), descent.best_bound
        self._lost = max(self._lost, descent.rounding())
        magnitude, n_iter = descent.magnitude(), descent.n_iter
        return Stage(scores, descent.temperature, bound, magnitude, self._lost, slack, n_iter)

    def _descend(self, undone: float, smoothed: float) -> None:
        """Make the passes of the next stage, given the gap and smoothing error of the last."""
        descent, cools = self._descent, self._cools
        if descent.n_iter > 0 and cools and undone <= smoothed:
            descent.set_temperature(max(descent.temperature * COOLING, self._least))
        passes = PASSES_A_STAGE if cools else max(3, min(descent.n_iter // 4, PASSES_A_STAGE))
        for done in range(1, passes + 1):
            descent.sweep()
            if descent.n_iter >= self._limit:
                break
            if cools and done % 3 == 0:
                undone, smoothed = descent.slack()
                if undone <= 0.1 * smoothed:
                    break


def first_temperature(relaxation: Relaxation) -> float:
    """Return the typical difference of unaries, limited by the changes that groups can make."""
    finite = relaxation.unary[np.isfinite(relaxation.unary)]
    scales = [scale for group in relaxation.groups if (scale := group.scale) > 0]
    spread = float(finite.std()) if finite.size else 0.0
    if not scales:
        return max(spread, _COLDEST) if spread else 1.0
    return max(0.3 * min(max(spread, min(scales)), max(scales)), _COLDEST)
