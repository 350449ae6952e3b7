"""The minimisation of the bound of trees and counts, by messages of pairs and steps of costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise.fields._field import Field
from setwise.inference._marginals._counts._count_factors import (
    Counted,
    CountLaws,
    count_laws,
    merged,
)
from setwise.inference._marginals._counts._count_parts import (
    CountParts,
    dual_of_counts,
    newton_step,
    total_correlations,
)
from setwise.inference._marginals._descent import BoundDescent
from setwise.inference._marginals._lower_bound import LARGE
from setwise.inference._marginals._trees._pairs import logs_of, pairs_of
from setwise.inference._marginals._trees._tree_descent import (
    ENOUGH,
    FORESTS,
    LEAST_STEP,
)
from setwise.inference._marginals._trees._tree_shares import (
    Cover,
    Order,
    Shares,
    as_numbers,
    bound_of,
    from_numbers,
    mixed,
    order_of,
    shares_of,
    strongest_forest,
)

# The parts of a small field are moved before the first reported pass while the bound decreases by
# more than this, relative to its size. Four times or a quarter of this value change nothing; 0
# wastes passes.
CLOSE = 1e-5
# The number of passes between two moves of the parts. With one pass the parts are evaluated too
# early, and the interval can be twice as wide. With twelve it is not narrower.
EVERY = 3


class CountDescent(BoundDescent):
    r"""An upper bound on log Z of two labels that keeps pairs and functions of counts.

    For any costs d of the counted members, and parts :math:`\kappa` of the entropies,

    .. math:: \log Z \le B(u - d) + \sum_f \kappa_f \log \sum_{b} \exp((-h_f(|b|) - d_f(b)) /
       \kappa_f),

    where B is the bound of trees with the rest of each variable's entropy. Its derivative with
    respect to d is the probability that a member counts under the trees minus that under the count.
    A step of Newton's method makes them equal. It treats the trees' variables as independent, and
    approximates the off-diagonal covariance of a count's variables by that of the count. A step
    that increases the bound is undone and halved.
    """

    def __init__(self, field: Field, temperature: float, n_threads: int) -> None:
        super().__init__()
        constant, unary, terms = field._folded()
        n = len(unary)
        self._t, self._unary = temperature, unary
        self._threads = n_threads if unary.size >= 20_000 else 1
        self.counted = Counted.of(merged(terms, *unary.shape), unary)
        counted = self.counted
        self.constant = constant + counted.constant
        self._heights = counted.heights / temperature
        pairs = pairs_of(terms, unary.shape)
        order = order_of(pairs, n)
        self.edges = pairs.edges
        self._first = order.first(pairs.edges)
        self._shares = Shares(self._first, n)
        self._parts = CountParts(counted, n, np.bincount(self._first, minlength=n) > 0)
        self._is_small = pairs.edges.size <= LARGE
        self._covers: list[Cover] = []
        self._chooses = False
        if self._is_small and not self._shares.is_forest:
            self._covers = [Cover(1.0, order.variables, self._shares.now)]
            self._shares.rounds = 0
        self.kernel: Any = _core.TreeBound(np.ascontiguousarray(unary / temperature))
        pairs.add_to(self.kernel, temperature)
        self.kernel.close(order.variables, order.starts)
        rows = unary[counted.members] / temperature
        side = counted.inside[:, 1]
        self._costs: FloatArray = np.where(side, 1.0, -1.0) * (rows[:, 1] - rows[:, 0])
        self._costs *= self._parts.now[self._parts.owner]
        self._side = side.astype(np.int64)
        self._least = float(unary.min(axis=1).sum()) / temperature
        self._step = self._move = 1.0
        self._logs = np.zeros(unary.shape)
        self.informations = np.zeros(len(pairs.edges))
        self.laws: CountLaws = self._weighed()
        self._awaits = False
        self._costs_before = self._costs
        self._set_parts()

    # ---------------------------------------------------------------------------------- the state

    @property
    def size(self) -> int:
        """The number of messages, costs, parts and shares, without those of covers."""
        return 5 * len(self.edges) + len(self._costs) + len(self._parts.now)

    def fits(self, state: FloatArray) -> bool:
        """Return whether a state belongs to a similar field."""
        return len(state) > self.size if self._covers else len(state) == self.size

    def state(self) -> FloatArray:
        """Return the state at which the gradient of the bound is computed."""
        messages: FloatArray = np.empty((2 * len(self.edges), 2))
        self.kernel.messages(np.arange(len(self.edges)), messages)
        covers = as_numbers(self._covers) if self._covers else np.zeros(0)
        return np.concatenate(
            [messages.ravel(), self._costs, self._parts.now, self._shares.now, covers]
        )

    def restore(self, state: FloatArray) -> None:
        """Restore the bound of a state."""
        sizes = [4 * len(self.edges), len(self._costs), len(self._parts.now), len(self.edges)]
        messages, self._costs, self._parts.now, self._shares.now, covers = np.split(
            state, np.cumsum(sizes)
        )
        if self._covers:
            self._covers = from_numbers(covers, self.edges, len(self._unary))
        self._parts.rounds = self._shares.rounds = 0
        self._set_parts()
        messages = np.ascontiguousarray(messages.reshape(-1, 2))
        self.kernel.set_messages(np.arange(len(self.edges)), messages)
        self.laws = self._weighed()

    # ------------------------------------------------------------------------------------ the bound

    def _weighed(self) -> CountLaws:
        """Return the distributions of the counts at the current costs."""
        parts = self._parts.now
        logits = -self._costs / parts[self._parts.owner]
        heights = self._heights / np.repeat(parts, self.counted.sizes + 1)
        return count_laws(self.counted, logits, heights, self._threads)

    def _set_parts(self) -> None:
        """Set changed parts or shares, and forget the bound and dual of the earlier ones."""
        self.kernel.set_weights(self._parts.rest)
        if self._covers:
            self.kernel.set_shares(shares_of(self._scaled()))
        else:
            self.kernel.set_shares(self._shares.now * self._parts.rest[self._first])
        self._set_costs()
        self._forget()

    def _scaled(self) -> list[Cover]:
        """Return the covers scaled by the entropy that counts leave the first end of each edge."""
        rest = self._parts.rest
        return [
            cover._replace(shares=cover.shares * rest[_first_of(cover, self.edges)])
            for cover in self._covers
        ]

    def _set_costs(self) -> None:
        """Set the unaries of the trees to those of the field minus the costs of the counts."""
        unary = self._unary / self._t
        np.subtract.at(unary, (self.counted.members, self._side), self._costs)
        self.kernel.set_unary(unary)

    def _eliminate(self) -> float:
        self.laws = self._weighed()
        trees = self.kernel.forward(self._threads)
        if self._covers and not self._chooses:  # the forests are already fixed
            trees = bound_of(self.kernel, self._scaled())
        of_counts = float((self._parts.now * self.laws.logs).sum())
        sizes = float(np.abs(self._costs).sum()) + abs(of_counts) + len(self._unary)
        return float(trees) + of_counts + self.laws.slack + 1e-15 * sizes

    def begin(self) -> None:
        """Compute the first bound. Small fields first choose their forests, then the parts."""
        self.history.append(self._eliminate())
        if self._is_small and self._parts.rounds:
            if self._covers:
                self._choose_forests()
            while self._parts.rounds or self._awaits:
                for _ in range(EVERY):
                    self.sweep()
                self._move_parts(CLOSE)
            self.hold_parts()
        self.n_iter, self._step, self._move = 0, 1.0, 1.0
        self.value = self._last = self._eliminate()
        self.history = [self.value]

    def _choose_forests(self) -> None:
        """Choose spanning forests that cover the graph, the most informative one per round."""
        self._chooses = True
        for k in range(FORESTS):
            for _ in range(2):
                self.sweep()
            self.measure()
            forest = strongest_forest(self.edges, self.informations, len(self._unary))
            most = float(forest.shares @ self.informations)
            mean = float(shares_of(self._covers) @ self.informations)
            if most - mean <= ENOUGH * most:
                break
            self._covers = mixed(self._covers, forest, 1.0 / (k + 3))
            self._set_parts()
        self._chooses = False
        self.value = self._last = self._eliminate()
        self.history = [self.value]

    def _probabilities_inside(self, p: FloatArray) -> FloatArray:
        """Return the probabilities (P,) under the trees that the members' labels count."""
        return p[self.counted.members, self._side]

    def sweep(self) -> None:
        """Make one pass."""
        self.kernel.backward(self._step, self._logs, self._threads)
        before = self._costs
        self._costs = before - self._move * newton_step(
            self.counted, self._parts, self.laws, self._probabilities_inside(np.exp(self._logs))
        )
        self._set_costs()
        value = self._eliminate()
        self.n_iter += 1
        self.value = min(self.value, value)
        if self._is_above_last(value):
            self._move = max(self._move / 2, LEAST_STEP)
            self._costs = before
            self._set_costs()
            value = self._eliminate()  # the bound after new messages only
            self.value = min(self.value, value)
            if self._is_above_last(value):
                self._step = max(self._step / 2, LEAST_STEP)
        else:
            self._step, self._move = min(1.0, 1.1 * self._step), min(1.0, 1.2 * self._move)
        self._last = value
        self.history.append(self.value)

    # -------------------------------------------------------------------------------- the parts

    def _move_parts(self, tol: float) -> None:
        """Move parts and shares to more informative ones. Undo the last move if it did not help."""
        if self._awaits and self.history[-1] >= self.history[-1 - EVERY]:
            self._parts.take_back()
            self._shares.take_back()
            self._costs = self._costs_before
            self._set_parts()
        self._awaits = False
        if not self._parts.rounds:
            return
        self.measure()
        of_edges = self._information_of_edges()
        self._costs_before = self._costs
        before = self._parts.now
        fall = self._parts.move(self._totals(), of_edges)
        if self._shares.rounds:
            fall += self._shares.move(self.informations)
        if self._relative(fall) <= tol / 4:
            self._parts.take_back()
            self._shares.take_back()
            return
        self._costs = self._costs * (self._parts.now / before)[self._parts.owner]
        self._set_parts()
        self._awaits = True

    def _information_of_edges(self) -> FloatArray:
        """Return the information of each variable's edges to later variables, (N,)."""
        covers = self._covers or [Cover(1.0, self._first, self._shares.now)]
        total: FloatArray = np.zeros(len(self._unary))
        for cover in covers:
            first = _first_of(cover, self.edges) if self._covers else self._first
            weights = cover.weight * cover.shares * self.informations
            total += np.bincount(first, weights, minlength=len(total))
        return total

    def _totals(self) -> FloatArray:
        """Return the total correlation of each count's variables (F,), in nats."""
        return total_correlations(
            self.counted, self.laws, self._parts.now, self._heights, self._costs
        )

    def measure(self) -> None:
        r"""Measure the gap between the least bound and the largest value of the dual so far.

        The dual is evaluated at the marginals of the trees, and at those of the counts. If the
        marginals of a count differ from these, each member is changed independently with the
        probability of the difference. This does not increase the total correlation, and each change
        increases the energy by at most the largest rise or fall of the function.
        """
        self.kernel.beliefs(self._logs, self._threads)
        p = self.probabilities()
        dual = self._dual_at(self._logs)
        q: FloatArray = p.copy()
        counts = self.laws.q
        q[self.counted.members[::-1], self._side[::-1]] = counts[::-1]
        q[self.counted.members[::-1], 1 - self._side[::-1]] = 1.0 - counts[::-1]
        informations = self.informations.copy()
        dual = max(dual, self._dual_at(logs_of(q)))
        self.informations = informations
        self._keep_dual(dual)

    def _dual_at(self, logs: FloatArray) -> float:
        mu = self._probabilities_inside(np.exp(logs))
        of_counts = dual_of_counts(
            self.counted, self.laws, self._parts.now, self._heights, self._costs, mu
        )
        return float(self.kernel.dual(logs, self.informations, self._threads)) + of_counts

    def measure_start(self, limit: float) -> int:
        if limit == 0:
            self.kernel.backward(1.0, self._logs, self._threads)
            self.measure()
        return 5

    def advance(self, tol: float, limit: float, due: int) -> bool:
        self.sweep()
        if self.n_iter % EVERY == 0 and (self._parts.rounds or self._awaits):
            self._move_parts(tol)
            return False
        return self.n_iter >= due or self.n_iter == limit

    @property
    def is_settled(self) -> bool:
        return not self._awaits

    def hold_parts(self) -> None:
        """Keep the current parts and shares."""
        self._parts.rounds = self._shares.rounds = 0


def _first_of(cover: Cover, edges: IntArray) -> IntArray:
    """Return the end of each edge (E,) that a cover eliminates first."""
    return Order(cover.order, np.zeros(1, np.int64)).first(edges)
