"""How large a bias is worth looking at: what outweighs most preferences for a label."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.fields._field import Field
from setwise.fields._terms import PottsTerm, TableTerm

# A bias that outweighs so many of the variables' own preferences is the last that is looked at.
_SHARE_OUTWEIGHED = 0.75
# A preference so many times the median of all is a seed.
_SEED = 16.0


def usual_reach(field: Field, preferences: FloatArray) -> float:
    """That of the preferences (N,) of a field; without them of its pairs, or of some variables."""
    preferring = preferences[preferences > 0.0]
    return reach_of(preferences) or _weight_of_pairs(field) or reach_of(preferring)


def _weight_of_pairs(field: Field) -> float:
    """What the pairs of a variable weigh on average."""
    total = 0.0
    for _, term in field._terms():
        if isinstance(term, PottsTerm):
            total += float(np.sum(term.weights))
        elif isinstance(term, TableTerm):
            total += float(np.ptp(term.tables, axis=(1, 2)).sum())
    return 2.0 * total / max(field.n_variables, 1)


def reach_of(preferences: FloatArray) -> float:
    """The upper quartile of |u1 - u0| (N,), seeds and forbidden labels left out.

    A seed is more than 16 times the median of all.
    """
    finite = preferences[np.isfinite(preferences)]
    if finite.size == 0:
        return 0.0
    middle = np.partition(finite, len(finite) // 2)[len(finite) // 2]
    usual = finite[finite <= _SEED * middle]
    place = int(_SHARE_OUTWEIGHED * (len(usual) - 1))
    return float(np.partition(usual, place)[place]) if usual.size else 0.0
