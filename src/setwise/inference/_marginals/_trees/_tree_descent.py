"""The minimisation of the bound of trees, by messages along pairs and steps of other terms."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._certificate import EPS
from setwise.fields._field import Field
from setwise.fields._terms import PottsTerm, TableTerm
from setwise.inference._marginals._descent import BoundDescent, lowered
from setwise.inference._marginals._lower_bound import LARGE
from setwise.inference._marginals._search import MarginalsOptions, MarginalsSolution
from setwise.inference._marginals._trees._pairs import (
    NEVER,
    expected_energies,
    keys_of,
    logs_of,
    pairs_of,
)
from setwise.inference._marginals._trees._tree_shares import (
    ROUNDS,
    Cover,
    Shares,
    as_numbers,
    bound_of,
    from_numbers,
    mixed,
    order_of,
    shares_of,
    strongest_forest,
)
from setwise.inference._relaxation._relaxation import Relaxation

# The largest number of forests. With ten forests the interval is up to 16 % wider; with more than
# 40 it is hardly narrower.
FORESTS = 40
# The choice of forests ends when the next one has at most this share more information than the
# mean. Four times this share widens the interval of strong couplings by a quarter.
ENOUGH = 0.02
# Steps that raise the bound are halved, but not below this value. No measured search by ``trees``
# came near it. Searches with strong functions of counts reach it, and a quarter or four times the
# value takes more passes.
LEAST_STEP = 1.0 / 64.0
# The largest number of passes between two evaluations of the bound of many forests, each of which
# costs as much as many passes. Not tuned.
PATIENCE = 16


def trees(field: Field, options: MarginalsOptions) -> MarginalsSolution:
    r"""Minimise the tree-reweighted bound, with the Lovász extension of all terms except pairs.

    .. math:: \log Z \le \max_\mu \sum_i H(\mu_i) - \sum_e \rho_e I(\mu_e) - E(\mu)

    over consistent marginals of variables and pairs (Wainwright, Jaakkola and Willsky, *A New Class
    of Upper Bounds on the Log Partition Function*, 2005). The variables are ordered, leaves first,
    and the shares :math:`\rho_e` of the edges from a variable to later ones sum to 1. On a forest
    each share is 1, and the bound is log Z. Shares are equal at first, and three rounds raise those
    of more informative edges. If E L is at most 20,000, the shares are those of a mean of up to 40
    spanning forests, each of which is the most informative one when it is chosen. Pairs may have
    any tables; other terms must be submodular. A pass is O(E L) for Potts terms, O(E L^2) for
    tables, and as in ``projection`` for the other terms. Memory is 2 E numbers of ``dtype`` and 8 N
    per label, plus the blocks of the other terms. In single precision messages to later variables
    are rounded up, and all sums are in double precision, so that the bound is valid; the gap then
    ends near 1e-6.
    """
    t = options.temperature
    descent = TreeDescent(field, t, options.n_threads, options.dtype)
    if options.state is not None and not descent.fits(options.state):
        raise ValueError(
            f"init must be a result with {descent.size} messages and block entries, "
            "got one of a field with other edges, regions or label costs"
        )
    options.watch.lap("set-up")
    if options.state is not None:
        descent.resume(options.state)
    elif options.start is not None:
        descent.resume_near(options.start)
    return lowered(descent, field, options)


class TreeDescent(BoundDescent):
    r"""An upper bound on log Z that keeps the pairs of a field and relaxes its other terms.

    If s is in the base polytopes of the terms that are not pairs, every energy is at least that of
    the pairs and the unaries :math:`u + s`. Its log Z is bounded by eliminating one variable after
    the other (``cpp/marginals/tree_bound.hpp``), for any backward messages. A pass computes the
    backward messages, moves s, and eliminates all variables.

    s moves as in ``projection``: the Euclidean projection of s plus :math:`\eta t` times the logits
    of the present marginals, at the point extrapolated by Nesterov's momentum. With :math:`\eta =
    1` and no momentum this is the exact step of a field without pairs. With pairs a variable also
    affects its neighbours, and the step may be too long. Messages on graphs with many cycles may
    oscillate likewise. Therefore a pass that raises the bound undoes its move of s, ends the
    momentum and halves the step of s, or that of messages if they alone raise the bound; later
    passes lengthen the steps again. All intermediate bounds are valid. The least bound and the
    largest value of the dual are kept. The bound of a mean over many forests costs as much as many
    passes, so it is evaluated after 1, 2, 4 passes and so on, up to ``PATIENCE``, while it
    decreases.
    """

    def __init__(
        self, field: Field, temperature: float, n_threads: int, dtype: str = "float64"
    ) -> None:
        """``dtype`` is the type of the messages."""
        super().__init__()
        constant, unary, terms = field._folded()
        n = len(unary)
        self._t = temperature
        self._threads = n_threads if unary.size >= 20_000 else 1
        self._unary = unary
        pairs = pairs_of(terms, unary.shape)
        order = order_of(pairs, n)
        self._edges = pairs.edges
        self._heights = pairs.heights / temperature
        self._shares = Shares(order.first(pairs.edges), n)
        self._covers: list[Cover] = []
        self._lost = 0.0  # rounding may move s out of the base polytopes by this distance in nats
        if not self._shares.is_forest and pairs.edges.size // 2 * unary.shape[1] <= LARGE:
            self._covers = [Cover(1.0, order.variables, self._shares.now)]
            self._shares.rounds = 0
        others = [item for item in terms if not isinstance(item[1], PottsTerm | TableTerm)]
        self._relaxation = Relaxation.of_terms(unary, others)
        self.constant = constant + self._relaxation.constant
        self._least = float(unary.min(axis=1).sum()) / temperature
        self._dtype = np.dtype(dtype)
        kind = _core.TreeBound32 if self._dtype == np.float32 else _core.TreeBound
        self._kernel: Any = kind(np.ascontiguousarray(unary / temperature))
        pairs.add_to(self._kernel, temperature)
        self._kernel.close(order.variables, order.starts)
        self._kernel.set_shares(self._shares.now)
        self._is_shared = not self._covers
        self._is_resumed = self._awaits = False
        self._logs = np.zeros(unary.shape)
        self._s: FloatArray = np.zeros(unary.shape)
        self._s_before = self._s
        self._blocks: Any = None
        if self._relaxation.groups and unary.shape[1] > 1:
            self._blocks = self._relaxation.fill(_core.RelaxationState, np.zeros(unary.shape))
        elif self._relaxation.groups:  # with one label the initial blocks are optimal
            self._relaxation.fill(_core.RelaxationState, np.zeros(unary.shape)).scores(self._s)
        self._reset_blocks()
        self.informations = np.zeros(len(pairs.edges))
        self._move = self._step = self._theta = 1.0
        self._unseen, self._patience = 0, 1

    # ---------------------------------------------------------------------------------- the state

    @property
    def size(self) -> int:
        """The number of messages and entries of blocks."""
        blocks = self._blocks.size() if self._blocks is not None else 0
        return int(2 * len(self._edges) * self._unary.shape[1] + blocks)

    def fits(self, state: FloatArray) -> bool:
        """Return whether a state belongs to a similar field."""
        if not self._covers:
            return len(state) == self.size + (0 if self._shares.is_forest else len(self._edges))
        return len(state) > self.size and bool(self._covers_of(state))

    def _covers_of(self, state: FloatArray) -> list[Cover]:
        order = self._by_ends()
        covers = from_numbers(state[self.size :], self._edges[order], len(self._unary))
        back = np.argsort(order)
        return [cover._replace(shares=cover.shares[back]) for cover in covers]

    def _by_ends(self) -> IntArray:
        """Return the edges ordered by their ends, (E,). The kernel's order depends on tables."""
        return np.argsort(keys_of(self._edges, len(self._unary)), kind="stable")

    def state(self) -> FloatArray:
        """Return messages and blocks for ``resume``, and shares or covers unless it is a forest."""
        order = self._by_ends()
        numbers: FloatArray = np.zeros(0) if self._shares.is_forest else self._shares.now[order]
        if self._covers:
            covers = [cover._replace(shares=cover.shares[order]) for cover in self._covers]
            numbers = as_numbers(covers)
        state: FloatArray = np.empty(self.size + len(numbers), self._dtype)
        end = 2 * self._edges.shape[0] * self._unary.shape[1]
        self._kernel.messages(order, state[:end].reshape(-1, self._unary.shape[1]))
        if self._blocks is not None:
            blocks: FloatArray = np.empty(self.size - end)
            self._blocks.blocks(blocks)
            state[end : self.size] = blocks
        state[self.size :] = numbers
        return state

    def resume(self, state: FloatArray) -> None:
        """Continue from the state of a similar field."""
        blocks = self.set_messages(state)
        if self._blocks is not None:
            self._blocks.set_blocks(self._relaxation.within(blocks), self._threads)
            self._reset_blocks()
            self._kernel.beliefs(self._logs, self._threads)
            self._move_blocks()  # blocks of other weights need not lie in this base polytope

    def set_messages(self, state: FloatArray) -> FloatArray:
        """Set the messages and the covers to those of a state. Return its blocks."""
        self._is_resumed = True
        n_labels = self._unary.shape[1]
        if self._covers:
            self._covers, self._is_shared = self._covers_of(state), True
            self._kernel.set_shares(shares_of(self._covers))
        elif not self._shares.is_forest:
            self._shares.set(state[self.size :][np.argsort(self._by_ends())])
            self._kernel.set_shares(self._shares.now)
        end, order = 2 * len(self._edges) * n_labels, self._by_ends()
        # messages of a field with larger edges are clipped, because they would cause rounding
        # errors
        shares = shares_of(self._covers) if self._covers else self._shares.now
        lowest = np.repeat(-(1.0 + 1e-6) * (self._heights / shares)[order], 2)[:, None]
        messages = np.clip(state[:end].reshape(-1, n_labels), lowest, 0.0)
        self._kernel.set_messages(order, np.ascontiguousarray(messages, self._dtype))
        return np.ascontiguousarray(state[end : self.size], np.float64)

    def resume_near(self, probabilities: FloatArray) -> None:
        """Continue from marginals."""
        self._logs = logs_of(probabilities)
        self._kernel.set_beliefs(self._logs, self._threads)
        if self._blocks is not None:
            self._move_blocks()

    def _reset_blocks(self) -> None:
        """Set s to the sum of the blocks, without momentum."""
        if self._blocks is not None:
            self._blocks.set_unary(np.zeros(self._unary.shape), self._threads)
            self._blocks.scores(self._s)
        self._s_before, self._theta = self._s, 1.0
        if self._relaxation.groups:
            self._kernel.set_unary((self._unary + self._s) / self._t)

    def _move_blocks(self) -> None:
        """Project s, extrapolated by momentum, plus a multiple of the logits, block by block."""
        theta = (1.0 + sqrt(1.0 + 4.0 * self._theta**2)) / 2.0
        momentum = (self._theta - 1.0) / theta
        temperature = self._move * self._t
        rest = -temperature * np.maximum(self._logs, NEVER) - self._s
        rest -= momentum * (self._s - self._s_before)
        groups = len(self._relaxation.groups)
        lost = 16.0 * EPS * groups * float(np.abs(rest).max(axis=1).sum()) / self._t
        self._lost = max(self._lost, lost)
        self._blocks.shift_unary(rest, self._threads)
        self._blocks.sweep(temperature, momentum, self._threads)
        self._s_before, self._s = self._s, np.empty_like(self._s)
        self._blocks.scores(self._s)
        self._s -= rest
        self._theta = theta
        self._kernel.set_unary((self._unary + self._s) / self._t)

    # ---------------------------------------------------------------------------------- the search

    def begin(self) -> None:
        """Compute the bound of the start."""
        if not self._is_shared:
            self._share_out()
        self._theta = 1.0
        self._last = self.value = self._eliminate()
        self.history = [self.value]

    def _share_out(self) -> None:
        """Choose forests that cover the graph, in each round the most informative one.

        This ends when the next forest has hardly more information than the mean of the chosen ones.
        """
        shares = shares_of(self._covers)
        for k in range(FORESTS):
            for _ in range(2):
                self._kernel.forward(1)
                self._kernel.backward(0.7, self._logs, 1)
                if self._blocks is not None:
                    self._theta = 1.0  # no momentum, because the bound is not evaluated
                    self._move_blocks()
            self._kernel.beliefs(self._logs, 1)
            self._kernel.dual(self._logs, self.informations, 1)
            forest = strongest_forest(self._edges, self.informations, len(self._unary))
            most = float(forest.shares @ self.informations)
            if most - float(shares @ self.informations) <= ENOUGH * most:
                break
            weight = 1.0 / (k + 3)
            self._covers = mixed(self._covers, forest, weight)
            shares = np.minimum((1.0 - weight) * shares + weight * forest.shares, 1.0)
            self._kernel.set_shares(shares)
        self._is_shared = True

    def _eliminate(self) -> float:
        value = self._kernel.forward(self._threads)
        return self._bound() if self._covers else value + self._lost

    def _bound(self) -> float:
        """Return the bound of the covers, at the messages of the last elimination."""
        return bound_of(self._kernel, self._covers) + self._lost

    def sweep(self) -> None:
        """Make one pass."""
        logs = None if self._blocks is None else self._logs
        self._kernel.backward(self._step, logs, self._threads)
        if self._blocks is not None:
            self._move_blocks()
        value = self._kernel.forward(self._threads) + self._lost
        self.n_iter += 1
        # With a single order, the pass itself computes the bound.
        self._unseen += bool(self._covers)
        if not self._covers:
            self._look(value)
        elif self._unseen >= self._patience:
            self._look(self._bound())
        self.history.append(self.value)

    def _look(self, value: float) -> None:
        """Evaluate the bound of the last passes, and set the steps of the next."""
        self._unseen = 0
        self.value = min(self.value, value)
        if self._is_above_last(value):
            self._patience = 1
            if self._blocks is not None:
                self._move = max(self._move / 2, LEAST_STEP)
                self._blocks.revert(self._threads)
                self._reset_blocks()
                value = self._eliminate()  # the bound after new messages only
                self.value = min(self.value, value)
            if self._is_above_last(value):
                self._step = max(self._step / 2, LEAST_STEP)
            self._last = value
        else:
            self._last = value
            self._step, self._move = min(1.0, 1.1 * self._step), min(1.0, 1.02 * self._move)
            self._patience = min(2 * self._patience, PATIENCE)

    def _is_time_for_shares(self) -> bool:
        """Return whether to move shares: after the first passes, with blocks every second pass."""
        done = ROUNDS - self._shares.rounds
        return self.n_iter == (done + 1) * (1 if self._blocks is None else 2)

    def _move_shares(self, tol: float) -> None:
        """Move the shares. They are kept if the bound of the following pass is lower.

        They are not moved if that would lower the bound by at most ``tol``.
        """
        if self._awaits and self.history[-1] >= self.history[-2]:
            self._shares.take_back()
            self._set_shares()
        self._awaits = False
        if self._shares.rounds and self._is_time_for_shares():
            self.measure()
            fall = self._shares.move(self.informations)
            if self._relative(fall) <= tol:
                self._shares.take_back()
                if self.relative_gap > tol:
                    # So that it is measured again when passes lower the bound by less.
                    self.relative_gap = inf
                return
            self._set_shares()
            self._awaits = True

    def _set_shares(self) -> None:
        """Set changed shares, and forget the bound and the dual of the earlier ones."""
        self._kernel.set_shares(self._shares.now)
        self._forget()

    def measure(self) -> None:
        r"""Measure the gap between the least bound and the largest value of the dual so far.

        The dual is :math:`\max \sum_i H(\mu_i) - \sum_e \rho_e I(\mu_e) - E(\mu)` over consistent
        marginals of variables and pairs, where E has the Lovász extension of other terms.
        """
        if self._unseen:
            self._look(self._bound())
            self.history[-1] = self.value
        self._kernel.beliefs(self._logs, self._threads)
        dual = self._kernel.dual(self._logs, self.informations, self._threads)
        if self._blocks is not None:
            dual -= max(0.0, self._blocks.gap(np.exp(self._logs), self._threads)) / self._t
        self._keep_dual(dual)

    def measure_start(self, limit: float) -> int:
        if self._is_resumed or limit == 0:
            self.measure()
        return 1 if self._is_resumed else 10

    def advance(self, tol: float, limit: float, due: int) -> bool:
        """Make a pass. The gap is first measured when the bound falls by a few times ``tol``."""
        before = self.value
        self.sweep()
        if self.n_iter < limit:
            self._move_shares(tol)
        fall = self._relative(before - self.value)
        is_near = 0.0 < fall <= 4.0 * tol and self.relative_gap == inf
        return (self._shares.rounds == 0 and is_near) or self.n_iter in (due, limit)

    def expected_energies(self, term: PottsTerm | TableTerm, p: FloatArray) -> FloatArray:
        """Return the expected energy of each edge of a term, (E,), under the marginals of pairs."""
        return expected_energies(self._kernel, self._edges, term, p)
