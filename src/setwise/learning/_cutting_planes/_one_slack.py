"""One-slack cutting planes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    MOST_ENTRIES,
    FloatArray,
    IntArray,
    as_count,
    as_function,
    as_numbers,
    as_subset,
)
from setwise._foundation._progress import Progress, displayed
from setwise.learning._cutting_planes._bundle import Bundle
from setwise.learning._cutting_planes._fit import Fit, Planes
from setwise.learning._cutting_planes._learner import Learner
from setwise.learning._cutting_planes._level import Level
from setwise.learning._cutting_planes._parted_oracle import recombine

Oracle = Callable[[FloatArray], tuple[float, FloatArray]]


@displayed("fit")
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
    The quadratic program over all planes (a few variables) gives a lower bound. The next point is
    the model's optimum with a pull towards the best weights found,

    .. math:: \arg\min_w \tfrac12 |w|^2 + C \max_k (b_k + \langle a_k, w \rangle)
        + \tfrac{u}{2} |w - w_{best}|^2 ,

    where u is adapted so that the model's objective lies about 0.7 of the way from the bound to the
    best value. The best weights found are returned.

    A round costs one call of the oracle, O(k d) for k planes, and two quadratic programs in k
    variables. The number of rounds depends on C and ``tol``, not on the number of examples.

    Parameters
    ----------
    oracle : callable
        A function w -> (risk, subgradient), with the risk summed over the sets.
    dimension : int
        The length of w.
    C : float
        The weight of the risk, positive.
    tol : float
        Stop when the relative gap is at most this: value - bound as a share of the largest possible
        gain over w = 0, P(0) - bound, and of value - C ``least_risk``. It does not depend on units.
        With 0 the gap must be within rounding errors.
    max_iter : int
        The largest number of rounds.
    time_limit : float, optional
        The largest number of seconds. After it, the fit ends with the best weights so far and a
        valid bound, and ``reason`` mentions it. The time is checked before each call of the oracle,
        and the first round is always made. Only if the limit is reached does the result depend on
        the speed of the machine.
    nonnegative : indices or boolean mask
        The coordinates of w that are constrained to be nonnegative.
    least_risk : float, optional
        A lower bound of the risk, which serves as the first plane, or None if there is none.
    init : Fit or array of shape (d,), optional
        An earlier fit of the same risk with any C, whose planes hold for every C. This saves the
        rounds that approach the minimum. The last rounds, which prove the minimum, must be repeated
        unless C is large or has hardly changed. Alternatively, initial weights: the result is never
        worse than they are.
    verbose : bool
        Show value, bound, gap and seconds on stderr, as a bar in a terminal or a notebook (with
        rich), else as lines.
    callback : callable, optional
        Called with a ``Progress`` after each round. A true return value stops the fit.

    Returns
    -------
    Fit
        The weights ``w``, ``value``, ``bound``, ``gap``, ``n_iter``, ``history``, ``reason`` and
        ``timings``. Ctrl-C also stops the fit: then the weights are the best so far, and
        ``interrupted`` is True. A fit whose gap no longer improves ends with ``converged`` False.

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
    as_function(oracle, "oracle", "w")
    dimension = as_count(dimension, "dimension", most=MOST_ENTRIES)
    learner = _OneSlack(dimension, C, tol, max_iter, callback, least_risk, time_limit=time_limit)
    learner.start(oracle, as_subset(nonnegative, dimension, "nonnegative"), init)
    return learner.fit()


class _OneSlack(Learner):
    """The learner with planes of the whole risk, one per round."""

    name = "one_slack"

    def start(self, oracle: Oracle, nonnegative: IntArray, init: Fit | ArrayLike | None) -> None:
        """Set up the model, with the planes of an earlier fit."""
        dimension = len(self.best)
        self._oracle = oracle
        self._bundle = bundle = Bundle(dimension, nonnegative)
        if self.least is not None:
            bundle.add(np.zeros((1, dimension)), np.array([self.least]))
        self._w = self.best if init is None else _begin(init, oracle, self, bundle)
        self._level = Level()
        self._n_asked = 0
        self._is_cold = init is None
        # Only an oracle for a sum of parts has this method.
        self._highest = getattr(oracle, "_highest", None)

    def step(self) -> bool:
        bundle = self._bundle
        if self._n_asked:
            cold = self._n_asked == 1 and self._is_cold  # a level needs more than one plane
            self._w = self._level.ask(bundle, self, freely=cold)
        w = self._w
        risk, slope = self.ask(self._oracle, w)
        self._n_asked += 1
        before = self.value
        self._level.learn(self.offer(w, risk), before)
        along = slope * w
        size = abs(risk) + float(np.abs(along).sum())
        bundle.add(slope[None, :], np.array([risk - along.sum()]), np.array([size]))
        if self._highest is not None:
            recombine(self._highest, bundle, self)
        lower = bundle.bound(self.C)
        bundle.drop_idle()
        self.know(lower.value, lower.size)
        return False

    def planes(self) -> Planes:
        return self._bundle.planes()


def _begin(
    init: Fit | ArrayLike,
    oracle: Callable[[FloatArray], tuple[float, FloatArray]],
    learner: Learner,
    bundle: Bundle,
) -> FloatArray:
    """Return the first weights, and add the known planes to the bundle."""
    zero = learner.best
    if isinstance(init, Fit):
        if len(init.w) != len(zero):
            raise ValueError(
                f"init must have {len(zero)} weights, as this problem has, got {len(init.w)}"
            )
        bundle.add(init.planes.slopes, init.planes.offsets)
        learner.offer(zero, init.risk_at_zero)
        w = init.w.copy()
    else:
        w = as_numbers(init, "init", shape=zero.shape)
        # The relative gap needs the risk at w = 0, so the first plane is taken at w = 0.
        risk, slope = learner.ask(oracle, zero)
        bundle.add(slope[None, :], np.array([risk]), np.array([abs(risk)]))
        learner.offer(zero, risk)
    w[bundle.nonnegative] = np.maximum(w[bundle.nonnegative], 0.0)
    return w
