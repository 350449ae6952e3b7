"""The items of a list as it grows, and what rounding leaves of their certificates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

import numpy as np

from setwise._foundation._arguments import IntArray
from setwise._foundation._certificate import relative_gap
from setwise._foundation._progress import stops
from setwise.diversities._base import Diversity
from setwise.fields._field import Field
from setwise.inference._diverse._guarantee import guarantee
from setwise.inference._diverse._problem import StepProblem
from setwise.inference._diverse._result import DiverseProgress, DiverseResult, repeats
from setwise.inference._map._energy_scale import NEGLIGIBLE, trivial_of_tables
from setwise.inference._map._ground import Ground, difference_below
from setwise.inference._map._methods import METHODS as MAP_METHODS
from setwise.inference._map._reach import digits_lost, rounding_of, rounding_of_prices
from setwise.inference._map._result import MapResult


def within_digits(found: MapResult, problem: StepProblem, gain: float) -> MapResult:
    """The answer of a step, less what the rounding of prices that it does not pay may hide."""
    field, step = problem.base, problem.field
    room = float(field._energies(found.labels[None])[0]) - trivial_of_tables(field) + abs(gain)
    record = MAP_METHODS.get(found.method)  # None of multipliers, which are no method of MAP
    if record is not None and record.adds_paid_only:
        rounding = rounding_of(found.value - trivial_of_tables(step))
    else:
        rounding = rounding_of_prices(step, by_cut=record is not None and record.by_cut)
    rounding = max(rounding, rounding_of(problem.largest_change()))
    if found.gap == np.inf or room == 0.0 or rounding <= NEGLIGIBLE * room:
        return found
    lost = digits_lost(step) + len(step.unary) * rounding
    share = relative_gap(found.gap + lost, room + lost)
    return replace(found, bound=found.bound - lost, relative_gap=share, exact=False)


def ends_at(reason: str, n: int) -> str:
    """The reasons of a list that has all labellings there are, fewer than were asked for."""
    told = f"The list ends at {n} items: the field has no more labellings."
    return f"{reason.removesuffix('.')}. {told}"


class Items:
    """The list as it grows."""

    def __init__(self, field: Field, base: Ground, began: float) -> None:
        self._field, self._base = field, base
        self._labels: list[IntArray] = []
        self._rows: list[tuple[float, float, float]] = []
        self._found: list[MapResult] = []
        self._began = began

    def __len__(self) -> int:
        return len(self._found)

    def after_first(self, k: int) -> IntArray:
        """The first item and the latest k."""
        return np.array([self._labels[0], *self._labels[len(self._labels) - k :]])

    def add(self, found: MapResult, gain: float) -> None:
        """One more item, and what it adds to the diversity of those before it.

        It was found in the field of the step, which may leave out constants: the gap is the same.
        """
        value = float(self._field._energies(found.labels[None])[0])
        self._labels.append(found.labels)
        self._rows.append((value, gain, difference_below(value - gain, found.gap)))
        self._found.append(found)

    def ends(self, callback: Callable[[DiverseProgress], object] | None) -> bool:
        """Whether the callback, told of the latest item, ends the list."""
        value, gain, bound = self._rows[-1]
        progress = DiverseProgress(
            n_iter=len(self._labels),
            value=value,
            bound=bound,
            relative_gap=self._found[-1].relative_gap,
            seconds=perf_counter() - self._began,
            labels=self._labels[-1],
            gain=gain,
        )
        return stops(callback, progress)

    def result(
        self, diversity: Diversity | None, obstacle: str | None, interrupted: bool
    ) -> DiverseResult:
        """The list; ``obstacle`` says why nothing is guaranteed for it, if so."""
        n = len(self._found)  # written last: Ctrl-C may have come in the middle of an item
        labelings = np.array(self._labels[:n])
        values, gains, bounds = np.array(self._rows[:n]).T
        gaps = np.array([found.gap for found in self._found])
        if obstacle is None and not np.isfinite(gaps).all():
            obstacle = "a step has no bound"
        claim = None
        if obstacle is None and diversity is not None:
            heights, n_labels = self._base.field._energies(labelings), self._field.n_labels
            claim = guarantee(diversity, labelings, heights, gains, gaps, n_labels)
            claim = replace(claim, shift=claim.shift + self._base.constant)
        return DiverseResult(
            labelings=labelings,
            values=values,
            gains=gains,
            bounds=bounds,
            methods=tuple(found.method for found in self._found),
            repeated=repeats(labelings),
            guarantee=claim,
            reason=f"no guarantee for the list: {obstacle}" if claim is None else claim.assumes,
            interrupted=interrupted,
            relative_gaps=np.array([found.relative_gap for found in self._found]),
            exact=all(found.exact for found in self._found),
            shape=self._field.shape,
        )
