"""What every search for the best labelling can be told, checked once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import (
    IntArray,
    as_array,
    as_count,
    as_integers,
    as_number,
    check_callback,
)
from setwise._foundation._deadline import Deadline
from setwise._foundation._progress import is_heard, stops
from setwise._foundation._randomness import as_generator
from setwise._foundation._threads import as_threads
from setwise._foundation._timings import Stopwatch
from setwise.fields._field import Field
from setwise.inference._map._energy_scale import NEGLIGIBLE, EnergyScale
from setwise.inference._map._ground import difference_below
from setwise.inference._map._reach import Doubt
from setwise.inference._map._result import MapProgress, MapResult


@dataclass(frozen=True, eq=False)
class MapOptions:
    """Checked options of ``solve_map``; a method reads those that it has a use for."""

    tol: float
    max_iter: int | None
    init: IntArray | None
    """(N,), with a finite energy"""
    n_threads: int
    random: np.random.Generator | None
    callback: Callable[[MapProgress], object] | None
    scale: EnergyScale
    """What gaps are measured against."""
    offset: float
    """What the callback is told above the field's energies."""
    doubt: Doubt = dataclass_field(default_factory=Doubt)
    """What prices that no good labelling pays may have done to a bound that is told."""
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
        offset: float = 0.0,
        deadline: Deadline | None = None,
        watch: Stopwatch | None = None,
        scale: EnergyScale | None = None,
    ) -> MapOptions:
        """The options of a call, or one sentence on what is wrong with which."""
        check_callback(callback)
        return cls(
            tol=_as_tolerance(tol),
            max_iter=None if max_iter is None else as_count(max_iter, "max_iter"),
            init=None if init is None else _as_labeling(init, field),
            n_threads=as_threads(n_jobs),
            random=None if rng is None else as_generator(rng),
            callback=callback,
            scale=EnergyScale.of(field) if scale is None else scale,
            offset=offset,
            deadline=Deadline() if deadline is None else deadline,
            watch=Stopwatch() if watch is None else watch,
        )

    def start(self, field: Field) -> IntArray:
        """``init``, or the labels of least unary."""
        return (field._favourites().labels if self.init is None else self.init).copy()

    def close_enough(self, value: float, bound: float) -> bool:
        """Whether the relative gap is within the tolerance."""
        return self.scale.relative_gap(value, bound) <= self.tol

    def settled(self, value: float, bound: float, paid: float, before: float) -> bool:
        """Whether the gap is within the tolerance, and ``exact`` if that is a few passes away.

        From 1e-9 on the last digits are worth having: the search goes on while each of its stages
        at least halves the gap, which was ``before``, until rounding is all that is left of it.
        """
        if not self.close_enough(value, bound):
            return False
        fine = self.tol <= NEGLIGIBLE and value - bound <= 0.5 * before
        return not fine or self.scale.is_exact(value, bound, paid)

    def ends(self, n_iter: int, value: float, bound: float) -> bool:
        """Whether the callback, told where the search stands, ends it."""
        _core.poll()
        if not is_heard(self.callback):
            return False
        bound = self.doubt.taken_off(self.scale.field, value, bound)
        progress = MapProgress(
            n_iter,
            value + self.offset,
            difference_below(bound, -self.offset),
            self.scale.relative_gap(value, bound),
            perf_counter() - self.began,
        )
        return stops(self.callback, progress)

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
        paid: float | None = None,
    ) -> MapResult:
        """The record of a search; a bound above the value is so by rounding only.

        ``paid`` is the sum of the sizes of what the bound is a sum of, if not the bound itself.
        """
        bound = min(bound, value)
        return MapResult(
            labels=labels,
            value=value,
            bound=bound,
            method=method,
            reason="",
            n_iter=n_iter,
            converged=converged,
            interrupted=interrupted,
            relative_gap=self.scale.relative_gap(value, bound),
            exact=self.scale.is_exact(value, bound, paid),
        )

    def not_begun(self, field: Field, method: str) -> MapResult:
        """The record of a search that the time limit did not let begin: of the start."""
        labels = self.start(field)
        value, bound = float(field._energies(labels[None])[0]), self.scale.trivial
        return self.result(
            labels, value, bound, method=method, n_iter=0, converged=False, interrupted=True
        )

    def improved(
        self, result: MapResult, bound: float, interrupted: bool, paid: float | None = None
    ) -> MapResult:
        """The result with a better bound, if it is one."""
        bound = min(max(result.bound, bound), result.value)
        known = result.exact and bound == result.bound
        return replace(
            result,
            bound=bound,
            interrupted=result.interrupted or interrupted,
            relative_gap=self.scale.relative_gap(result.value, bound),
            exact=known or self.scale.is_exact(result.value, bound, paid),
        )


def _as_tolerance(tol: object) -> float:
    """A number that is not negative; ``inf`` is one too."""
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
