"""From the gaps of the steps to a guarantee for the list."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.diversities._base import Diversity
from setwise.inference._diverse._result import Guarantee


def guarantee(
    diversity: Diversity,
    labelings: IntArray,
    values: FloatArray,
    gains: FloatArray,
    gaps: FloatArray,
    n_labels: int,
) -> Guarantee:
    r"""Lemma 2 for the shifted score, of a diversity without an obstacle and of finite gaps.

    With d submodular, S_t the first t items and S* any list of m items,

    .. math:: F_c(S^*) \le F_c(S^* + S_t) \le F_c(S_t) + \sum_{y \in S^*} F_c(y \mid S_t)
              \le F_c(S_t) + m \, (F_c(y_{t+1} \mid S_t) + \varepsilon_{t+1}),

    the first step by the choice of c: an item of the list, put behind S* and those before it, adds
    c - E(y) + d(y | S_{t-1} + S*) >= 0. Among all S* copies of y itself take most off that gain,
    as the diversity says (``copies_take_most``), so that c is known. Unrolled, this is Lemma 2 with
    the factor 1 - (1 - 1/m)^m; and each t gives a bound on F_c(S*) of its own.
    """
    m = len(labelings)
    labelings = labelings.astype(np.min_scalar_type(n_labels - 1))  # less to read
    least = [
        diversity._gain(labels, np.concatenate([labelings[:k], np.tile(labels, (m, 1))]), n_labels)
        for k, labels in enumerate(labelings)
    ]
    shift = float((values - np.array(least)).max())
    added = shift - values + gains
    scores = np.concatenate([[0.0], np.cumsum(added)])
    bound = float((scores[:-1] + m * (added + gaps)).min())
    assumes = (
        "the diversity is submodular; the score is sum of (c - E) over the list plus d, with c so "
        "large that no item of the list would lower it"
    )
    return Guarantee(
        factor=1.0 - (1.0 - 1.0 / m) ** m,
        slack=float(gaps.sum()),
        shift=shift,
        score=float(scores[-1]),
        bound=bound,
        n_items=m,
        assumes=assumes,
    )
