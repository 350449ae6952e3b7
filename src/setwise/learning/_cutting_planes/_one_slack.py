"""One-slack cutting planes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, as_count, as_function, as_subset
from setwise._foundation._deadline import Deadline
from setwise._foundation._display import check_display, progress_callback
from setwise._foundation._progress import Progress
from setwise.learning._cutting_planes._bundle import Bundle
from setwise.learning._cutting_planes._fit import Fit
from setwise.learning._cutting_planes._level import Level
from setwise.learning._cutting_planes._parted_oracle import recombine
from setwise.learning._cutting_planes._search import MOST_WEIGHTS, Search
from setwise.learning._cutting_planes._start import begin

Oracle = Callable[[FloatArray], tuple[float, FloatArray]]


def one_slack(
    oracle: Oracle,
    dimension: int,
    C: float = 1.0,
    *,
    tol: float = 1e-3,
    max_iter: int = 10_000,
    time_limit: float | None = None,
    nonnegative: ArrayLike = (),
    least_risk: float | None = 0.0,
    init: Fit | ArrayLike | None = None,
    verbose: bool = False,
    callback: Callable[[Progress], object] | None = None,
) -> Fit:
    r"""Minimise 1/2 |w|^2 + C risk(w) for a convex risk, by cutting planes.

    Each round asks the oracle for the risk and a subgradient, which give a plane below the risk.
    The quadratic program over all planes (a few variables) gives a lower bound. The next
    question is the model's optimum with a pull towards the best weights met,

    .. math:: \arg\min_w \tfrac12 |w|^2 + C \max_k (b_k + \langle a_k, w \rangle)
        + \tfrac{u}{2} |w - w_{best}|^2 ,

    where u follows a level: the model's objective there shall lie 0.7 of the way from the bound to
    the best value. The best weights met are kept.

    A round costs one call of the oracle, O(k d) for k planes, and two quadratic programs in k
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
        Stop when the relative gap is at most this: value - bound as a share of what there is to
        gain over w = 0, P(0) - bound, and of what is left to lose, value - C ``least_risk``. It
        depends on no unit. 0 asks for a gap within rounding.
    max_iter : int
        The most rounds.
    time_limit : float, optional
        The most seconds: then the fit ends with the best weights so far, a bound that holds, and
        ``reason`` says so. The clock is looked at before each call of the oracle, and the first
        round is made in any case. The answer then depends on the machine and on what else it does;
        without a limit, or within it, it does not.
    nonnegative : indices or boolean mask
        Coordinates of w that must not be negative.
    least_risk : float, optional
        A number that the risk never falls below, a plane for nothing; None if there is none.
    init : Fit or array of shape (d,), optional
        An earlier fit of the same risk with any C: its planes hold for every C. It saves the
        rounds that lead to the neighbourhood of the minimum; the last ones, which prove it, are
        to be made for every C anew, unless C is large or has hardly changed. Or weights to begin
        at, whatever they come from: the answer is never worse than they are.
    verbose : bool
        Show value, bound, gap and seconds on stderr: a bar in a terminal or a notebook (with rich),
        else lines.
    callback : callable, optional
        Called with a ``Progress`` after each round; the fit stops when it returns
        something true.

    Returns
    -------
    Fit
        With ``w``, ``value``, ``bound``, ``gap``, ``n_iter``, ``history``, ``reason``, ``timings``.
        Ctrl-C stops the fit too and gives the best weights so far, with ``interrupted`` True. A fit
        whose gap stands still ends as well, with ``converged`` False.

    References
    ----------
    T. Joachims, T. Finley, C.-N. Yu, Cutting-plane training of structural SVMs, 2009.
    C. Lemaréchal, A. Nemirovskii, Y. Nesterov, New variants of bundle methods, 1995 (levels).

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
    check_display(verbose, callback)
    if verbose:
        with progress_callback(True, tol, callback) as shown:
            return one_slack(
                oracle,
                dimension,
                C,
                tol=tol,
                max_iter=max_iter,
                time_limit=Deadline.of(time_limit, armed=False).inherited,
                nonnegative=nonnegative,
                least_risk=least_risk,
                init=init,
                callback=shown,
            )
    as_function(oracle, "oracle", "w")
    dimension = as_count(dimension, "dimension", most=MOST_WEIGHTS)
    search = Search(dimension, C, tol, max_iter, callback, least_risk, time_limit=time_limit)
    bundle = Bundle(dimension, as_subset(nonnegative, dimension, "nonnegative"))
    if search.least is not None:
        bundle.add(np.zeros((1, dimension)), np.array([search.least]))
    w = search.best
    if init is not None:
        w = begin(init, oracle, search, bundle)
    level = Level()
    highest = getattr(oracle, "_highest", None)  # of parts that can be combined anew
    try:
        while True:
            risk, slope = search.ask(oracle, w)
            before = search.value
            level.learn(search.offer(w, risk), before)
            along = slope * w
            size = abs(risk) + float(np.abs(along).sum())
            bundle.add(slope[None, :], np.array([risk - along.sum()]), np.array([size]))
            if highest is not None:
                recombine(highest, bundle, search)
            lower = bundle.bound(search.C)
            bundle.drop_idle()
            if search.end_round(lower.value, lower.size):
                break
            cold = len(search.rounds) == 1 and init is None  # no model to distrust yet
            w = level.ask(bundle, search, freely=cold)
    except KeyboardInterrupt:
        search.interrupt()
    return search.fit("one_slack", bundle.planes())
