"""Lists that are best as a whole: all items at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._deadline import Deadline
from setwise._foundation._interrupts import whole
from setwise._foundation._timings import Stopwatch
from setwise.diversities._base import Diversity
from setwise.diversities._concatenated import Concatenated
from setwise.fields._field import Field
from setwise.inference._diverse._greedy_list import greedy_list
from setwise.inference._diverse._items import Items
from setwise.inference._diverse._path_cuts import Cuts
from setwise.inference._diverse._result import DiverseProgress, DiverseResult, Guarantee
from setwise.inference._map._ground import Ground, difference_below, ground
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapResult
from setwise.inference._map._solve_map import solve_map

# Sweeps over the items of a list of more labels, each item best given the others.
_MOST_SWEEPS = 10
_ENDED = "it was ended before its last item"


def joint_list(
    field: Field,
    m: int,
    diversity: Diversity | Concatenated,
    n_jobs: int | None,
    deadline: Deadline,
    watch: Stopwatch,
    callback: Callable[[DiverseProgress], object] | None,
) -> DiverseResult:
    """The joint list of :func:`diverse`, its arguments checked."""
    costs = node_costs(diversity, m)
    watch.lap("set-up")
    assert isinstance(diversity, Diversity)
    cuts = Cuts.of(field, n_jobs)
    if cuts is None:
        result = _by_moves(field, m, diversity, costs, n_jobs, deadline, watch, callback)
    else:
        result = _by_cuts(field, cuts, m, costs, deadline, callback)
    watch.lap("next items")
    return replace(result, timings=watch.timings("answer"))


def node_costs(diversity: Diversity | Concatenated, m: int) -> FloatArray:
    """The function of counts that a joint list needs, or an error that says which have one."""
    costs = diversity._node_costs(m) if isinstance(diversity, Diversity) else None
    if costs is None:
        raise ValueError(
            "diversity must be a sum over variables for method='joint', as DivMBest, "
            f"VariableCoverage without regions, and their sums are, got {diversity!r}"
        )
    return costs


def joint_biases(costs: FloatArray) -> FloatArray:
    r"""(m,): the bias of each item of the best joint list of two labels, increasing.

    With :math:`\Phi(n) = \varphi(n) + \varphi(m - n)` of n ones at a variable, convex, the joint
    problem :math:`\min \sum_i E(y_i) + \sum_v \Phi(n_v)` is at least
    :math:`\sum_i \min_y (E(y) + b_i |y|) + N \Phi(0)`, :math:`b_i = \Phi(i) - \Phi(i - 1)`: n ones
    cost at least the n smallest of these, wherever they are. The best labellings for increasing
    biases are nested, so that the items with ones at a variable are the first of them, and the
    bound is met. For ``DivMBest`` :math:`b_i = \lambda (2 i - m - 1)`.
    """
    both = costs + costs[::-1]
    return np.maximum.accumulate(np.diff(both))


def _by_cuts(
    field: Field,
    cuts: Cuts,
    m: int,
    costs: FloatArray,
    deadline: Deadline,
    callback: Callable[[DiverseProgress], object] | None,
) -> DiverseResult:
    """The best list of two labels: m cuts, each from the flow of the last and within its ones."""
    items, biases = Items(field, cuts.base, perf_counter()), joint_biases(costs)
    # What does not depend on the items is shared by all.
    each = -field.n_variables * float(costs[0] + costs[-1]) / m

    def solve() -> list[tuple[float, MapResult]]:
        above, nobody = np.full(field.n_variables, True), np.full(field.n_variables, False)
        found = []
        for bias in biases.tolist():
            end = cuts.end(bias, above, nobody)
            above = end.ones
            found.append((end.value, bias, cuts.certified(end)))
        return [(bias, result) for _, bias, result in sorted(found, key=lambda row: row[0])]

    try:
        solved = deadline.run(solve)
    except KeyboardInterrupt:
        return _nothing(field, cuts, deadline)
    steps = [(found, each - b * float(np.count_nonzero(found.labels))) for b, found in solved]
    ended = _ends_early(items, steps, callback)
    result = items.result(None, _ENDED if ended else "", ended)
    result = replace(result, biases=np.array([bias for bias, _ in solved[: len(result.values)]]))
    if ended:
        return result
    gap = float(np.sum([found.gap for found, _ in steps]))
    claim = _claim(cuts.base, result, gap)
    return replace(result, guarantee=claim, reason=claim.assumes)


def _ends_early(
    items: Items,
    steps: list[tuple[MapResult, float]],
    callback: Callable[[DiverseProgress], object] | None,
) -> bool:
    """Fill the list; whether a callback or Ctrl-C ended it before the last item."""
    try:
        for found, gain in steps:
            items.add(found, gain)
            if items.ends(callback):
                break
    except KeyboardInterrupt:  # the list so far holds
        if len(items) == 0:
            raise
    return len(items) < len(steps)


def _nothing(field: Field, cuts: Cuts, deadline: Deadline) -> DiverseResult:
    """A list that was ended before it was there: the labelling of least unaries alone."""
    items = Items(field, cuts.base, perf_counter())
    items.add(solve_map(cuts.base.field, time_limit=0.0), 0.0)
    result = items.result(None, "the joint list was ended before it was there", True)
    if deadline.struck:
        reason = deadline.added_to(result.reason)
        return replace(result, reason=reason, interrupted=False)
    return result


def _claim(base: Ground, result: DiverseResult, gap: float) -> Guarantee:
    """With c the largest energy of the list; scores are summed without what all labellings pay."""
    heights = base.field._energies(result.labelings)
    shift = float(heights.max())
    score = float((shift - heights + result.gains).sum())
    return Guarantee(
        factor=1.0,
        slack=gap,
        shift=shift + base.constant,
        score=score,
        bound=score + gap,
        n_items=len(heights),
        assumes="no list of as many items has a larger sum of (c - E) plus d, but for the slack",
    )


def _by_moves(
    field: Field,
    m: int,
    diversity: Diversity,
    costs: FloatArray,
    n_jobs: int | None,
    deadline: Deadline,
    watch: Stopwatch,
    callback: Callable[[DiverseProgress], object] | None,
) -> DiverseResult:
    """A list of any number of labels, from the greedy one, and a bound on all lists of m."""
    none = np.zeros((0, field.n_variables), np.int64)
    start = greedy_list(field, m, diversity, "auto", n_jobs, deadline, watch, None, none)
    if start.interrupted or deadline.struck:
        return start
    base = ground(field)
    # The greedy list ends with the labellings there are; a joint list may have some of them twice.
    labelings = start.labelings[np.arange(m) % len(start.labelings)]
    bound, interrupted = -np.inf, False
    try:
        labelings = deadline.run(joint_moves, base.field, costs, labelings, n_jobs)
        bound = deadline.run(joint_bound, base.field, costs, labelings, n_jobs)
    except KeyboardInterrupt:
        interrupted = True
    labelings = labelings[np.argsort(field._energies(labelings), kind="stable")]
    values = base.field._energies(labelings)
    gains = [diversity._gain(y, labelings[:k], field.n_labels) for k, y in enumerate(labelings)]
    gap = max(float(values.sum()) - float(np.sum(gains)) - bound, 0.0)
    items, options = Items(field, base, perf_counter()), MapOptions.read(base.field)
    bounds = [difference_below(value, gap / m) for value in values.tolist()]
    found = [
        options.result(y, value, below, method="joint", n_iter=1, converged=True)
        for y, value, below in zip(labelings, values.tolist(), bounds, strict=True)
    ]
    if _ends_early(items, list(zip(found, gains, strict=True)), callback):
        # The gap is that of the whole list, and tells nothing of a part.
        result = items.result(None, _ENDED, True)
        unknown = np.full(len(result.values), np.inf)
        return replace(result, bounds=-unknown, relative_gaps=unknown, exact=False)
    result = items.result(None, "", interrupted and not deadline.struck)
    if not np.isfinite(gap):
        return replace(result, reason=deadline.added_to("the joint search was ended"))
    claim = _claim(base, result, gap)
    return replace(result, guarantee=claim, reason=claim.assumes)


def joint_moves(field: Field, costs: FloatArray, start: IntArray, n_jobs: int | None) -> IntArray:
    """A list of any number of labels: items in turn, each the best that moves find given the rest.

    The joint score never gets worse than that of ``start``.
    """
    items, energies = start.copy(), field._energies(start)
    steps, everyone = np.diff(costs), np.arange(field.n_variables)
    for _ in range(_MOST_SWEEPS):
        changed = False
        for i in range(len(items)):
            counts = label_counts(np.delete(items, i, axis=0), field.n_labels)
            prices = steps[counts]
            tilted = field.with_unary(field.unary + prices)
            found = whole(solve_map(tilted, tol=np.inf, init=items[i], n_jobs=n_jobs))
            value = float(field._energies(found.labels[None])[0])
            before = energies[i] + prices[everyone, items[i]].sum()
            after = value + prices[everyone, found.labels].sum()
            if after < before - 1e-12 * (abs(before) + abs(after)):
                items[i], energies[i], changed = found.labels, value, True
        if not changed:
            break
    return items


def joint_bound(field: Field, costs: FloatArray, items: IntArray, n_jobs: int | None) -> float:
    r"""No list of as many items has a :math:`\sum_i E(y_i) - d(S)` below this.

    For every slope s of the convex :math:`\varphi` at counts a,
    :math:`\varphi(n) \ge \varphi(a) + s (n - a)`, and so

    .. math:: \sum_i E(y_i) - d(S) \ge m \min_y \Bigl( E(y) + \sum_v s_{v y_v} \Bigr)
              + \sum_{v,l} \bigl( \varphi(a_{vl}) - s_{vl} a_{vl} \bigr),

    with the counts of the list itself for a, and with equal counts: the better of the two.
    """
    m, counts = len(items), label_counts(items, field.n_labels)
    equal = np.full(counts.shape, m / field.n_labels)
    return max(
        _tangent_bound(field, costs, at, m, n_jobs) for at in (counts.astype(np.float64), equal)
    )


def label_counts(labelings: IntArray, n_labels: int) -> IntArray:
    """(N, L): how many of the labellings (m, N) have each label at each variable."""
    counts: IntArray = np.stack(
        [np.count_nonzero(labelings == label, axis=0) for label in range(n_labels)], axis=1
    )
    return counts


def _tangent_bound(
    field: Field, costs: FloatArray, at: FloatArray, m: int, n_jobs: int | None
) -> float:
    """The bound by tangents at counts (N, L), which need not be whole numbers."""
    steps = np.diff(costs)
    below = np.clip(np.ceil(at).astype(np.int64) - 1, 0, m - 1)
    above = np.clip(np.floor(at).astype(np.int64), 0, m - 1)
    slopes = 0.5 * (steps[below] + steps[above])
    heights = np.interp(at, np.arange(m + 1.0), costs)
    least = whole(solve_map(field.with_unary(field.unary + slopes), n_jobs=n_jobs)).bound
    return m * least + float((heights - slopes * at).sum())
