"""Mean field: the factorised distribution nearest to the field's, by coordinate ascent."""

from __future__ import annotations

from math import inf

import numpy as np

from setwise.fields._field import Field
from setwise.inference._marginals._lower_bound import Factorized
from setwise.inference._marginals._options import Options, Solution
from setwise.inference._marginals._sweeps import settle


def mean_field(field: Field, options: Options) -> Solution:
    r"""Maximise :math:`H(Q) - E_Q[E] / t` over factorised Q, one variable at a time.

    It takes any field; the lower bound says where an expectation is replaced by something above it.
    The problem is not convex: the answer is a local maximum, found from the unaries (or from the
    probabilities of ``init``), and it bounds log Z from below only. O(N L) a sweep for Potts
    terms, O(E L^2) for tables, O(N L n) for regions of n variables (n up to 48; beyond, O(N L)).
    """
    start = options.start
    if start is None:
        start = -field.unary / options.temperature
        start = np.exp(start - start.max(axis=1, keepdims=True))
        start /= start.sum(axis=1, keepdims=True)
    factorized = Factorized(field, start, options.temperature, options.n_threads)
    history = [factorized.bound()]

    def sweep(_: int) -> tuple[float, float]:
        change = factorized.sweep()
        history.append(factorized.bound())
        return change, history[-1]

    end = settle(sweep, 1000, options)
    return Solution(
        probabilities=factorized.probabilities,
        upper=inf,
        gap=inf,
        relative_gap=inf,
        n_iter=end.n_iter,
        converged=end.converged,
        interrupted=end.interrupted,
        history=history,
        lower=max(history),
    )
