"""Mean field and belief propagation: sweeps over all variables until convergence."""

from __future__ import annotations

from math import inf

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray
from setwise.fields._field import Field
from setwise.fields._terms import CliqueTerm, PottsTerm, TableTerm
from setwise.inference._map._messages._messages import DAMPING
from setwise.inference._marginals._lower_bound import Factorized
from setwise.inference._marginals._search import (
    MarginalsOptions,
    MarginalsSearch,
    MarginalsSolution,
    Standing,
)

# The number of sweeps after which messages are damped, because messages that have not converged may
# be cycling. With damping from the fifth sweep on, searches take up to twice as many sweeps.
UNDAMPED = 20


def mean_field(field: Field, options: MarginalsOptions) -> MarginalsSolution:
    r"""Maximise :math:`H(Q) - E_Q[E] / t` over factorised Q, one variable at a time.

    It accepts any field; ``_lower_bound`` documents which expectations are replaced by upper
    bounds. The problem is not convex: the answer is a local maximum, found from the unaries (or
    from the probabilities of ``init``), and only a lower bound on log Z. A sweep costs O(N L) for
    Potts terms, O(E L^2) for tables, and O(N L n) for regions of n variables (for n up to 48,
    otherwise O(N L)).
    """
    return options.run(_MeanField(field, options))


def belief_propagation(field: Field, options: MarginalsOptions) -> MarginalsSolution:
    """Pass messages over all variables and back until none changes by more than ``tol``.

    On a tree the marginals are exact after one sweep. On other graphs the messages need not
    converge, and the marginals are often overconfident. The method gives no bound. After 20 sweeps
    messages are damped by a half. A sweep costs O(E L) for Potts terms, O(E L^2) for tables, and
    O(k^2 L^k) for a table of k variables. Memory is 2 E L numbers. A forbidden label may have a
    probability of about 1e-300.
    """
    return options.run(_BeliefPropagation(field, options))


class _Sweeps(MarginalsSearch):
    """Sweeps that converge when the largest change is at most ``tol``."""

    change = inf

    def has_converged(self, tol: float) -> bool:
        return self.change <= tol


class _MeanField(_Sweeps):
    most = 1000

    def __init__(self, field: Field, options: MarginalsOptions) -> None:
        super().__init__(options)
        start = options.start
        if start is None:
            start = -field.unary / options.temperature
            start = np.exp(start - start.max(axis=1, keepdims=True))
            start /= start.sum(axis=1, keepdims=True)
        self._factorized = Factorized(field, start, options.temperature, options.n_threads)
        self._history = [self._factorized.bound()]

    def step(self) -> bool:
        self.change = self._factorized.sweep()
        self._history.append(self._factorized.bound())
        return False

    def standing(self) -> Standing:
        return Standing(self._history[-1])

    def solution(self) -> MarginalsSolution:
        return MarginalsSolution(
            probabilities=self._factorized.probabilities,
            upper=inf,
            gap=inf,
            relative_gap=inf,
            history=self._history,
            lower=max(self._history),
        )


class _BeliefPropagation(_Sweeps):
    most = 500

    def __init__(self, field: Field, options: MarginalsOptions) -> None:
        super().__init__(options)
        _, unary, terms = field._folded()
        self._shape, self._n_sweeps = unary.shape, 0
        self._kernel = _core.SumProduct(np.ascontiguousarray(unary))
        for _, term in terms:
            if isinstance(term, PottsTerm):
                self._kernel.add_potts(term.edges, term.weights)
            elif isinstance(term, TableTerm):
                tables, weights = term._arrays()
                self._kernel.add_tables(term.edges, tables, term._which, weights)
            elif isinstance(term, CliqueTerm):
                tables = np.ascontiguousarray(term._flat())
                self._kernel.add_cliques(term.cliques, term.sides, tables)
        self._kernel.close()

    def step(self) -> bool:
        damping = DAMPING if self._n_sweeps >= UNDAMPED else 0.0
        self.change = self._kernel.sweep(self.options.temperature, damping)
        self._n_sweeps += 1
        return False

    def standing(self) -> Standing:
        return Standing(inf)

    def solution(self) -> MarginalsSolution:
        probabilities: FloatArray = np.empty(self._shape)
        self._kernel.probabilities(self.options.temperature, probabilities)
        return MarginalsSolution(
            probabilities=probabilities, upper=inf, gap=inf, relative_gap=inf, history=[]
        )
