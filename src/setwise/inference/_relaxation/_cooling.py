r"""The Lovász relaxation cooled down: its limit at temperature 0 is a linear programme.

.. math:: \max_{s \in B(F)} \sum_i \min_j s_{ij} = \min_{p \in \Delta^N} f(p) \le \min_x E(x)

with f the Lovász extension. Any s gives a bound and any p the most that a bound of this relaxation
can be, so the distance to the end is known at every step:

.. math:: f(p) - \sum_i \min_j s_{ij}
   = \mathrm{gap} + \sum_i (\langle s_i, p_i \rangle - \min_j s_{ij})

the first part is what the passes have not done, the second what the temperature has smoothed away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.inference._relaxation._projected_logits import Descent
from setwise.inference._relaxation._relaxation import Relaxation

COOLING = 0.3
PASSES_A_STAGE = 20
_COLDEST = float(np.finfo(np.float64).tiny)  # beyond which a temperature loses its digits


@dataclass(frozen=True, eq=False)
class Stage:
    """Where the cooling stands after the passes at one temperature.

    Attributes
    ----------
    scores : array of shape (N, L)
        s, infinite unaries counting as finite ones.
    temperature : float
        The one of the passes so far; the next is lower.
    bound : float
        The best bound so far.
    paid : float
        The sum of the sizes of what the bound is a sum of.
    slack : float
        No bound of this relaxation is above the best one so far plus this.
    n_iter : int
        Passes so far.
    """

    scores: FloatArray
    temperature: float
    bound: float
    paid: float
    slack: float
    n_iter: int


def begin(relaxation: Relaxation, n_threads: int) -> Descent:
    """The descent at the first temperature."""
    return Descent(relaxation, first_temperature(relaxation), n_threads)


def stages(descent: Descent, max_iter: int) -> Iterator[Stage]:
    """Stages of falling temperature, ``max_iter`` passes in all at most; the caller ends it.

    A stage lasts until the passes have left a tenth undone of what the temperature smooths away, 20
    passes at most; it is followed by one at the same temperature where they have left more than
    all. Where the relaxation is integral (two labels), every temperature has the same passes and
    the same minimiser, so the temperature stays and p alone is taken near 0.

    The caller holds the descent: its best bound is there after every pass, whatever ends a stage.
    """
    return _Stages(descent, max_iter)


class _Stages(Iterator[Stage]):
    """No generator: Python closes one that is let go of, and Ctrl-C would be lost in there."""

    def __init__(self, descent: Descent, max_iter: int) -> None:
        self._descent, self._limit = descent, max_iter
        self._cools = not descent.is_integral
        self._least, self._most = max(descent.temperature * 1e-9, _COLDEST), inf
        self._left: tuple[float, float] | None = None

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
        return Stage(scores, descent.temperature, bound, descent.paid(), slack, descent.n_iter)

    def _descend(self, undone: float, smoothed: float) -> None:
        """The passes of the next stage, after what the last one left undone and smoothed."""
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
    """About what the unaries differ, but within what the groups can do to a variable."""
    finite = relaxation.unary[np.isfinite(relaxation.unary)]
    scales = [scale for group in relaxation.groups if (scale := group.scale) > 0]
    spread = float(finite.std()) if finite.size else 0.0
    if not scales:
        return max(spread, _COLDEST) if spread else 1.0
    return max(0.3 * min(max(spread, min(scales)), max(scales)), _COLDEST)
