"""Marginals with functions of counts that are not relaxed: exact without pairs, else a bound.

The module also computes the gradient in the weight of each potential.
"""

from __future__ import annotations

from math import inf

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.fields._field import Field
from setwise.fields._terms import CountTerm, PottsTerm, TableTerm
from setwise.inference._conditioning._magnitude import rounding_of_logs
from setwise.inference._marginals._counts._count_descent import CountDescent
from setwise.inference._marginals._counts._count_factors import (
    COUNTED,
    Counted,
    CountFunction,
    CountLaws,
    count_laws,
    factors_of,
    merged,
)
from setwise.inference._marginals._descent import lowered
from setwise.inference._marginals._result import MarginalsResult
from setwise.inference._marginals._search import ExactSum, MarginalsOptions, MarginalsSolution
from setwise.inference._marginals._trees._pairs import expected_energies, pairs_of

# The largest numbers of products in a pass, which are the sum of the squared sizes of all counts.
# MOST is for a method that is requested (a few seconds per pass). For "auto", FEW is for a single
# pass, and FEW_A_PASS if there may be hundreds of passes. Not tuned.
MOST = 1e9
FEW = 2e7
FEW_A_PASS = 4e6


def counts(field: Field, options: MarginalsOptions) -> MarginalsSolution:
    r"""Compute marginals with unrelaxed functions of counts: exact without pairs, else a bound.

    Sums over independent variables with any function of a count are sums over counts. Without pairs
    and without counts that share a variable, log Z and the marginals are therefore exact.
    Otherwise, with two labels, the counts f have parts :math:`\kappa_f` of the entropies of their
    variables, and the trees of pairs have the rest:

    .. math:: \log Z \le \max_\mu \sum_i H(\mu_i) - \sum_e \rho_e I(\mu_e)
       - \sum_f \kappa_f I(\mu_f) - E(\mu)

    over consistent marginals of variables, pairs and counts, where I of a count is the total
    correlation of its variables. With :math:`\kappa = 0` it is the convex closure of the function,
    which for a submodular function is the Lovász extension, as in ``trees``. During the search
    :math:`\kappa` grows for the most informative counts. A pass costs one pass of ``trees`` and
    O(n^2) for each count of n variables.
    """
    if not has_exact_counts(field):
        return _bounded(field, options)
    t = options.temperature

    def compute() -> tuple[FloatArray, float, float]:
        _, laws, p, log_z = exact_counts(field, t, options.n_threads)
        return p, log_z, rounding_of_logs(field, t) + laws.slack

    return options.run(ExactSum(options, compute))


def exact_counts(
    field: Field, temperature: float, n_threads: int
) -> tuple[Counted, CountLaws, FloatArray, float]:
    """Return the counts of a field without pairs, their distributions, marginals and log Z."""
    constant, unary, terms = field._folded()
    counted = Counted.of(merged(terms, *unary.shape), unary)
    scores = -unary / temperature
    highest = scores.max(axis=1, keepdims=True)
    weights = np.exp(scores - highest)
    alone = highest[:, 0] + np.log(weights.sum(axis=1))
    p: FloatArray = weights / weights.sum(axis=1, keepdims=True)
    rows = scores[counted.members]
    rows_inside = np.where(counted.inside, rows, -inf)
    rows_outside = np.where(counted.inside, -inf, rows)
    inside, outside = _log_sum(rows_inside), _log_sum(rows_outside)
    laws = count_laws(counted, inside - outside, counted.heights / temperature, n_threads)
    p[counted.members] = laws.q[:, None] * np.exp(rows_inside - inside[:, None])
    p[counted.members] += (1.0 - laws.q)[:, None] * np.exp(rows_outside - outside[:, None])
    alone[counted.members] = outside
    log_z = float(alone.sum()) + float(laws.logs.sum())
    return counted, laws, p, log_z - (constant + counted.constant) / temperature


def _log_sum(rows: FloatArray) -> FloatArray:
    """Return the logarithms of sums of exponentials of each row."""
    highest = rows.max(axis=1, initial=-inf)
    return np.asarray(highest + np.log(np.exp(rows - highest[:, None]).sum(axis=1)))


def _bounded(field: Field, options: MarginalsOptions) -> MarginalsSolution:
    descent = CountDescent(field, options.temperature, options.n_threads)
    options.watch.lap("set-up")
    return lowered(descent, field, options)


def has_exact_counts(field: Field) -> bool:
    """Return whether there are no pairs, and no variable is in two counts."""

    def compute() -> bool:
        _, unary, terms = field._folded()
        if len(pairs_of(terms, unary.shape).edges):
            return False
        counted = Counted.of(merged(terms, *unary.shape), unary)
        return len(np.unique(counted.members)) == len(counted.members)

    return bool(field._remember("exact counts", compute))


def few_counts(field: Field) -> bool:
    """Return whether "auto" chooses ``counts``, because the counts cost little."""
    work = _work(field)
    if not 0 < work <= FEW:
        return False
    return work <= FEW_A_PASS or has_exact_counts(field)


def lacks_counts(field: Field) -> str | None:
    """Return the requirement that a field does not meet, or None."""
    terms = [term for _, term in field._folded().terms]
    pairs = any(isinstance(term, PottsTerm | TableTerm) for term in terms)
    if field.n_labels != 2:
        regions = any(isinstance(term, CountTerm) for term in terms)
        counts = any(isinstance(term, COUNTED) for term in terms)
        if pairs or regions or not counts or not has_exact_counts(field):
            return f"two labels, or one count and no pairs, got {field.n_labels} labels"
    work = _work(field)
    if work > MOST:
        return f"counts whose squared sizes sum to at most {MOST:.0e}, got {work:.1e}"
    return None


def _work(field: Field) -> float:
    """Return the sum of the squared sizes of all counts."""
    n, total = field.n_variables, 0.0
    for _, term in field._folded().terms:
        if isinstance(term, CountTerm):
            total += float((np.diff(term.starts).astype(float) ** 2).sum())
        elif isinstance(term, COUNTED):
            total += float(n) ** 2
    return total


def counts_weights(field: Field, result: MarginalsResult, n_threads: int) -> FloatArray:
    """Return minus the expected potentials (K,) over t, under the marginals of pairs and counts."""
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
    factors: list[CountFunction],
    tables: list[FloatArray],
    counted: Counted,
    counts: FloatArray,
    unary: FloatArray,
) -> float:
    """Return the expectations of other functions of the same counts."""
    own = [
        CountFunction(factor.members, factor.inside, table)
        for factor, table in zip(factors, tables, strict=True)
    ]
    same = Counted.of(own, unary)
    return float((same.heights * counts).sum()) + same.constant
