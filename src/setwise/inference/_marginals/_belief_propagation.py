"""Sum-product belief propagation, for fields of unaries and pairs."""

from __future__ import annotations

from math import inf

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray
from setwise.fields._field import Field
from setwise.fields._terms import ConstantTerm, PottsTerm, TableTerm, UnaryTerm
from setwise.inference._marginals._options import Options, Solution

UNDAMPED = 20  # sweeps; what has not converged by then may be cycling
DAMPING = 0.5


def obstacle(field: Field) -> str | None:
    """Why belief propagation cannot take the field, in one sentence."""
    for potential, term in field._terms():
        if not isinstance(term, ConstantTerm | UnaryTerm | PottsTerm | TableTerm):
            return (
                "belief_propagation needs unaries and pairs only, "
                f"got {type(potential).__name__}, which joins more"
            )
    return None


def belief_propagation(field: Field, options: Options) -> Solution:
    """Pass messages over all variables and back until none moves by more than ``tol``.

    On a tree the marginals are exact after one sweep; on other graphs it need not converge, and the
    marginals are often far too sure. It bounds nothing. After 20 sweeps messages are damped by a
    half. O(E L) a sweep for Potts terms, O(E L^2) for tables; memory 2 E L numbers.
    """
    reason = obstacle(field)
    if reason is not None:
        raise ValueError(f"field must have no term beyond pairs: {reason}")
    unary = field.unary.copy()
    for _, term in field._terms():
        if isinstance(term, UnaryTerm):
            unary += term.unary
    kernel = _core.SumProduct(unary)
    for _, term in field._terms():
        if isinstance(term, PottsTerm):
            kernel.add_potts(term.edges, term.weights)
        elif isinstance(term, TableTerm):
            kernel.add_tables(term.edges, term.tables)
    kernel.close()
    limit = 500 if options.max_iter is None else options.max_iter
    change, n_iter, interrupted = inf, 0, False
    try:
        while change > options.tol and n_iter < limit and not interrupted:
            damping = DAMPING if n_iter >= UNDAMPED else 0.0
            change = kernel.sweep(options.temperature, damping)
            n_iter += 1
            interrupted = options.report(n_iter, inf)
    except KeyboardInterrupt:
        interrupted = True
    probabilities: FloatArray = np.empty(field.unary.shape)
    kernel.probabilities(options.temperature, probabilities)
    return Solution(
        probabilities=probabilities,
        upper=inf,
        gap=inf,
        relative_gap=inf,
        n_iter=n_iter,
        converged=change <= options.tol,
        interrupted=interrupted,
        history=[],
    )
