"""The best labelling of pairs with label costs, by conditioning on the labels that are used."""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush
from math import fsum, inf
from typing import NamedTuple

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise._foundation._certificate import EPS
from setwise._foundation._methods import taken
from setwise._foundation._search import completed
from setwise.fields._base import Potential
from setwise.fields._field import Field
from setwise.fields._potentials._pairwise import Pairwise
from setwise.fields._potentials._potts import Potts
from setwise.fields._terms import LabelTerm, PottsTerm, TableTerm
from setwise.inference._conditioning._conditioned import Conditioned, Sums
from setwise.inference._conditioning._magnitude import sum_below
from setwise.inference._map._branching._windows import windows
from setwise.inference._map._junction_tree import numbers_of_a_pass
from setwise.inference._map._moves._expansion import expansion
from setwise.inference._map._moves._terms import TAKEN_BY_EXPANSION
from setwise.inference._map._odd_cycles._odd_cycles import TAKEN_BY_ODD_CYCLES
from setwise.inference._map._options import MapOptions, lost_of
from setwise.inference._map._result import MapResult
from setwise.inference._map._search import MapSearch

# The rounds in which the prices of a problem are adapted. Not tuned.
_ROUNDS = 4
# The share by which prices are lowered, so that their sum is below the cost in spite of the three
# roundings of each.
_BELOW = 4.0 * EPS
# The work of a round, in units of ``MapOptions.budget`` per number of the field. By default the
# rounds take about a second for 600 variables of six labels, whose answer is then proved, and a few
# seconds for 40,000 variables of 21 labels.
_WORK = 1.5
# The rounds continue while one closes this share of the gap.
_CLOSES = 0.1

TAKEN_BY_CONDITIONING = TAKEN_BY_ODD_CYCLES | {LabelTerm: taken}


def conditioning(field: Field, options: MapOptions) -> MapResult:
    r"""Minimise pairs with label costs by branching on which labels are used.

    The cost c of a group of labels G is charged if a variable has a label of the group. For prices
    :math:`\lambda \ge 0` with sum c,

    .. math:: c \max_i [x_i \in G] \ge \sum_i \lambda_i [x_i \in G],

    so with prices added to the unaries a field of pairs bounds the energy; ``windows`` minimises
    it. The prices are first placed where a change of the label would cost most, and are then moved
    to the variables that use the group. If a bound stays below the energy, the group of fewest
    variables is used and its cost is paid, or its labels are forbidden. Of the open problems, that
    of the least bound is next. A round solves one field of pairs.
    """
    return _Conditioning(field, options).run()


class _Choice(NamedTuple):
    """A problem in which some groups are used, others are not. Ties go to the latest one."""

    bound: float
    number: int
    used: frozenset[int]
    unused: frozenset[int]


