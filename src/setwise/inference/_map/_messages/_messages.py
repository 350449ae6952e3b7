"""The best labelling by passing messages, with a bound from the dual."""

from __future__ import annotations

import numpy as np

from setwise._core import MessageSearch
from setwise._foundation._arguments import IntArray
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS
from setwise._foundation._search import Ending
from setwise.fields._field import Field
from setwise.inference._conditioning._conditioned import Sums
from setwise.inference._conditioning._magnitude import largest_of_terms
from setwise.inference._map._messages._bound_ascent import Ascent
from setwise.inference._map._messages._factor_graph import Factors, factors_of
from setwise.inference._map._messages._search import message_search
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapProgress, MapResult
from setwise.inference._map._search import MapSearch

# The share of the old message that damping keeps: the usual value. In loopy belief propagation any
# share between 0.1 and 0.9 works.
DAMPING = 0.5
# The number of passes of a walk, in which the noise of relabelled forests decreases to 0; then
# another walk starts. The other numbers of passes are multiples: the first walk starts after half
# of this number, since most fields need fewer passes; the search ends after two and a half times as
# many passes without progress; and an affordable exact method is preferred after twice as many. A
# quarter or four times as many passes change three of 2,828 small fields.
_WALK = 20
# The most entries of the unaries in the forests that a pass relabels, of which there are 1 to 4. It
# bounds the work of a pass. Not tuned.
_MOST_MOVED = 100_000


def messages(field: Field, options: MapOptions) -> MapResult:
    r"""Find a labelling of low energy and a bound, for pairs of any kind and functions of counts.

    Two kinds of messages are used together. Those of the dual reparametrise the energy,

    .. math::
        E(x) = \sum_i \Bigl(u_i + \sum_{f \ni i} \lambda_{fi}\Bigr)(x_i)
               + \sum_f \Bigl(\varphi_f(x_f) - \sum_{i \in f} \lambda_{fi}(x_i)\Bigr),

    so that the sum of the minima of all parts is a bound, which increases with every pass (block
    coordinate ascent by min-marginals). Those of damped max-product give no bound, but find
    labellings. Both are decoded in every pass (a variable takes its best label given the variables
    before it). The better labelling is improved one variable at a time, and the best of all is
    returned.

    The result is exact, with ``bound == value``, for a forest of pairs and for unaries with one
    function of a count. If the bound slows below the value, triangles and squares of the pairs
    become factors, then steps along a supergradient are inserted between passes, and forests of the
    best labelling are relabelled under decreasing noise. Most grids of pairs, of any sign, are then
    solved exactly too. For functions of counts among pairs the bound is at most that of the linear
    relaxation, tightened by cycles, and a gap may remain.

    It supports Potts terms, pairwise tables of any sign, cardinality potentials with any table,
    region consistency, label costs, robust regions and tables of several variables without
    forbidden entries. By default there are at most 1000 passes, on one thread; ``random`` chooses
    the forests that are relabelled.

    Notes
    -----
    A pass costs O(E L) for Potts, O(E L^2) for tables, O(n log n) for a function of a count over n
    variables, O(k L^k) for a table of k, and O(L^3) for each triangle or square that is used. Pairs
    are swept as in sequential tree-reweighted message passing (Kolmogorov, 2006): forward and
    backward, where each variable gives a share 1 / max(pairs ahead, pairs behind) of its unaries to
    every pair ahead. A function of a count takes all unaries of its variables. Then it returns,
    twice, nearly the largest multiple of its min-marginals that does not change its own minimum.
    Cycles do the same with their pairs.
    """
    return _MessagePasses(field, options).run()


class _MessagePasses(MapSearch):
    method = "messages"

    def __init__(self, field: Field, options: MapOptions) -> None:
        super().__init__(field, options)
        self.limit = 1000 if options.max_iter is None else options.max_iter
        self._random = np.random.default_rng(0) if options.random is None else options.random
        self._factors = factors_of(field)
        # The rounding error of messages, which cancel in the energy.
        self._lost = FEW_ROUNDINGS * EPS * largest_of_terms(field)
        self._search, self._order = message_search(self._factors, DAMPING)
        self._ascent = Ascent(self._search, self._factors, self._order)
        options.watch.lap("set-up")
        # This labelling is returned if the first pass is interrupted.
        labels = options.start(field)
        self.best = labels, _energy(field, labels)
        self.bound = min(self.bound, self.best[1])
        self._values: list[float] = []
        self._bounds: list[float] = []

    def step(self) -> bool:
        search, values, n_iter = self._search, self._values, len(self._values)
        if n_iter == 0:
            search.offer(np.ascontiguousarray(self.best[0][self._order]))
        raised = self._ascent.advance(self.best[1])
        search.max_product_pass()
        if n_iter >= _WALK // 2 and values[-1] == values[-3]:
            _walk(search, n_iter - _WALK // 2, self._factors, self._random)
        labels = _best(search, self._order)
        energy = _energy(self.field, labels)
        if energy < self.best[1]:
            self.best = labels, energy
        value, before = self.best[1], self.best[1] - self.bound
        self.bound = min(max(self.bound, raised), value)
        values.append(value)
        self._bounds.append(self.bound)
        self.sums = Sums(search.magnitude(), self._lost)
        settled = self.options.settled(value, self.bound, self.sums, before)
        self.converged = settled or _has_stopped(values, self._bounds)
        return self.converged or (len(values) == 2 * _WALK and self.options.rival())

    def result(self, ending: Ending[MapProgress]) -> MapResult:
        self.sums = Sums(self._search.magnitude(), self._lost)
        return super().result(ending)


def _has_stopped(values: list[float], bounds: list[float]) -> bool:
    """Return whether 2.5 walks found no better labelling and closed under 1e-3 of the gap."""
    patience = 5 * _WALK // 2
    if len(bounds) <= patience or values[-1] < values[-1 - patience]:
        return False
    return bounds[-1] - bounds[-1 - patience] <= 1e-3 * (values[-1] - bounds[-1])


def _walk(search: MessageSearch, k: int, factors: Factors, random: np.random.Generator) -> None:
    """Relabel random forests, with noise on the unaries that decreases to 0 in _WALK passes.

    Initially the noise has the standard deviation of the pairs' energies.
    """
    n, size = len(factors.unary), factors.unary.size
    moves = min(4, max(1, _MOST_MOVED // max(size, 1)))
    for move in range(k % _WALK * moves, (k % _WALK + 1) * moves):
        noise = factors.pairs.spread * (1.0 - (move + 1) / (_WALK * moves))
        search.move_tree(move == 0, random.permutation(n), noise * random.standard_normal(size))


def _best(search: MessageSearch, order: IntArray) -> IntArray:
    """Return the best labelling of the search, in the field's numbering of the variables."""
    found, labels = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    search.best(found)
    labels[order] = found
    return labels


def _energy(field: Field, labels: IntArray) -> float:
    return float(field._energies(labels[None])[0])
