"""Joint lists, whose items are optimised together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._certificate import EPS
from setwise._foundation._clock import Deadline, Stopwatch
from setwise._foundation._search import Control, Search, completed, drive
from setwise.diversities._base import Diversity
from setwise.diversities._concatenated import Concatenated
from setwise.fields._field import Field
from setwise.inference._conditioning._conditioned import Conditioned, Sums
from setwise.inference._conditioning._magnitude import sum_below
from setwise.inference._diverse._greedy_list import greedy_list
from setwise.inference._diverse._list_search import Item, ListSearch, with_limit
from setwise.inference._diverse._path._bias_cuts import BiasCuts
from setwise.inference._diverse._result import DiverseProgress, DiverseResult, Guarantee
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapResult
from setwise.inference._map._solve_map import solve_map


def joint_list(
    field: Field,
    m: int,
    diversity: Diversity | Concatenated,
    n_jobs: int | None,
    control: Control[DiverseProgress],
    watch: Stopwatch,
) -> DiverseResult:
    """Make the joint list of :func:`diverse` from checked arguments."""
    costs = node_costs(diversity, m)
    watch.lap("set-up")
    assert isinstance(diversity, Diversity)
    cuts = BiasCuts.of(field, n_jobs)
    if cuts is None:
        result = _by_moves(field, m, diversity, costs, n_jobs, control, watch)
    else:
        result = _by_cuts(field, cuts, m, costs, control)
    watch.lap("next items")
    return replace(result, timings=watch.timings("answer"))


def node_costs(diversity: Diversity | Concatenated, m: int) -> FloatArray:
    """Return the function of counts that a joint list needs, or raise an error that says so."""
    costs = diversity._node_costs(m) if isinstance(diversity, Diversity) else None
    if costs is None:
        raise ValueError(
            "diversity must be a sum over variables for method='joint', as DivMBest, "
            f"VariableCoverage without regions, and their sums are, got {diversity!r}"
        )
    return costs


def joint_biases(costs: FloatArray) -> FloatArray:
    r"""Return the bias of each item of the best joint list of two labels, (m,), increasing.

    With :math:`\Phi(n) = \varphi(n) + \varphi(m - n)` of n ones at a variable, convex, the joint
    problem :math:`\min \sum_i E(y_i) + \sum_v \Phi(n_v)` is at least :math:`\sum_i \min_y (E(y) +
    b_i |y|) + N \Phi(0)`, :math:`b_i = \Phi(i) - \Phi(i - 1)`: the sum of the biases of the items
    with a one at v is at least the sum of the n_v smallest biases. The best labellings for
    increasing biases are nested, so the items with a one at v are those with the smallest biases,
    and the bound is attained. For ``DivMBest`` :math:`b_i = \lambda (2 i - m - 1)`.
    """
    both = costs + costs[::-1]
    return np.maximum.accumulate(np.diff(both))


def _by_cuts(
    field: Field, cuts: BiasCuts, m: int, costs: FloatArray, control: Control[DiverseProgress]
) -> DiverseResult:
    """Return the best list of two labels."""
    search = _NestedCuts(cuts, joint_biases(costs), field.n_variables)
    ending = drive(search, replace(control, callback=None))
    if ending.cut_short:
        unaries = solve_map(cuts.base.field, time_limit=0.0)
        why = "the joint list was ended before it was there"
        result = _handed_out(field, cuts.base, [(unaries, 0.0)], Control(), why)[0]
        return with_limit(replace(result, interrupted=ending.interrupted), ending)
    solved = sorted(search.found, key=lambda row: row[0])
    # The constant part of the score is divided evenly among the items.
    each = -field.n_variables * float(costs[0] + costs[-1]) / m
    items = [
        (found, each - bias * float(np.count_nonzero(found.labels))) for _, bias, found in solved
    ]
    result, ended = _handed_out(field, cuts.base, items, control)
    result = replace(result, biases=np.array([bias for _, bias, _ in solved[: len(result.values)]]))
    if ended:
        return result
    return _with_claim(result, cuts.base, float(np.sum([found.gap for found, _ in items])))


class _NestedCuts(Search[DiverseProgress]):
    """A search for the best labellings for increasing biases, with one nested cut per step."""

    has_answer = True
    """The labelling of least unaries is an answer."""

    def __init__(self, cuts: BiasCuts, biases: FloatArray, n_variables: int) -> None:
        self._cuts, self._biases = cuts, biases
        self._above, self._nobody = np.full(n_variables, True), np.full(n_variables, False)
        self.found: list[tuple[float, float, MapResult]] = []

    def step(self) -> bool:
        bias = float(self._biases[len(self.found)])
        piece = self._cuts.end(bias, self._above, self._nobody)
        self._above = piece.ones
        self.found.append((piece.value, bias, self._cuts.certified(piece)))
        return len(self.found) == len(self._biases)


def _handed_out(
    field: Field,
    base: Conditioned,
    items: list[Item],
    control: Control[DiverseProgress],
    obstacle: str = "",
) -> tuple[DiverseResult, bool]:
    """Report known items one by one; return the list, and whether the callback ended it early."""
    search = _FoundList(field, base, items)
    ending = drive(search, replace(control, deadline=Deadline()))
    if ending.cut_short:
        obstacle = "it was ended before its last item"
    return search.result(None, obstacle, ending), ending.cut_short


class _FoundList(ListSearch):
    """A search that reports known items to the callback."""

    has_answer = False

    def __init__(self, field: Field, base: Conditioned, items: list[Item]) -> None:
        super().__init__(field, base, len(items))
        self._items = items

    def first(self) -> MapResult:
        return self._items[0][0]

    def as_first(self, best: MapResult) -> Item:
        return best, self._items[0][1]

    def another(self) -> Item:
        return self._items[len(self._found)]


def _with_claim(result: DiverseResult, base: Conditioned, gap: float) -> DiverseResult:
    """Return the list with its guarantee, where the shift c is the largest energy of the list.

    Scores are summed without the constant that all labellings share.
    """
    heights = base.field._energies(result.labelings)
    shift = float(heights.max())
    score = float((shift - heights + result.gains).sum())
    claim = Guarantee(
        factor=1.0,
        alpha=score / (score + gap) if score + gap > 0 else 1.0,
        slack=gap,
        shift=shift + base.constant,
        score=score,
        bound=score + gap,
        n_items=len(heights),
        assumes="no list of as many items has a larger sum of (c - E) plus d, but for the slack",
    )
    return replace(result, guarantee=claim, reason=claim.assumes)


def _by_moves(
    field: Field,
    m: int,
    diversity: Diversity,
    costs: FloatArray,
    n_jobs: int | None,
    control: Control[DiverseProgress],
    watch: Stopwatch,
) -> DiverseResult:
    """Return a list of any number of labels, from the greedy one, and a bound on all lists of m."""
    none, silent = np.zeros((0, field.n_variables), np.int64), replace(control, callback=None)
    start = greedy_list(field, m, diversity, "auto", n_jobs, silent, watch, none)
    if start.interrupted or control.deadline.expired:
        return start
    base = Conditioned.of(field)
    # The greedy list ends when all labellings are in it; a joint list may repeat labellings.
    labelings = start.labelings[np.arange(m) % len(start.labelings)]
    search = _JointMoves(base.field, costs, labelings, n_jobs)
    ending = drive(search, silent)
    order = np.argsort(search.energies, kind="stable")
    labelings, values = search.items[order], search.energies[order]
    gains = [diversity.gain_of(y, labelings[:k], field.n_labels) for k, y in enumerate(labelings)]
    lost = (len(base.field.unary) + m) * EPS * float(np.abs(values).sum() + np.abs(gains).sum())
    gap = max(float(values.sum()) - float(np.sum(gains)) - search.bound, 0.0)
    options = MapOptions.read(base.field)
    found = [
        options.result(
            y,
            value,
            sum_below(value, -gap / m),
            method="joint",
            n_iter=1,
            converged=True,
            sums=Sums(value, lost / m),
        )
        for y, value in zip(labelings, values.tolist(), strict=True)
    ]
    result, ended = _handed_out(field, base, list(zip(found, gains, strict=True)), control)
    if ended:
        # The gap is that of the whole list and is unknown for a part.
        unknown = np.full(len(result.values), np.inf)
        return replace(result, bounds=-unknown, relative_gaps=unknown, exact=False)
    result = replace(result, interrupted=ending.interrupted)
    if not np.isfinite(gap):
        return with_limit(replace(result, reason="the joint search was ended"), ending)
    return _with_claim(result, base, gap)


class _JointMoves(Search[DiverseProgress]):
    """A list for any number of labels, in which moves optimise one item after the other.

    A step optimises each item once. The joint score increases with every change, so the search ends
    by itself. It took at most 5 steps on 108 grids of 3 to 8 labels.
    """

    has_answer = True

    def __init__(
        self, field: Field, costs: FloatArray, start: IntArray, n_jobs: int | None
    ) -> None:
        self._field, self._costs, self._n_jobs = field, costs, n_jobs
        self.items, self.energies, self.bound = start.copy(), field._energies(start), -np.inf

    def step(self) -> bool:
        field, items = self._field, self.items
        steps, everyone, changed = np.diff(self._costs), np.arange(field.n_variables), False
        for i in range(len(items)):
            counts = label_counts(np.delete(items, i, axis=0), field.n_labels)
            prices = steps[counts]
            tilted = field.with_unary(field.unary + prices)
            found = completed(solve_map(tilted, tol=np.inf, init=items[i], n_jobs=self._n_jobs))
            value = float(field._energies(found.labels[None])[0])
            before = self.energies[i] + prices[everyone, items[i]].sum()
            after = value + prices[everyone, found.labels].sum()
            if after < before - 1e-12 * (abs(before) + abs(after)):
                items[i], self.energies[i], changed = found.labels, value, True
        return not changed

    def finish(self) -> None:
        self.bound = joint_bound(self._field, self._costs, self.items, self._n_jobs)


def joint_bound(field: Field, costs: FloatArray, items: IntArray, n_jobs: int | None) -> float:
    r"""Return a lower bound on :math:`\sum_i E(y_i) - d(S)` over all lists of as many items.

    For every slope s of the convex :math:`\varphi` at counts a,
    :math:`\varphi(n) \ge \varphi(a) + s (n - a)`, and so

    .. math:: \sum_i E(y_i) - d(S) \ge m \min_y \Bigl( E(y) + \sum_v s_{v y_v} \Bigr)
              + \sum_{v,l} \bigl( \varphi(a_{vl}) - s_{vl} a_{vl} \bigr),

    The result is the better of two bounds: with a the counts of the list itself, and with equal
    counts.
    """
    m, counts = len(items), label_counts(items, field.n_labels)
    equal = np.full(counts.shape, m / field.n_labels)
    return max(
        _tangent_bound(field, costs, at, m, n_jobs) for at in (counts.astype(np.float64), equal)
    )


def label_counts(labelings: IntArray, n_labels: int) -> IntArray:
    """Return the number of labellings (m, N) that have each label at each variable, (N, L)."""
    counts: IntArray = np.stack(
        [np.count_nonzero(labelings == label, axis=0) for label in range(n_labels)], axis=1
    )
    return counts


def _tangent_bound(
    field: Field, costs: FloatArray, at: FloatArray, m: int, n_jobs: int | None
) -> float:
    """Return the bound by tangents at counts (N, L), which need not be whole numbers."""
    steps = np.diff(costs)
    below = np.clip(np.ceil(at).astype(np.int64) - 1, 0, m - 1)
    above = np.clip(np.floor(at).astype(np.int64), 0, m - 1)
    slopes = 0.5 * (steps[below] + steps[above])
    heights = np.interp(at, np.arange(m + 1.0), costs)
    tilted = completed(solve_map(field.with_unary(field.unary + slopes), n_jobs=n_jobs))
    rest = heights - slopes * at
    # The error of each sum is at most one rounding of each summand.
    sizes = m * (abs(tilted.value) + np.abs(slopes).max(axis=1).sum()) + np.abs(rest).sum()
    return m * tilted.bound + float(rest.sum() - rest.size * EPS * sizes)