class _Conditioning(MapSearch):
    method = "conditioning"

    def __init__(self, field: Field, options: MapOptions) -> None:
        super().__init__(field, options)
        labels = options.start(field) if options.known is None else options.known.labels
        self.best = labels, _energy(field, labels)
        self.bound = min(self.bound, self.best[1])
        self._constant, self._unary, terms = field._folded()
        self._groups = [
            term for _, term in terms if isinstance(term, LabelTerm) and term.cost > 0.0
        ]
        pairs: list[Potential] = []
        for _, term in terms:
            match term:
                case PottsTerm():
                    pairs.append(Potts(term.edges, term.weights))
                case TableTerm():
                    pairs.append(Pairwise(term.edges, term._tables_of(slice(None))))
                case _:
                    pass
        self._pairs = tuple(pairs)
        self._moves = all(TAKEN_BY_EXPANSION[type(term)](term) is None for _, term in terms)
        self._open = [_Choice(self.bound, 0, frozenset(), frozenset())]
        self._closed, self._number, self._lost = inf, 0, 0.0
        self._most = options.budget
        self._now: _Choice | None = None
        self._prices = [np.zeros(0)] * len(self._groups)
        self._rounds = 0
        options.watch.lap("set-up")

    def step(self) -> bool:
        if self._now is None:
            self._now, self._rounds = heappop(self._open), 0
            self._prices = [self._placed(k, self.best[0]) for k in range(len(self._groups))]
        now = self._now
        found = self._solve(now)
        self._most -= _WORK * numbers_of_a_pass(self.field)
        if found is None:  # some variable has no label left
            self._now = None
            return self._assess()
        labels, bound = found
        rise = bound - now.bound
        now = self._now = now._replace(bound=max(bound, now.bound))
        self._rounds += 1
        if self._is_settled(now.bound):
            self._close(now.bound)
            return self._assess()
        loose = [k for k in self._undecided(now) if self._is_loose(k, labels)]
        gap = self.best[1] - now.bound
        if loose and self._rounds < _ROUNDS and (self._rounds == 1 or rise > _CLOSES * gap):
            for k in loose:
                self._prices[k] = 0.5 * (self._prices[k] + self._placed(k, labels))
            return self._assess()
        uses = {k: self._uses(k, labels) for k in self._undecided(now)}
        uses = {k: count for k, count in uses.items() if count}
        if uses:
            self._divide(now, min(uses, key=lambda k: (uses[k], k)))
        else:
            self._close(now.bound)
        return self._assess()

    def _solve(self, now: _Choice) -> tuple[IntArray, float] | None:
        """Return a labelling and the bound of a problem with the present prices."""
        unary, paid = self._unary.copy(), [self._constant]
        for k, group in enumerate(self._groups):
            if k in now.unused:
                unary[:, group.labels] = inf
            elif k in now.used:
                paid.append(group.cost)
            else:
                unary[:, group.labels] += self._prices[k][:, None]
        if not np.isfinite(unary).any(axis=1).all():
            return None
        start = self.best[0]
        is_out = np.isinf(unary[np.arange(len(unary)), start])
        start = np.where(is_out, unary.argmin(axis=1), start)
        problem = Conditioned.of(Field._of(unary, self._pairs))
        options = replace(
            self.options,
            tol=0.0,
            max_iter=None,
            init=start,
            callback=None,
            problem=problem,
            by_cut=None,
            known=None,
        )
        if self._moves:
            moved = completed(expansion(problem.field, replace(options, tol=inf)))
            options = replace(options, known=moved)
        found = completed(windows(problem.field, options))
        self._lost = max(self._lost, lost_of(found))
        result = options.in_given(found)
        self._meet(result.labels)
        return result.labels, sum_below(*paid, result.bound)

    def _meet(self, labels: IntArray) -> None:
        """Keep a labelling, after moves of the whole field, if it is the best so far."""
        if self._moves:
            options = replace(self.options, tol=inf, init=labels, callback=None, known=None)
            labels = completed(expansion(self.field, options)).labels
        value = _energy(self.field, labels)
        if value < self.best[1]:
            self.best = labels, value

    def _placed(self, k: int, labels: IntArray) -> FloatArray:
        """Return prices on the variables that use a group, in proportion to what a change costs."""
        group = self._groups[k]
        inside = group.labels[labels]
        prices: FloatArray = np.zeros(len(labels))
        if not inside.any():
            return prices
        others = np.where(group.labels, inf, self._unary).min(axis=1)
        own = self._unary[np.arange(len(labels)), labels]
        stays = np.where(np.isfinite(others), others, own) - own
        for pair in self._pairs:
            if isinstance(pair, Potts):
                same = pair.weights * (inside[pair.edges].all(axis=1))
                stays += np.bincount(pair.edges.ravel(), np.repeat(same, 2), len(labels))
        weights = np.maximum(stays, 0.0) * inside
        if not weights.sum() > 0.0:
            weights = inside.astype(float)
        prices = weights * (group.cost / fsum(weights) * (1.0 - _BELOW))
        return prices

    def _undecided(self, now: _Choice) -> list[int]:
        return [k for k in range(len(self._groups)) if k not in now.used and k not in now.unused]

    def _uses(self, k: int, labels: IntArray) -> int:
        return int(np.count_nonzero(self._groups[k].labels[labels]))

    def _is_loose(self, k: int, labels: IntArray) -> bool:
        """Return whether the prices that a labelling pays for a group are less than its cost."""
        inside: BoolArray = self._groups[k].labels[labels]
        return bool(inside.any() and self._prices[k][inside].sum() < 0.999 * self._groups[k].cost)

    def _divide(self, now: _Choice, k: int) -> None:
        """Replace a problem by two, in which a group is used or is not."""
        for used, unused in ((now.used | {k}, now.unused), (now.used, now.unused | {k})):
            self._number -= 1
            heappush(self._open, _Choice(now.bound, self._number, used, unused))
        self._now = None

    def _is_settled(self, bound: float) -> bool:
        value = self.best[1]
        return bound >= value or self.options.problem.is_exact(value, bound, self.sums)

    def _close(self, bound: float) -> None:
        self._closed, self._now = min(self._closed, bound), None

    def _assess(self) -> bool:
        """Update the bound of the search. Return whether it has ended."""
        problem = self.options.problem
        magnitude = max(self.best[1] - problem.trivial, 0.0)
        # The amounts by which bounds of problems were lowered count as rounding.
        magnitude += 2.0 * self._lost / (EPS * max(problem.n_summands, 1))
        self.sums = Sums(magnitude, 0.0, 4)
        while self._open and self._now is None and self._is_settled(self._open[0].bound):
            self._close(heappop(self._open).bound)
        value, left = self.best[1], [self._closed, *(one.bound for one in self._open[:1])]
        if self._now is not None:
            left.append(self._now.bound)
        self.bound = max(self.bound, min(*left, value))
        ended = self._now is None and not self._open
        self.converged = ended or self._is_settled(self.bound)
        return self.converged or self._most <= 0.0


def _energy(field: Field, labels: IntArray) -> float:
    return float(field._energies(labels[None])[0])
