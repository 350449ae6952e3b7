"""Exact minimisation of submodular functions from their greedy passes alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from setwise.functions._arguments import (
    BoolArray,
    FloatArray,
    IntArray,
    as_count,
    as_number,
    check_callback,
)
from setwise.functions._base import SetFunction, as_set_function, empty_value

if TYPE_CHECKING:
    from setwise.functions._corral import Corral

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Minimum:
    """What ``minimize`` found, and the proof of how good it is.

    Attributes
    ----------
    mask : boolean array of shape (n,)
        The best set met.
    value : float
        F(mask).
    bound : float
        No set has a lower value, if ``certified``. It is F(empty) + sum_i min(x_i, 0).
    x : array of shape (n,)
        The point of the base polytope that gives the bound.
    n_iter : int
        Greedy passes.
    converged : bool
        Whether ``relative_gap`` came down to the tolerance.
    certified : bool
        Whether F is known to be submodular. If not, ``bound`` is a number without a meaning.

    Examples
    --------
    >>> import setwise as sw
    >>> best = sw.functions.minimize(sw.functions.Modular([1.0, -2.0]))
    >>> best.value, best.bound, best.gap
    (-2.0, -2.0, 0.0)
    """

    mask: BoolArray
    value: float
    bound: float
    x: FloatArray
    n_iter: int
    converged: bool
    certified: bool

    def __post_init__(self) -> None:
        self.mask.flags.writeable = self.x.flags.writeable = False

    @property
    def gap(self) -> float:
        """Value - bound, never negative."""
        return self.value - self.bound

    @property
    def relative_gap(self) -> float:
        """Gap / max(1, abs(value))."""
        return self.gap / max(1.0, abs(self.value))

    @property
    def exact(self) -> bool:
        """Whether the set is proved to be a minimiser: certified and a relative gap <= 1e-9."""
        return self.certified and self.relative_gap <= 1e-9


def minimize(
    function: SetFunction,
    *,
    tol: float = 1e-9,
    max_iter: int | None = None,
    callback: Callable[[Minimum], object] | None = None,
) -> Minimum:
    r"""A set at which a submodular function is least, with a proof that it is.

    For every x in the base polytope B(F) of F - F(empty),

    .. math:: \min_A F(A) = F(\emptyset) + \max_{x \in B(F)} \sum_i \min(x_i, 0),

    and the point of least norm attains the maximum; its negative elements are a minimiser. Wolfe's
    algorithm finds that point: each iteration sorts x, takes the vertex that one greedy pass along
    this order gives, and moves to the point of least norm in the hull of the vertices it keeps.
    The sets tried are those of the chains it passes, the bound is the best x met: any time it is
    stopped, value and bound are valid.

    An iteration costs a sort, a greedy pass, and O(n k) for each change of the k <= n vertices
    kept. The number of iterations is of the order of n in practice.

    Parameters
    ----------
    function : SetFunction
        Submodular. When ``is_submodular`` is None the algorithm runs, the value it returns is that
        of its set, and the result has ``certified`` False: the bound then proves nothing.
    tol : float
        Stop when value - bound <= tol * max(1, abs(value)).
    max_iter : int, optional
        The most greedy passes; 1000 + 100 n if not given. It also stops, with ``converged`` False,
        when rounding keeps the norm of x from falling further.
    callback : callable, optional
        Called with the ``Minimum`` so far after each iteration; it stops when this returns True.

    Returns
    -------
    Minimum
        Its ``mask`` is one of the minimisers, where there are several.

    References
    ----------
    P. Wolfe, Finding the nearest point in a polytope, Mathematical Programming 11, 1976.
    S. Fujishige, Submodular Functions and Optimization, 2nd ed., 2005, section 7.1.

    Examples
    --------
    Two pixels that want to be in, one that wants to be out, and the price of a boundary:

    >>> import setwise as sw
    >>> F = sw.functions.Modular([-2.0, -2.0, 3.0]) + sw.functions.Cut([[0, 1], [1, 2]], n=3)
    >>> best = sw.functions.minimize(F)
    >>> best.mask.tolist(), best.value, best.exact
    ([True, True, False], -3.0, True)
    """
    from setwise.functions._corral import Corral  # loads scipy.linalg

    tol = as_number(tol, "tol", nonnegative=True)
    n = as_set_function(function).n
    limit = 1000 + 100 * n if max_iter is None else as_count(max_iter, "max_iter", least=1)
    check_callback(callback)
    if function.is_submodular is False:
        raise ValueError(f"function must be submodular to be minimised, got {function!r}")
    certified = function.is_submodular is True

    base = empty_value(function)
    mask, value = np.zeros(n, np.bool_), base
    order = np.arange(n)
    corral: Corral | None = None
    bound, norm, largest = -np.inf, np.inf, 0.0
    idle = n_iter = 0
    while True:
        n_iter += 1
        gains = function._gains(order)
        reached = _best_of_chain(function, order, base + np.cumsum(gains), value)
        if reached is not None:
            mask, value = reached
        vertex = np.empty(n)
        vertex[order] = gains
        if corral is None:
            corral, moved = Corral(vertex), True
        else:
            moved = corral.add(vertex)
        point = corral.point()
        # The vertices are rounded, and so is their mean: what lies this close to zero is zero.
        largest = max(largest, float(np.abs(gains).max(initial=0.0)))
        proof = np.where(np.abs(point) <= 8 * _EPS * largest, 0.0, point)
        lower = base + float(np.minimum(proof, 0.0).sum())
        # The norm falls in exact arithmetic. Where rounding hides its fall only a better bound
        # counts, and a long search without one is at its end.
        length = corral.length()
        idle = 0 if lower > bound or length < norm * (1 - 1e-12) else idle + 1
        norm = min(norm, length)
        if lower > bound:
            bound, x = lower, proof
        certificate = min(bound, value)
        converged = value - certificate <= tol * max(1.0, abs(value))
        result = Minimum(mask, value, certificate, x, n_iter, converged, certified)
        answer = None if callback is None else callback(result)
        stopped = isinstance(answer, bool | np.bool_) and bool(answer)
        if converged or stopped or not moved or idle > 100 + n or n_iter == limit:
            return result
        order = np.argsort(point, kind="stable")


def _best_of_chain(
    function: SetFunction, order: IntArray, values: FloatArray, value: float
) -> tuple[BoolArray, float] | None:
    """The best set of a chain and its value, if that is below ``value``."""
    if not len(order) or values.min() >= value:
        return None
    mask = np.zeros(function.n, np.bool_)
    mask[order[: values.argmin() + 1]] = True
    # What the set is worth itself: the sum of gains carries their rounding.
    reached = float(function._values(mask[None])[0])
    return (mask, reached) if reached < value else None
