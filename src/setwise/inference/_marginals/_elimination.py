"""Exact log Z and marginals by variable elimination, for graphs of small treewidth.

Elimination also decides whether tables with forbidden entries allow any labelling.
"""

from __future__ import annotations

from math import inf

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.fields._field import Field
from setwise.fields._terms import CliqueTerm
from setwise.inference._conditioning._magnitude import rounding_of_logs
from setwise.inference._map._junction_tree import is_cheap, narrow, planned
from setwise.inference._marginals._lower_bound import Raised
from setwise.inference._marginals._search import ExactSum, MarginalsOptions, MarginalsSolution

UNKNOWN = "no labelling of finite energy is known, and there may be none"


def elimination(field: Field, options: MarginalsOptions) -> MarginalsSolution:
    r"""Eliminate one variable after the other, then compute marginals in reverse order.

    The largest table has :math:`L^{w + 1}` cells, where w is the width of the order. The next
    variable in the order is the one that adds the fewest edges. The result is exact up to rounding,
    for potentials of any kind; tables of potentials over many variables must be small.
    """
    t = options.temperature
    tree, constant, _, _ = planned(field, t)
    options.watch.lap("set-up")

    def compute() -> tuple[FloatArray, float, float]:
        log_z = tree.log_partition(options.n_threads) - constant / t
        if log_z == -inf:
            raise ValueError("field must have a labelling of finite energy, got none")
        p: FloatArray = np.empty(field.unary.shape)
        tree.marginals(p, None, options.n_threads)
        return p, log_z, rounding_of_logs(field, t)

    return options.run(ExactSum(options, compute))


def forbids(field: Field) -> bool:
    """Return whether some table forbids labellings."""
    return any(isinstance(term, CliqueTerm) and term.is_hard for _, term in field._folded().terms)


def is_worth_eliminating(field: Field) -> bool:
    """Return whether elimination is cheap, or is possible where searches may find nothing."""
    return is_cheap(field) or (forbids(field) and narrow(field) is None)


def feasible_bound(field: Field, temperature: float, found: list[Raised]) -> Raised | None:
    r"""Return the lower bound :math:`-E(x) / t` of the best of a few labellings, if finite.

    These are labellings of the most probable labels. If all have infinite energy, return None; if
    elimination can prove that no labelling is allowed, raise a ``ValueError``.
    """
    labels = np.array([one.probabilities.argmax(axis=1) for one in found])
    energies = field._energies(labels)
    best = int(np.argmin(energies))
    if energies[best] < inf:
        sure = np.zeros(field.unary.shape)
        sure[np.arange(len(sure)), labels[best]] = 1.0
        bound = -float(energies[best]) / temperature - rounding_of_logs(field, temperature)
        return Raised(bound, sure)
    if narrow(field) is None and planned(field, temperature).tree.log_partition(1) == -inf:
        raise ValueError("field must have a labelling of finite energy, got none")
    return None
