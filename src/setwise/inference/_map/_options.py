"""The options of all searches for the best labelling, checked once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from dataclasses import field as dataclass_field
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import (
    IntArray,
    as_array,
    as_count,
    as_generator,
    as_integers,
    as_number,
    check_callback,
)
from setwise._foundation._clock import Deadline, Stopwatch
from setwise._foundation._progress import is_observed, stops
from setwise._foundation._threads import as_threads
from setwise.fields._field import Field
from setwise.inference._conditioning._conditioned import Conditioned, Sums
from setwise.inference._conditioning._magnitude import NEGLIGIBLE, difference_below
from setwise.inference._map._result import Found, MapProgress, MapResult


@dataclass(frozen=True, eq=False)
class MapOptions:
    """Checked options of ``solve_map``; a method uses some of them."""

    tol: float
    max_iter: int | None
    init: IntArray | None
    """(N,), with a finite energy"""
    n_threads: int
    random: np.random.Generator | None
    callback: Callable[[MapProgress], object] | None
    problem: Conditioned
    """The conditioned problem, with the field to search and the scale of gaps."""
    by_cut: bool | None = None
    """Whether the method is a cut, which leaves the weights of edges alone.

    None for a search inside another one, whose callback receives bounds that are not rounded yet.
    """
    known: MapResult | None = None
    """The answer of an earlier search; the callback receives the better of the two."""
    highest: list[float] = dataclass_field(default_factory=lambda: [-np.inf])
    """The highest bound that the callback has received; later bounds are not lower."""
    rival: Callable[[], bool] = bool
    """Whether an exact method is affordable, which makes a long search for a bound pointless."""
    budget: float = np.inf
    """The work after which an exact search is left, in pivots times rows and columns."""
    deadline: Deadline = dataclass_field(default_factory=Deadline)
    watch: Stopwatch = dataclass_field(default_factory=Stopwatch)
    began: float = dataclass_field(default_factory=perf_counter)

    @classmethod
    def read(
        cls,
        field: Field,
        *,
        tol: float = 1e-9,
        max_iter: int | None = None,
        init: ArrayLike | None = None,
        n_jobs: int | None = None,
        rng: object = None,
        callback: Callable[[MapProgress], object] | None = None,
        deadline: Deadline | None = None,
        watch: Stopwatch | None = None,
        problem: Conditioned | None = None,
        by_cut: bool | None = None,
    ) -> MapOptions:
        """Read the options of a call, or raise an error that names the invalid one."""
        check_callback(callback)
        return cls(
            tol=_as_tolerance(tol),
            max_iter=None if max_iter is None else as_count(max_iter, "max_iter"),
            init=None if init is None else _as_labeling(init, field),
            n_threads=as_threads(n_jobs),
            random=None if rng is None else as_generator(rng),
            callback=callback,
            problem=Conditioned(field, field) if problem is None else problem,
            by_cut=by_cut,
            deadline=Deadline() if deadline is None else deadline,
            watch=Stopwatch() if watch is None else watch,
        )

    def start(self, field: Field) -> IntArray:
        """Return ``init``, or the labels of least unary energy."""
        return (field._favourites().labels if self.init is None else self.init).copy()

    def close_enough(self, value: float, bound: float) -> bool:
        """Return whether the relative gap is within the tolerance."""
        return self.problem.relative_gap(value, bound) <= self.tol

    def settled(self, value: float, bound: float, sums: Sums, before: float) -> bool:
        """Return whether a search may end: the gap is within ``tol``, and not soon exact.

        If ``tol`` is at most 1e-9, the search continues while each stage at least halves the gap
        (``before`` is the gap before the stage), until only rounding errors remain. A gap below the
        unit of the energies counts as zero, even if its share is large.
        """
        if self.problem.unit.step > 0.0 and self.problem.is_exact(value, bound, sums):
            return True
        if not self.close_enough(value, bound):
            return False
        fine = self.tol <= NEGLIGIBLE and value - bound <= 0.5 * before
        return not fine or self.problem.is_exact(value, bound, sums)

    def progress(
        self, n_iter: int, value: float, bound: float, sums: Sums | None = None
    ) -> MapProgress:
        """Return the record for the callback, with the bound rounded as in the result."""
        seconds = perf_counter() - self.began
        problem = self.problem
        if self.by_cut is None:
            share = problem.relative_gap(value, bound)
            return MapProgress(n_iter, value, bound, share, seconds)
        claimed = problem.claim(value, bound, problem.slack(value, bound, sums))
        bound = max(bound, claimed)
        if problem.costs_hide_digits(value, by_cut=self.by_cut):
            bound = problem.less_rounding_of_costs(value, bound)
            claimed = problem.less_rounding_of_costs(value, claimed)
        if self.known is not None:
            value, bound = min(value, self.known.value), max(bound, self.known.bound)
            known = problem.claim(value, self.known.bound, lost_of(self.known))
            claimed = max(claimed, known)
        self.highest[0] = claimed = max(claimed, self.highest[0])
        share, total = problem.relative_gap(value, bound), value + problem.constant
        below = min(problem.below(min(claimed, value)), total)
        return MapProgress(n_iter, total, below, share, seconds)

    def report_end(self, n_iter: int, value: float, bound: float, sums: Sums | None = None) -> None:
        """Call the callback for a method that has ended, and ignore its return value."""
        _core.poll()
        if is_observed(self.callback):
            stops(self.callback, self.progress(n_iter, value, bound, sums))

    def result(
        self,
        labels: IntArray,
        value: float,
        bound: float,
        *,
        method: str,
        n_iter: int,
        converged: bool,
        interrupted: bool = False,
        sums: Sums | None = None,
    ) -> MapResult:
        """Return the record of a search. A bound above the value, by rounding, is lowered to it.

        ``sums`` are the summands of the bound, if they are not the numbers of the field.
        """
        lost = self.problem.slack(value, bound, sums)
        slack = lost if bound <= value else None
        bound = min(bound, value)
        return Found(
            labels=labels,
            value=value,
            bound=bound,
            method=method,
            reason="",
            n_iter=n_iter,
            converged=converged,
            interrupted=interrupted,
            relative_gap=self.problem.relative_gap(value, bound),
            exact=self.problem.is_exact(value, bound, sums, slack),
            lost=lost,
        )

    def not_begun(self, field: Field, method: str) -> MapResult:
        """Return the record of the start, for a search that the time limit prevented."""
        labels = self.start(field)
        value, bound = float(field._energies(labels[None])[0]), self.problem.trivial
        return self.result(
            labels, value, bound, method=method, n_iter=0, converged=False, interrupted=True
        )

    def improved(
        self, result: MapResult, bound: float, interrupted: bool, sums: Sums | None = None
    ) -> MapResult:
        """Return the result with another bound if that is better."""
        lost = lost_of(result)
        if bound > result.bound:
            lost = self.problem.slack(result.value, bound, sums)
        bound = min(max(result.bound, bound), result.value)
        known = result.exact and -np.inf < result.bound
        return replace(
            as_found(result),
            bound=bound,
            interrupted=result.interrupted or interrupted,
            relative_gap=self.problem.relative_gap(result.value, bound),
            exact=known or self.problem.is_exact(result.value, bound, sums),
            lost=lost,
        )

    def better(self, one: MapResult, other: MapResult) -> MapResult:
        """Return the better labelling of two results, with the better bound.

        If their values are equal, ``other`` is taken if it is known to be exact. The result is
        interrupted if ``other``, the later search, was.
        """
        wins = other.value < one.value or (other.exact and other.value == one.value)
        best = other if wins else one
        proof = other if other.bound - lost_of(other) > one.bound - lost_of(one) else one
        bound = min(proof.bound, best.value)
        claimed = self.problem.claim(best.value, bound, lost_of(proof))
        exact = any(r.exact and r.value == best.value for r in (one, other))
        return replace(
            as_found(best),
            bound=bound,
            relative_gap=self.problem.relative_gap(best.value, bound),
            exact=exact or claimed >= best.value,
            interrupted=other.interrupted,
            lost=lost_of(proof),
        )

    def in_given(self, result: MapResult, value: float | None = None) -> MapResult:
        """Return the result for the field that was given, with the bound that it may claim.

        Every result of ``solve_map`` comes from this method. ``value`` is the energy of its labels,
        if known. The gap does not decrease.
        """
        problem, share = self.problem, result.relative_gap
        bound = problem.claim(result.value, result.bound, lost_of(result))
        exact = result.exact or bound >= result.value
        if bound > result.bound:
            share = min(share, problem.relative_gap(result.value, bound))
        if value is None:
            value = problem.value_of(result.labels) if problem.is_changed else result.value
        if problem.is_changed:
            gap, bound = result.value - bound, problem.below(bound)
            bound = min(bound, difference_below(value, gap)) if value < np.inf else bound
        given = object.__new__(MapResult)  # without the field ``lost``, which is accounted for
        known = {name: getattr(result, name) for name in _FIELDS}
        given.__dict__.update(known, value=value, bound=bound, relative_gap=share, exact=exact)
        return given


_FIELDS = tuple(field.name for field in fields(MapResult))


def lost_of(result: MapResult) -> float:
    """Return the possible rounding error of a bound, which is zero after ``claim``."""
    return result.lost if isinstance(result, Found) else 0.0


def as_found(result: MapResult) -> Found:
    """Return the result as the record of a search, which knows its rounding error."""
    if isinstance(result, Found):
        return result
    return Found(**{name: getattr(result, name) for name in _FIELDS})


def _as_tolerance(tol: object) -> float:
    """Return a nonnegative number, which may be ``inf``."""
    if isinstance(tol, float | np.floating) and tol == np.inf:
        return np.inf
    return as_number(tol, "tol", nonnegative=True)


def _as_labeling(labels: ArrayLike, field: Field) -> IntArray:
    array = as_array(labels, "init")
    if array.shape != (field.n_variables,):
        raise ValueError(f"init must have shape ({field.n_variables},), got {array.shape}")
    checked = as_integers(array, "init", below=field.n_labels)
    forbidden = np.isinf(field.unary[np.arange(len(checked)), checked])
    if forbidden.any():
        i = int(np.argmax(forbidden))
        raise ValueError(
            f"init must take labels of finite unary, got {checked[i]} for variable {i}"
        )
    return checked
