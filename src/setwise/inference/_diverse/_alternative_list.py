"""Lists without settings: alternatives that differ visibly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import perf_counter

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._deadline import Deadline, TimeUp
from setwise._foundation._interrupts import whole
from setwise._foundation._timings import Stopwatch
from setwise.diversities._alternatives import Alternatives
from setwise.diversities._hamming import DivMBest
from setwise.fields._field import Field
from setwise.inference._diverse._items import Items, ends_at, within_digits
from setwise.inference._diverse._path import BiasPath
from setwise.inference._diverse._path_cuts import Cuts
from setwise.inference._diverse._path_medians import DifferentPieces, edges_of, largest_part
from setwise.inference._diverse._problem import StepProblem
from setwise.inference._diverse._result import DiverseProgress, DiverseResult
from setwise.inference._diverse._step import GreedyStep
from setwise.inference._diverse._usual_reach import usual_reach
from setwise.inference._map._enumerate import most_items
from setwise.inference._map._ground import Ground, ground
from setwise.inference._map._result import MapResult
from setwise.inference._map._solve_map import solve_map

# Cuts for each item of a list: more make the medians finer, and the list slower.
_CUTS_AN_ITEM = 2
# A path with fewer pieces than items is looked for once more, so many times as far.
_FARTHER = (1.0, 4.0)
# The weights that a step tries, of the usual preference for a label.
_WEIGHTS = 2.0 ** np.arange(-6.0, 4.0)

Step = tuple[MapResult, float]
"""An item and its gain."""


def alternative_list(
    field: Field,
    m: int,
    wanted: Alternatives,
    n_jobs: int | None,
    deadline: Deadline,
    watch: Stopwatch,
    callback: Callable[[DiverseProgress], object] | None,
) -> DiverseResult:
    """The list of :func:`diverse` without a diversity, its arguments checked."""
    asked, m = m, most_items(field, m)
    cuts = Cuts.of(field, n_jobs)
    base = ground(field) if cuts is None else cuts.base
    way = _Steps(base, wanted, n_jobs) if cuts is None else _OnPath(base, cuts, wanted)
    items = Items(field, base, perf_counter())
    watch.lap("set-up")
    try:
        best = deadline.run(way.first)
    except TimeUp:
        best = replace(solve_map(base.field, time_limit=0.0), interrupted=True)
    items.add(best, 0.0)
    interrupted = best.interrupted or (items.ends(callback) and m > 1)
    watch.lap("first item")

    def lengthen() -> bool:
        for k, (found, gain) in enumerate(way.others(m, best.labels)):
            items.add(found, gain)
            if items.ends(callback) and k < m - 2:
                return True
        return False

    try:
        interrupted = interrupted or (m > 1 and deadline.run(lengthen))
    except KeyboardInterrupt:  # the list so far holds
        interrupted = True
    watch.lap("next items")
    result = items.result(None, "", interrupted)
    if best.interrupted:  # the best of the unaries alone
        result = replace(result, reason="the list was ended before its first item was there")
    else:
        result = way.described(result)
    result = replace(result, timings=watch.timings("answer"))
    if interrupted and deadline.struck:
        return replace(result, reason=deadline.added_to(result.reason), interrupted=False)
    if asked > m and not interrupted:
        result = replace(result, reason=ends_at(result.reason, m))
    return result


class _OnPath:
    """Two labels: the medians of the path of all biases."""

    def __init__(self, base: Ground, cuts: Cuts, wanted: Alternatives) -> None:
        self._field, self._cuts, self._wanted = base.field, cuts, wanted
        self._enough = True
        self._path: BiasPath | None = None
        self._numbers: IntArray = np.zeros(0, np.int64)
        self._probabilities: FloatArray | None = None
        self._reach = cuts.usual_reach() if wanted.reach is None else wanted.reach

    def first(self) -> MapResult:
        """The best labelling."""
        self._best = self._cuts.end(0.0, None, None)
        return self._cuts.certified(self._best)

    def others(self, m: int, best: IntArray) -> Iterator[Step]:
        """The others, by increasing energy."""
        n = self._field.n_variables
        path = None
        for farther in _FARTHER if self._wanted.reach is None else (1.0,):
            if path is None or path.n_pieces < m:
                self._reach *= farther
                path = self._cuts.path(self._reach, 1.0, _CUTS_AN_ITEM * m, self._best)
                if farther == 1.0:  # farther out is for want of items, not for what is likely
                    self._probabilities = path.probabilities
        assert path is not None
        through = int(np.abs(path.sizes - self._best.size).argmin())
        wanted, pieces = self._wanted, DifferentPieces(self._field, path)
        chosen, self._enough = pieces.choose(
            m, through, wanted.least_difference * n, wanted.least_part * n
        )
        self._enough = self._enough and len(chosen) == m
        order = np.argsort(path.values[chosen], kind="stable")
        order = np.concatenate([order[chosen[order] == through], order[chosen[order] != through]])
        self._path, self._numbers = path, chosen[order]
        for k in self._numbers[1:].tolist():
            piece = self._cuts.piece(path, k)
            yield self._cuts.certified(piece), -piece.bias * piece.size

    def described(self, result: DiverseResult) -> DiverseResult:
        """With the biases and shares, and in words what holds of the list."""
        m, wanted = len(result.values), self._wanted
        biases, shares = np.zeros(1), np.ones(1)
        if self._path is not None:
            path, kept = self._path, self._numbers[:m]
            biases = np.concatenate([biases, path.biases[kept[1:]]])
            nearest = np.abs(path.sizes[kept][:, None] - path.sizes).argmin(axis=0)
            shares = np.bincount(nearest, path.shares, minlength=m).astype(np.float64)
        rise = float(result.values.max() - result.values.min())
        told = (
            f"each item is the best labelling under a bias of at most {self._reach:.3g}, and none "
            f"is more than {rise:.3g} above the best"
        )
        return replace(
            result,
            biases=biases,
            shares=shares,
            probabilities=self._probabilities,
            reason=told + ("" if self._enough else _too_alike(wanted)),
        )


class _Steps:
    """Any field: one item after the other, each with the least weight that makes it differ."""

    def __init__(self, base: Ground, wanted: Alternatives, n_jobs: int | None) -> None:
        self._field, self._wanted, self._n_jobs = base.field, wanted, n_jobs
        self._steps = GreedyStep("auto", n_jobs)
        self._edges = edges_of(base.field)
        self._enough = True
        two = np.partition(base.field.unary, min(1, base.field.n_labels - 1), axis=1)
        apart = two[:, min(1, two.shape[1] - 1)] - two[:, 0]
        own = usual_reach(base.field, apart) or 1.0
        self._usual = own if wanted.reach is None else wanted.reach

    def first(self) -> MapResult:
        """The best labelling."""
        alone = StepProblem.of(self._field)
        return within_digits(self._steps.first(alone), alone, 0.0)

    def others(self, m: int, best: IntArray) -> Iterator[Step]:
        """The others, in the order found."""
        earlier = best[None]
        for _ in range(m - 1):
            weight = self._least_weight(earlier)
            diversity = DivMBest(weight)
            addition = diversity._addition(earlier, self._field.n_labels)
            problem = StepProblem.of(self._field, addition)
            found = self._steps.next(problem, [best, earlier[-1]][: len(earlier)])
            gain = diversity._gain(found.labels, earlier, self._field.n_labels)
            self._enough = self._enough and self._differs(found.labels, earlier)
            yield within_digits(found, problem, gain), gain
            earlier = np.concatenate([earlier, found.labels[None]])

    def _least_weight(self, earlier: IntArray) -> float:
        """The least of a row of weights whose labelling differs enough, by bisection."""
        weights = self._usual * _WEIGHTS / len(earlier)
        low, high = -1, len(weights) - 1
        while high - low > 1:
            middle = (low + high) // 2
            found = self._tried(float(weights[middle]), earlier)
            low, high = (low, middle) if self._differs(found, earlier) else (middle, high)
        return float(weights[high])

    def _tried(self, weight: float, earlier: IntArray) -> IntArray:
        tilted = DivMBest(weight)._augment(self._field, earlier)
        return whole(solve_map(tilted, tol=np.inf, init=earlier[0], n_jobs=self._n_jobs)).labels

    def _differs(self, labels: IntArray, earlier: IntArray) -> bool:
        n, wanted = len(labels), self._wanted
        changed = earlier != labels
        if (changed.sum(axis=1) < max(wanted.least_difference * n, 1.0)).any():
            return False
        least = wanted.least_part * n
        return all(largest_part(row, self._edges) >= least for row in changed)

    def described(self, result: DiverseResult) -> DiverseResult:
        """In words what holds of the list."""
        rise = float(result.values.max() - result.values.min())
        told = (
            "each item has the least energy less a weight for each variable that differs, the "
            f"least that makes it differ enough, and none is more than {rise:.3g} above the best"
        )
        return replace(result, reason=told + ("" if self._enough else _too_alike(self._wanted)))


def _too_alike(wanted: Alternatives) -> str:
    return (
        f"; not every two differ by {wanted.least_difference:.3g} of the variables and in a part "
        f"of {wanted.least_part:.3g} of them: there are not so many such labellings within reach"
    )
