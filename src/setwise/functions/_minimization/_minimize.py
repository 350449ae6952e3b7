"""Exact minimisation of submodular functions from their greedy passes alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import fsum, inf, nextafter
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from setwise._foundation._arguments import (
    BoolArray,
    FloatArray,
    IntArray,
    as_count,
    as_number,
)
from setwise._foundation._certificate import EPS, relative_gap
from setwise._foundation._deadline import Deadline
from setwise._foundation._display import check_display, progress_callback
from setwise._foundation._progress import Progress, stops
from setwise._foundation._timings import Stopwatch
from setwise.functions._base import SetFunction, as_set_function, empty_value
from setwise.functions._minimization._minimum import Minimum
from setwise.functions._minimization._proof import fall_of, mean_of, prove
from setwise.functions._numbers._parts import parts
from setwise.functions._numbers._rounding import gains_with_errors

if TYPE_CHECKING:
    from setwise.functions._minimization._corral import Corral


def minimize(
    function: SetFunction,
    *,
    tol: float = 1e-9,
    max_iter: int | None = None,
    time_limit: float | None = None,
    verbose: bool = False,
    callback: Callable[[Minimum], object] | None = None,
) -> Minimum:
    r"""A set at which a submodular function is least, with a proof that it is.

    For every x in the base polytope B(F) of F - F(empty),

    .. math:: \min_A F(A) = F(\emptyset) + \max_{x \in B(F)} \sum_i \min(x_i, 0),

    and the point of least norm attains the maximum; its negative elements are a minimiser. Wolfe's
    algorithm finds that point: each iteration sorts x, takes the vertex that one greedy pass along
    this order gives, and moves to the point of least norm in the hull of the vertices it keeps.
    The sets tried are those of the chains it passes, the bound is the best x met: any time it is
    stopped, by Ctrl-C too, value and bound are valid.

    At the end the vertices kept are taken once more, along the same orders but with the elements of
    the best set A moved to their front: then x(A) = F(A) - F(empty) whatever the numbers are, and A
    is a minimiser if no x_i is positive in A or negative outside. Each sign is asked beside the
    rounding of its own coordinate alone, so that weights of 1e-20 are not lost beside 1e20.

    An iteration costs a sort, a greedy pass, and O(n k) for each change of the k <= n vertices
    kept, the proof k passes and the room n + 1 values. The number of iterations is of the order of
    n in practice.

    Parameters
    ----------
    function : SetFunction
        Submodular. When ``is_submodular`` is None the algorithm runs, the value it returns is that
        of its set, and the result has ``certified`` False: the bound then proves nothing.
    tol : float
        Stop when ``relative_gap <= tol``: excess / room, what is not proved of what there was to
        gain.
    max_iter : int, optional
        The most greedy passes; 1000 + 100 n if not given. It also stops, with ``converged`` False,
        when rounding keeps the norm of x from falling further.
    time_limit : float, optional
        The most seconds: then the search ends with the best set and the best bound so far, without
        the last proof, and ``reason`` says so. One greedy pass is made in any case. The answer then
        depends on the machine and on what else it does; without a limit, or within it, it does not.
    verbose : bool
        Show value, bound, gap and seconds on stderr: a bar in a terminal or a notebook (with rich),
        else lines.
    callback : callable, optional
        Called with the ``Minimum`` so far after each iteration; any true value stops it.

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
    tol = as_number(tol, "tol", nonnegative=True)
    n = as_set_function(function).n
    limit = 1000 + 100 * n if max_iter is None else as_count(max_iter, "max_iter", least=1)
    check_display(verbose, callback)
    deadline, watch = Deadline.of(time_limit), Stopwatch()
    if verbose:
        nobody: Callable[[Progress], object] | None = None
        with progress_callback(True, tol, nobody, what="minimize") as show:
            return minimize(
                function,
                tol=tol,
                max_iter=max_iter,
                time_limit=deadline.inherited,
                callback=_shown(show, callback),
            )
    if function.is_submodular is False:
        raise ValueError(f"function must be submodular to be minimised, got {function!r}")
    search = _Search(function, tol)
    watch.lap("set-up")
    result = None
    try:
        while True:
            # Before the first pass there is nothing to return.
            done = search.step() if result is None else deadline.run(search.step)
            result = search.latest
            stopped = stops(callback, result)
            if done or stopped or search.n_iter == limit:
                break
        watch.lap("search")
        if search.certified:
            result = deadline.run(search.proved)
        stopped = stopped and not result.converged
    except KeyboardInterrupt:
        if result is None:
            raise
        stopped = True  # the proof, if nothing else, is missing
    if stopped:
        reason = deadline.sentence if deadline.struck else "a callback or Ctrl-C stopped it"
    elif result.converged:
        reason = f"the relative gap is within tol={tol:g}"
    else:
        at_limit = search.n_iter == limit
        reason = f"max_iter={limit} passes made" if at_limit else "rounding hides what is left"
    return replace(
        result,
        interrupted=stopped and not deadline.struck,
        reason=reason,
        timings=watch.timings("proof" if "search" in watch else "search"),
    )


def _shown(
    show: Callable[[Progress], object] | None, callback: Callable[[Minimum], object] | None
) -> Callable[[Minimum], bool]:
    """The user's callback, preceded by a display of the minimum so far."""
    began = perf_counter()

    def both(now: Minimum) -> bool:
        seconds = perf_counter() - began
        if show is not None:
            show(Progress(now.n_iter, now.value, now.bound, now.relative_gap, seconds))
        return callback is not None and bool(callback(now))

    return both


