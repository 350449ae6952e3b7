"""Diverse lists of labellings, item by item."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

import numpy as np

from setwise._foundation._arguments import IntArray, as_choice, as_count
from setwise._foundation._certificate import relative_gap
from setwise._foundation._deadline import Deadline, TimeUp
from setwise._foundation._display import check_display, progress_callback
from setwise._foundation._progress import stops
from setwise._foundation._threads import as_threads
from setwise._foundation._timings import Stopwatch
from setwise.diversities._addition import Addition
from setwise.diversities._base import Diversity
from setwise.diversities._concatenated import Concatenated, as_diversity
from setwise.fields._field import Field, as_field
from setwise.inference._diverse._guarantee import guarantee
from setwise.inference._diverse._problem import StepProblem
from setwise.inference._diverse._result import DiverseProgress, DiverseResult, repeats
from setwise.inference._diverse._step import METHODS, GreedyStep
from setwise.inference._map._energy_scale import (
    NEGLIGIBLE,
    EnergyScale,
    trivial_bound,
    trivial_of_tables,
)
from setwise.inference._map._enumerate import most_items
from setwise.inference._map._ground import Ground, difference_below, ground
from setwise.inference._map._methods import METHODS as MAP_METHODS
from setwise.inference._map._reach import digits_lost, rounding_of, rounding_of_prices
from setwise.inference._map._result import MapResult
from setwise.inference._map._solve_map import solve_map


def diverse(
    field: Field,
    m: int,
    diversity: Diversity | Concatenated,
    *,
    method: str = "auto",
    time_limit: float | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
    callback: Callable[[DiverseProgress], object] | None = None,
) -> DiverseResult:
    r"""A list of m labellings of low energy that differ from each other, with a gap for each.

    The first item is the best labelling; each next one is the labelling with the least
    :math:`E(y) - d(y \mid S)`, as far as it can be found, S the items before it: greedy
    maximisation of :math:`\sum_{y \in S} (c - E(y)) + d(S)` (Prasad, Jegelka and Batra, *Submodular
    meets Structured*). Each step is MAP inference in ``diversity.augment(field, S)``.

    Parameters
    ----------
    field : Field
        The energy E.
    m : int
        How many items, at least 1. The list, or each of those concatenated, ends at as many as the
        field has labellings without a forbidden label, and ``reason`` says so; items may repeat all
        the same.
    diversity : Diversity or Concatenated
        d, or several with a list each.
    method : str
        How the steps after the first are solved. "auto": with Hamming terms "multipliers", and on
        fields of up to 1500 variables, where these leave a gap above a hundredth of a ball's
        weight, "messages" too, and the better answer; without such terms what ``solve_map`` would
        choose; enumeration where labellings are few. Or any method of ``solve_map``.
    time_limit : float, optional
        The most seconds: then the list ends with the items so far, gaps that hold, and ``reason``
        says so. The first item is there in any case, with 0 that of the unaries. The answer then
        depends on the machine and on what else it does; without a limit, or within it, it does not.
    n_jobs : int, optional
        Threads; None for all cores. The answer does not depend on it.
    verbose : bool
        Show items, energies, bounds and seconds on stderr: a bar in a terminal or a notebook (with
        rich), else lines.
    callback : callable, optional
        Called with a ``DiverseProgress`` after each item; a true answer ends the list.

    Returns
    -------
    DiverseResult
        ``labelings`` (m, N), ``values`` (m,), ``gains``, ``bounds``, ``gaps``, ``guarantee``,
        ``timings``. With a callback or a time limit that ends it, Ctrl-C after the first item, or
        fewer than m labellings, the list is shorter.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> rng = np.random.default_rng(0)
    >>> field = sw.fields.Field(rng.normal(size=(600, 2)))
    >>> field = field + sw.fields.Potts(sw.fields.grid_edges((20, 30)), 0.5)
    >>> six = sw.diverse(field, 6, sw.diversities.HammingBall(weight=20.0, gamma=0.05))
    >>> six.labelings.shape, bool(six.values[0] == sw.solve_map(field).value)
    ((6, 600), True)
    """
    field = as_field(field)
    m = as_count(m, "m", least=1)
    diversity = as_diversity(diversity)
    method = as_choice(method, "method", ["auto", *METHODS])
    check_display(verbose, callback)
    as_threads(n_jobs)
    deadline, watch = Deadline.of(time_limit), Stopwatch()
    if verbose:
        with progress_callback(True, 0.0, callback, what="diverse", rounds=m) as shown:
            return diverse(
                field,
                m,
                diversity,
                method=method,
                time_limit=deadline.inherited,
                n_jobs=n_jobs,
                callback=shown,
            )
    began = perf_counter()
    parts, shares = zip(*diversity._shares_of(m), strict=True)
    most = most_items(field, m)
    ends = max(shares) >= most  # no part has a list of more items than there are labellings
    shares = tuple(min(share, most - 1) for share in shares)
    left = sum(shares)
    nothing = np.zeros((0, field.n_variables), np.int64)
    for part in parts:
        part._augment(field, nothing)  # does it fit the field?
    base = ground(field)
    steps, alone = GreedyStep(method, n_jobs), StepProblem.of(base.field)
    watch.lap("set-up")
    try:
        best = deadline.run(steps.first, alone)
    except TimeUp:
        best = replace(solve_map(alone.field, time_limit=0.0), interrupted=True)
    best = _within_digits(best, alone, 0.0)
    best = _first(base.field, parts[0]._addition(nothing, field.n_labels), best)
    items = _Items(field, base, began)
    items.add(best, parts[0]._gain(best.labels, nothing, field.n_labels))
    interrupted = best.interrupted or (items.ends(callback) and left > 0)
    watch.lap("first item")

    def lengthen() -> bool:
        """The items after the first; whether anything ended them before the last."""
        nonlocal left
        for part, share in zip(parts, shares, strict=True):
            for k in range(share):
                earlier = items.after_first(k)
                problem = StepProblem.of(base.field, part._addition(earlier, field.n_labels))
                found = steps.next(problem, [best.labels, earlier[-1]][: k + 1])
                gain = part._gain(found.labels, earlier, field.n_labels)
                items.add(_within_digits(found, problem, gain), gain)
                left -= 1
                if found.interrupted or (items.ends(callback) and left > 0):
                    return True
        return False

    try:
        interrupted = interrupted or (left > 0 and deadline.run(lengthen))
    except KeyboardInterrupt:  # the list so far holds
        interrupted = True
    watch.lap("next items")
    result = items.result(parts[0], diversity._obstacle(), interrupted)
    if interrupted and deadline.struck:
        reason = deadline.added_to(result.reason)
        result = replace(result, reason=reason, interrupted=False)
    elif ends and not interrupted:
        told = f"{result.reason} The list ends at {most} items: the field has no more labellings."
        result = replace(result, reason=told)
    return replace(result, timings=watch.timings("answer"))


def _first(field: Field, addition: Addition, best: MapResult) -> MapResult:
    """The best labelling of the field as a step: d(y | no items) counts in its value and bound."""
    if addition.is_empty:
        return best
    augmented = addition.added_to(field)
    value = float(augmented._energies(best.labels[None])[0])
    extra = trivial_bound(augmented) - trivial_bound(field)
    scale = EnergyScale.of(augmented)
    bound = min(best.bound + extra, value)
    return replace(
        best,
        value=value,
        bound=bound,
        relative_gap=relative_gap(value - bound, value - trivial_of_tables(augmented)),
        exact=scale.is_exact(value, bound),
    )


def _within_digits(found: MapResult, problem: StepProblem, gain: float) -> MapResult:
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


class _Items:
    """The list as it grows."""

    def __init__(self, field: Field, base: Ground, began: float) -> None:
        self._field, self._base = field, base
        self._labels: list[IntArray] = []
        self._rows: list[tuple[float, float, float]] = []
        self._found: list[MapResult] = []
        self._began = began

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
        self, diversity: Diversity, obstacle: str | None, interrupted: bool
    ) -> DiverseResult:
        n = len(self._found)  # written last: Ctrl-C may have come in the middle of an item
        labelings = np.array(self._labels[:n])
        values, gains, bounds = np.array(self._rows[:n]).T
        gaps = np.array([found.gap for found in self._found])
        if obstacle is None and not np.isfinite(gaps).all():
            obstacle = "a step has no bound"
        claim = None
        if obstacle is None:
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
        )
