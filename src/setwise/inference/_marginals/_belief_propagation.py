"""Sum-product belief propagation, for fields of unaries, pairs and cliques."""

from __future__ import annotations

from math import inf

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray
from setwise.fields._field import Field
from setwise.fields._terms import CliqueTerm, PottsTerm, TableTerm
from setwise.inference._marginals._options import Options, Solution
from setwise.inference._marginals._sweeps import settle

UNDAMPED = 20  # sweeps; what has not converged by then may be cycling
DAMPING = 0.5


def belief_propagation(field: Field, options: Options) -> Solution:
    """Pass messages over all variables and back until none moves by more than ``tol``.

    On a tree the marginals are exact after one sweep; on other graphs it need not converge, and the
    marginals are often far too sure. It bounds nothing. After 20 sweeps messages are damped by a
    half. O(E L) a sweep for Potts terms, O(E L^2) for tables, O(k^2 L^k) for one of k variables;
    memory 2 E L numbers. What is forbidden may keep a probability of 1e-300.
    """
    _, unary, terms = field._folded()
    kernel = _core.SumProduct(np.ascontiguousarray(unary))
    for _, term in terms:
        if isinstance(term, PottsTerm):
            kernel.add_potts(term.edges, term.weights)
        elif isinstance(term, TableTerm):
            kernel.add_tables(term.edges, term.tables)
        elif isinstance(term, CliqueTerm):
            tables = np.ascontiguousarray(term._flat())
            kernel.add_cliques(term.cliques, term.sides, tables)
    kernel.close()

    def sweep(n_iter: int) -> tuple[float, float]:
        damping = DAMPING if n_iter >= UNDAMPED else 0.0
        return kernel.sweep(options.temperature, damping), inf

    end = settle(sweep, 500, options)
    probabilities: FloatArray = np.empty(field.unary.shape)
    kernel.probabilities(options.temperature, probabilities)
    return Solution(
        probabilities=probabilities,
        upper=inf,
        gap=inf,
        relative_gap=inf,
        n_iter=end.n_iter,
        converged=end.converged,
        interrupted=end.interrupted,
        history=[],
    )
