"""One-slack cutting planes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from setwise.functions._arguments import FloatArray, as_count, as_number, as_subset
from setwise.learning._bundle import Bundle
from setwise.learning._fit import Fit, Progress, Search, checked_answer

Oracle = Callable[[FloatArray], tuple[float, FloatArray]]

# How far from the best weights towards the model's optimum the risk is asked for next: the model is
# poor far from what has been seen, and a short step more than halves the rounds (benchmarks/).
_STEP = 0.2


def one_slack(
    oracle: Oracle,
    dimension: int,
    C: float = 1.0,
    *,
    tol: float = 1e-3,
    max_iter: int = 10_000,
    nonnegative: ArrayLike = (),
    least_risk: float | None = 0.0,
    warm_start: Fit | None = None,
    callback: Callable[[Progress], object] | None = None,
) -> Fit:
    r"""Minimise 1/2 |w|^2 + C risk(w) for a convex risk, by cutting planes.

    Each round asks the oracle for the risk and a subgradient, which give a plane below the risk,
    and solves the quadratic program over all planes (a few variables, by daqp): its value is a
    lower bound, its weights lead to the next question. The best weights met are kept.

    A round costs one call of the oracle, O(k d) for k planes, and a quadratic program in k
    variables; the number of rounds depends on C and ``tol``, not on the number of examples.

    Parameters
    ----------
    oracle : callable
        w -> (risk, subgradient), the risk summed over the sets.
    dimension : int
        Length of w.
    C : float
        Positive.
    tol : float
        Stop when (value - bound) / max(1, abs(value)) is at most this.
    max_iter : int
        The most rounds.
    nonnegative : indices or boolean mask
        Coordinates of w that must not be negative.
    least_risk : float, optional
        A number that the risk never falls below, a plane for nothing; None if there is none.
    warm_start : Fit, optional
        An earlier fit of the same risk with any C: its planes hold for every C.
    callback : callable, optional
        Called with a ``Progress`` after each round; the fit stops when it returns True.

    Returns
    -------
    Fit
        With ``w``, ``value``, ``bound``, ``gap``, ``n_iter``, ``history``. Ctrl-C stops the fit
        too and gives the best weights so far, with ``interrupted`` True.

    References
    ----------
    T. Joachims, T. Finley, C.-N. Yu, Cutting-plane training of structural SVMs, 2009.
    V. Franc, S. Sonnenburg, Optimized cutting plane algorithm, 2009 (the step from the best).

    Examples
    --------
    The hinge loss of one example x = 2, y = 1:

    >>> import numpy as np
    >>> from setwise.learning import one_slack
    >>> def hinge(w):
    ...     slack = 1 - 2 * w[0]
    ...     return max(slack, 0.0), np.array([-2.0 if slack > 0 else 0.0])
    >>> fit = one_slack(hinge, 1, C=10.0, tol=1e-6)
    >>> fit.w.round(4).tolist(), round(fit.value, 4), fit.converged
    ([0.5], 0.125, True)
    """
    C = as_number(C, "C", positive=True)
    search = Search(as_count(dimension, "dimension"), tol, max_iter, callback)
    bundle = Bundle(dimension, as_subset(nonnegative, dimension, "nonnegative"))
    if least_risk is not None:
        bundle.add(np.zeros(dimension), as_number(least_risk, "least_risk"))
    w = search.best
    if warm_start is not None:
        _take_planes(bundle, warm_start, dimension)
        w = warm_start.w.copy()
        w[bundle.nonnegative] = np.maximum(w[bundle.nonnegative], 0.0)
    try:
        while True:
            risk, slope = checked_answer(oracle(w), dimension, least_risk)
            search.offer(w, 0.5 * float(w @ w) + C * risk)
            bundle.add(slope, risk - float(slope @ w))
            optimum, lower = bundle.solve(C)
            bundle.drop_idle()
            if search.end_round(lower):
                break
            cold = len(search.rounds) == 1 and warm_start is None  # no model to distrust yet
            w = optimum if cold else search.best + _STEP * (optimum - search.best)
    except KeyboardInterrupt:
        search.interrupt()
    return search.fit(bundle.planes())


def _take_planes(bundle: Bundle, earlier: Fit, dimension: int) -> None:
    if len(earlier.w) != dimension:
        raise ValueError(
            f"warm_start must have {dimension} weights, as this problem has, got {len(earlier.w)}"
        )
    for slope, offset in zip(earlier.planes.slopes, earlier.planes.offsets, strict=True):
        bundle.add(slope, float(offset))