class _Search:
    """Wolfe's algorithm: the corral, the best set and the best point of the passes so far.

    All is measured from F(empty), so that no constant goes into a sum.
    """

    def __init__(self, function: SetFunction, tol: float) -> None:
        self.function, self.tol, self.n_iter = function, tol, 0
        self.certified = function.is_submodular is True
        self._parts = parts(function)
        self._base = empty_value(function)
        self._lost = np.maximum(-last_gains(function), 0.0).tolist()
        # The best set: its value, and the gains that add up to it with what they can be off by.
        self._mask, self._value = np.zeros(function.n, np.bool_), self._base
        self._gains, self._error, self._rise = np.zeros(0), 0.0, 0.0
        # The best point, and how far below F(empty) it lets a set be.
        self._x, self._fall = np.zeros(function.n), -inf
        self._order = np.arange(function.n)
        self._corral: Corral | None = None
        self._norm, self._idle = inf, 0

    def step(self) -> bool:
        """One greedy pass; whether there is nothing more to do."""
        from setwise.functions._minimization._corral import Corral  # loads scipy.linalg

        self.n_iter += 1
        order = self._order
        gains, errors = gains_with_errors(self.function, order)
        self._try_chain(order, gains, errors)
        vertex, wrong = np.empty_like(gains), np.empty_like(gains)
        vertex[order], wrong[order] = gains, errors
        moved = True
        if self._corral is None:
            self._corral = Corral(vertex, (order, wrong))
        else:
            moved = self._corral.add(vertex, (order, wrong))
        # The norm falls in exact arithmetic. Where rounding hides its fall only a better bound
        # counts, and a long search without one is at its end.
        length = self._corral.length()
        better = self._try_point(self._corral)
        self._idle = 0 if better or length < self._norm * (1 - 1e-12) else self._idle + 1
        self._norm = min(self._norm, length)
        self._order = np.argsort(self._corral.point(), kind="stable")
        self.latest = self._result()
        return self.latest.converged or not moved or self._idle > 100 + self.function.n

    def _try_chain(self, order: IntArray, gains: FloatArray, errors: FloatArray) -> None:
        """The best set of the chain, if it is better than the best so far."""
        rises = np.cumsum(gains)
        if not len(order) or rises.min() >= self._rise:
            return
        size = int(rises.argmin()) + 1
        self._rise, self._gains = float(rises[size - 1]), gains[:size]
        summed = 0.0 if self._parts.exact else size * EPS * float(np.abs(gains[:size]).sum())
        self._error = float(errors[:size].sum()) + summed
        self._mask = np.zeros(self.function.n, np.bool_)
        self._mask[order[:size]] = True
        self._value = float(self.function._values(self._mask[None])[0])

    def _try_point(self, corral: Corral) -> bool:
        """What the point of the corral proves; whether that is more than the best so far."""
        errors = None if self._parts.exact else np.array([tag[1] for tag in corral.tags])
        point, wrong, _ = mean_of(corral.weights, corral.vertices, errors)
        fall = fall_of(self.function, point, wrong)
        if fall <= self._fall:
            return False
        self._x, self._fall = point, fall
        return True

    def _result(self) -> Minimum:
        """The best set and the best point, whatever belongs to whichever."""
        excess = self._rise + self._error - self._fall
        return self._record(self._mask, self._value, excess, 0.0)

    def proved(self) -> Minimum:
        """The proof of the best set or, if it has the better one, of {x < 0}."""
        assert self._corral is not None
        orders, weights = [tag[0] for tag in self._corral.tags], self._corral.weights
        records = [self._result()]
        for mask in (self._mask, self._corral.point() < 0):
            value = float(self.function._values(mask[None])[0])
            for kept in _supports(weights):
                mean = weights[kept] / weights[kept].sum()
                proof = prove(self.function, mask, [orders[k] for k in kept], mean)
                if proof.fall > self._fall:
                    self._x, self._fall = proof.x, proof.fall
                records.append(self._record(mask, value, proof.excess, proof.rounding))
                if records[-1].exact:
                    return records[-1]
        return min(records, key=lambda record: record.excess)

    def _record(self, mask: BoolArray, value: float, excess: float, rounding: float) -> Minimum:
        part = self._parts
        room = fsum([*self._gains.tolist(), *self._lost])
        # All values are multiples of the unit, and so is what a set is too high by.
        excess = 0.0 if part.exact and excess < part.unit else max(0.0, excess)
        bound = self._base + self._fall
        if part.value_error(0):
            bound = nextafter(bound - part.n_terms * EPS * part.base, -inf)
        elif excess == 0.0:
            bound = value
        return Minimum(
            mask=mask.copy(),
            value=value,
            bound=min(bound, value),
            x=self._x.copy(),
            n_iter=self.n_iter,
            converged=bool(relative_gap(excess, room, rounding) <= self.tol),
            certified=self.certified,
            excess=float(excess),
            room=max(room, float(excess)),
            rounding=rounding,
        )


def last_gains(function: SetFunction) -> FloatArray:
    """F(V) - F(V - i): no gain of a submodular function is less."""
    n = function.n
    masks = ~np.eye(n + 1, n, dtype=np.bool_)
    values = function._values(masks)
    gains: FloatArray = values[-1] - values[:-1]
    return gains


def _supports(weights: FloatArray) -> list[IntArray]:
    """All vertices; and those whose weights are more than the rounding of a sum of weights.

    Any mean proves something. A weight of 1e-18 may be a 0 that was rounded, or what takes a
    coordinate of 1e20 to its place: both are tried.
    """
    every = np.arange(len(weights))
    heavy = np.flatnonzero(weights > 64 * len(weights) * EPS)
    return [every] if len(heavy) == len(weights) else [every, heavy]
