"""Greedy lists, in which each item is the best given the earlier ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from setwise._foundation._arguments import BATCH, IntArray
from setwise._foundation._certificate import relative_gap
from setwise._foundation._clock import Stopwatch
from setwise._foundation._search import Control
from setwise.diversities._base import Diversity, all_labelings, can_list_all
from setwise.diversities._concatenated import Concatenated
from setwise.fields._field import Field
from setwise.inference._conditioning._conditioned import Conditioned
from setwise.inference._conditioning._magnitude import given_bound, trivial_bound
from setwise.inference._diverse._list_search import Item, ListSearch, with_end, with_limit
from setwise.inference._diverse._problem import StepProblem
from setwise.inference._diverse._result import DiverseProgress, DiverseResult
from setwise.inference._diverse._step import GreedyStep
from setwise.inference._map._enumerate import most_items
from setwise.inference._map._options import MapOptions, lost_of
from setwise.inference._map._result import MapResult


def greedy_list(
    field: Field,
    m: int,
    diversity: Diversity | Concatenated,
    method: str,
    n_jobs: int | None,
    control: Control[DiverseProgress],
    watch: Stopwatch,
    candidates: IntArray,
) -> DiverseResult:
    """Make the greedy list of :func:`diverse` from checked arguments."""
    parts, shares = zip(*diversity._shares_of(m), strict=True)
    most = most_items(field, m)
    ends = max(shares) >= most  # a list ends when all labellings are in it
    parts_of_items = [
        (part, k) for part, n in zip(parts, shares, strict=True) for k in range(min(n, most - 1))
    ]
    nothing = np.zeros((0, field.n_variables), np.int64)
    for part in parts:  # check that the diversity fits the field
        if part._lacks_potential() and can_list_all(*field.unary.shape):
            part._labels_or_own(field.n_labels)
        else:
            part._around(nothing, field.n_labels)[0]._augment(field, nothing)
    search = _GreedyList(field, parts[0], parts_of_items, method, n_jobs, watch, candidates)
    watch.lap("set-up")
    ending = search.grow(control)
    result = with_limit(search.result(parts[0], diversity._obstacle(), ending), ending)
    if ends and not ending.cut_short:
        result = with_end(result, most)
    return replace(result, timings=watch.timings("answer"))


class _GreedyList(ListSearch):
    """Items of several diversities in turn, each the best of its step."""

    def __init__(
        self,
        field: Field,
        diversity: Diversity,
        parts_of_items: list[tuple[Diversity, int]],
        method: str,
        n_jobs: int | None,
        watch: Stopwatch,
        candidates: IntArray,
    ) -> None:
        """``parts_of_items`` has, for each item after the first, its diversity and its number."""
        super().__init__(field, Conditioned.of(field), 1 + len(parts_of_items), watch)
        self._diversity, self._parts, self._candidates = diversity, parts_of_items, candidates
        self._steps = GreedyStep(method, n_jobs)
        self._alone = StepProblem.of(self.base.field)

    def first(self) -> MapResult:
        return self._steps.first(self._alone)

    def as_first(self, best: MapResult) -> Item:
        nothing = np.zeros((0, self.field.n_variables), np.int64)
        best = self._alone.within_digits(best, 0.0)
        if self._diversity._lacks_potential():
            return self._without_potential(self._diversity, nothing, best.labels[None], best)
        addition = self._diversity.addition(nothing, self.field.n_labels)
        gain = self._diversity.gain_of(best.labels, nothing, self.field.n_labels)
        if addition.is_empty:
            return best, gain
        problem = StepProblem.of(self.base.field, addition)
        return problem.within_digits(_as_step(problem, best), gain), gain

    def another(self) -> Item:
        part, k = self._parts[len(self) - 1]
        n_labels, labelings = self.field.n_labels, self.labelings
        earlier = np.concatenate([labelings[:1], labelings[len(labelings) - k :]])
        if part._lacks_potential():
            given = np.concatenate([labelings[:1], self._candidates])
            return self._without_potential(part, earlier, given)
        problem = StepProblem.of(self.base.field, part.addition(earlier, n_labels))
        found = self._steps.next(problem, [labelings[0], earlier[-1]][: k + 1])
        found = _better_candidate(problem, found, self._candidates)
        gain = part.gain_of(found.labels, earlier, n_labels)
        return problem.within_digits(found, gain), gain

    def _without_potential(
        self,
        part: Diversity,
        earlier: IntArray,
        candidates: IntArray,
        only: MapResult | None = None,
    ) -> Item:
        """Return the best labelling of a step whose gain is no sum of potentials.

        All labellings are tried if they are few. Otherwise the candidates are, and those that are
        best for a lower and for an upper bound on the gain; the upper one gives the bound of the
        step. With ``only`` it is the answer, and the bound alone is computed.
        """
        field, n_labels = self.base.field, self.field.n_labels
        if can_list_all(field.n_variables, n_labels):
            every = all_labelings(field.n_variables, n_labels)
            gains = part._gains_of_all(earlier, n_labels)
            totals = np.concatenate([field._energies(rows) for rows in _in_parts(every)])
            totals -= gains
            labels, bound = every[int(totals.argmin())].astype(np.int64), float(totals.min())
            method, converged = "enumerate", True
            tried = labels[None]
        else:
            lower, upper, more = part._around(earlier, n_labels)
            steps = [StepProblem.of(field, d.addition(earlier, n_labels)) for d in (lower, upper)]
            starts = [candidates[0], *earlier[-1:]]
            found = [step.within_digits(self._steps.next(step, starts), 0.0) for step in steps]
            tried = np.concatenate([candidates, *(answer.labels[None] for answer in found)])
            last = found[1]
            height = float(field._energies(last.labels[None])[0])
            apart = last.gap + lost_of(last)
            bound = height - upper.gain_of(last.labels, earlier, n_labels) - more - apart
            method, converged = last.method, last.converged
        if only is not None:
            tried = only.labels[None]
        values = field._energies(tried)
        gained = np.array([part.gain_of(labels, earlier, n_labels) for labels in tried])
        k = int((values - gained).argmin())
        options = MapOptions.read(field)
        result = options.result(
            tried[k],
            float(values[k]),
            min(bound + float(gained[k]), float(values[k])),
            method=method,
            n_iter=0,
            converged=converged,
            interrupted=False if only is None else only.interrupted,
        )
        return self._alone.within_digits(result, float(gained[k])), float(gained[k])


def _in_parts(every: IntArray) -> Iterator[IntArray]:
    """Yield the rows in parts whose energies are computed at once."""
    rows = max(1, BATCH // max(1, every.shape[1]))
    for start in range(0, len(every), rows):
        yield np.ascontiguousarray(every[start : start + rows], np.int64)


def _better_candidate(problem: StepProblem, found: MapResult, candidates: IntArray) -> MapResult:
    """Return the answer of a step, or a better candidate, with the same bound."""
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


def _as_step(problem: StepProblem, best: MapResult) -> MapResult:
    """Return the best labelling as a step: its energy minus its gain in an empty list."""
    field, augmented = problem.base, problem.field
    value = float(augmented._energies(best.labels[None])[0])
    extra = trivial_bound(augmented) - trivial_bound(field)
    bound = min(best.bound + extra, value)
    proved = min(best.value + extra, value) if best.exact else bound
    return replace(
        best,
        value=value,
        bound=bound,
        relative_gap=relative_gap(value - proved, value - given_bound(augmented)),
        exact=Conditioned(augmented, augmented).is_exact(value, proved),
    )
