"""What is known of a field before any search: the unaries' probabilities, bounds on log Z."""

from __future__ import annotations

from math import inf

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise._foundation._certificate import EPS, gap_over_value
from setwise.fields._field import Field
from setwise.inference._map._energy_scale import trivial_bound
from setwise.inference._marginals._lower_bound import raised_bound
from setwise.inference._marginals._options import Options, Solution


def not_begun(field: Field, options: Options, *, gives_bound: bool) -> Solution:
    r"""The answer of a search that the time limit did not let begin.

    With :math:`\ell` the sum of the least values of all terms but the unaries,

    .. math:: \log Z_t \le \sum_i \log \sum_j \exp(-u_{ij} / t) - \ell / t,

    and :math:`H(Q) - E_Q[E] / t` is below it, for Q the start, or that of the unaries alone. The
    least bound of a method lies between log Z and this one, so their distance is a gap.
    """
    t = options.temperature
    least = field._favourites().least
    scores: FloatArray = (least[:, None] - field.unary) / t
    weights = np.exp(scores)
    sums = weights.sum(axis=1, keepdims=True)
    start = weights / sums if options.start is None else options.start
    lower = raised_bound(field, start, t, options.n_threads, sweeps=0).bound
    upper = inf
    if gives_bound:
        terms = trivial_bound(field) - float(least.sum())
        paid = float(np.log(sums).sum()) + (float(np.abs(least).sum()) + abs(terms)) / t
        upper = float(np.log(sums).sum()) - trivial_bound(field) / t
        upper += 4.0 * EPS * (field.n_variables + 1) * paid  # of the sums
        upper += (4.0 + field.n_labels) * EPS * field.n_variables  # of what they are logarithms of
    gap = upper - lower
    return Solution(
        probabilities=start,
        upper=upper,
        gap=gap,
        relative_gap=gap_over_value(gap, upper) if gap < inf else inf,
        n_iter=0,
        converged=False,
        interrupted=True,
        history=[upper] if gives_bound else [lower],
        lower=lower,
    )
