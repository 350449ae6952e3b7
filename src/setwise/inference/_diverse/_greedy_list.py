"""Greedy lists: item by item, each the best given those before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

import numpy as np

from setwise._foundation._arguments import IntArray
from setwise._foundation._certificate import relative_gap
from setwise._foundation._deadline import Deadline, TimeUp
from setwise._foundation._timings import Stopwatch
from setwise.diversities._addition import Addition
from setwise.diversities._base import Diversity
from setwise.diversities._concatenated import Concatenated
from setwise.fields._field import Field
from setwise.inference._diverse._items import Items, ends_at, within_digits
from setwise.inference._diverse._problem import StepProblem
from setwise.inference._diverse._result import DiverseProgress, DiverseResult
from setwise.inference._diverse._step import GreedyStep
from setwise.inference._map._energy_scale import (
    EnergyScale,
    trivial_bound,
    trivial_of_tables,
)
from setwise.inference._map._enumerate import most_items
from setwise.inference._map._ground import ground
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapResult
from setwise.inference._map._solve_map import solve_map


def greedy_list(
    field: Field,
    m: int,
    diversity: Diversity | Concatenated,
    method: str,
    n_jobs: int | None,
    deadline: Deadline,
    watch: Stopwatch,
    callback: Callable[[DiverseProgress], object] | None,
    candidates: IntArray,
) -> DiverseResult:
    """The list of :func:`diverse`, its arguments checked."""
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
    best = within_digits(best, alone, 0.0)
    best = _first(base.field, parts[0]._addition(nothing, field.n_labels), best)
    items = Items(field, base, began)
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
                found = _better_candidate(problem, found, candidates)
                gain = part._gain(found.labels, earlier, field.n_labels)
                items.add(within_digits(found, problem, gain), gain)
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
        result = replace(result, reason=ends_at(result.reason, most))
    return replace(result, timings=watch.timings("answer"))


def _better_candidate(problem: StepProblem, found: MapResult, candidates: IntArray) -> MapResult:
    """The answer of a step, or the candidate that is better: the bound is the same."""
    if len(candidates) == 0:
        return found
    energies = problem.field._energies(candidates)
    k = int(energies.argmin())
    if not energies[k] < found.value:
        return found
    options = MapOptions.read(problem.field)
    return options.result(
        candidates[k],
        float(energies[k]),
        found.bound,
        method="candidate",
        n_iter=found.n_iter,
        converged=found.converged,
        interrupted=found.interrupted,
    )


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
