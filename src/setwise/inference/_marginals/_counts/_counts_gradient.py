"""How the bound that keeps functions of counts moves with the weight of each potential."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.fields._field import Field
from setwise.fields._terms import PottsTerm, TableTerm
from setwise.inference._marginals._counts._count_descent import CountDescent
from setwise.inference._marginals._counts._count_factors import (
    COUNTED,
    Counted,
    CountFactor,
    factors_of,
    merged,
)
from setwise.inference._marginals._counts._counts import (
    exact_counts,
    has_exact_counts,
    lacks_counts,
)
from setwise.inference._marginals._pair_expectations import expected_energies
from setwise.inference._marginals._result import MarginalsResult


def counts_weights(field: Field, result: MarginalsResult, n_threads: int) -> FloatArray:
    """(K,): minus the expectation of each potential over t, by the laws of pairs and counts."""
    t, p = result.temperature, result.probabilities.astype(np.float64)
    other = ValueError("result must be of this field, got one of other edges or regions")
    if lacks_counts(field) is not None:
        raise other
    descent = None
    if has_exact_counts(field):
        counted, laws, p, _ = exact_counts(field, t, n_threads)
        counts = laws.counts
    else:
        descent = CountDescent(field, t, n_threads)
        if result.state is None or not descent.fits(result.state):
            raise other
        descent.restore(result.state)
        counted, counts = descent.counted, descent.laws.counts
    factors = merged(field._folded().terms, *field.unary.shape)
    place = {factor.key: k for k, factor in enumerate(factors)}
    flat = Field(np.zeros(field.unary.shape))
    values = []
    for potential in field.potentials:
        constant, unary, terms = (flat + potential)._folded()
        value = constant + float((unary * p).sum())
        for _, term in terms:
            if descent is not None and isinstance(term, PottsTerm | TableTerm):
                energies = expected_energies(descent.kernel, descent.edges, term, p)
                value += float(energies.sum())
            elif isinstance(term, COUNTED):
                tables = [np.zeros(len(factor.table)) for factor in factors]
                for factor in factors_of(term, *field.unary.shape):
                    tables[place[factor.key]] += factor.table
                value += _expected(factors, tables, counted, counts, field.unary)
        values.append(value)
    return -np.array(values, np.float64) / t


def _expected(
    factors: list[CountFactor],
    tables: list[FloatArray],
    counted: Counted,
    counts: FloatArray,
    unary: FloatArray,
) -> float:
    """Of other functions of the same counts."""
    own = [
        CountFactor(factor.members, factor.inside, table)
        for factor, table in zip(factors, tables, strict=True)
    ]
    same = Counted.of(own, unary)
    return float((same.heights * counts).sum()) + same.constant
