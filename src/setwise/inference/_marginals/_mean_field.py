"""Mean field: the factorised distribution nearest to the field's, by coordinate ascent."""

from __future__ import annotations

from math import inf

import numpy as np

from setwise.fields._field import Field
from setwise.inference._marginals._lower_bound import Factorised
from setwise.inference._marginals._options import Options, Solution


def mean_field(field: Field, options: Options) -> Solution:
    r"""Maximise :math:`H(Q) - E_Q[E] / t` over factorised Q, one variable at a time.

    It takes any field; ``_factorised`` says where an expectation is replaced by something above it.
    The problem is not convex: the answer is a local maximum, found from the unaries (or from the
    probabilities of ``warm_start``), and it bounds log Z from below only. O(N L) a sweep for Potts
    terms, O(E L^2) for tables, O(N L n) for regions of n variables (n up to 48; beyond, O(N L)).
    """
    start = options.start
    if start is None:
        start = -field.unary / options.temperature
        start = np.exp(start - start.max(axis=1, keepdims=True))
        start /= start.sum(axis=1, keepdims=True)
    factorised = Factorised(field, start, options.temperature, options.n_threads)
    history = [factorised.bound()]
    change, n_iter, interrupted = inf, 0, False
    limit = 1000 if options.max_iter is None else options.max_iter
    try:
        while change > options.tol and n_iter < limit and not interrupted:
            change = factorised.sweep()
            n_iter += 1
            history.append(factorised.bound())
            interrupted = options.report(n_iter, history[-1])
    except KeyboardInterrupt:
        interrupted = True
    return Solution(
        probabilities=factorised.probabilities,
        upper=inf,
        gap=inf,
        relative_gap=inf,
        n_iter=n_iter,
        converged=change <= options.tol,
        interrupted=interrupted,
        history=history,
        lower=max(history),
    )
