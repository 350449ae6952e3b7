"""Fields whose tables forbid labellings: whether any is left, as far as that is known."""

from __future__ import annotations

from math import inf

import numpy as np

from setwise.fields._field import Field
from setwise.fields._terms import CliqueTerm
from setwise.inference._map._junction_tree import is_cheap, narrow, planned
from setwise.inference._map._largest_energy import rounding_of_logs
from setwise.inference._marginals._lower_bound import Raised

UNKNOWN = "no labelling of finite energy is known, and there may be none"


def forbids(field: Field) -> bool:
    """Whether some table forbids labellings."""
    return any(isinstance(term, CliqueTerm) and term.is_hard for _, term in field._folded().terms)


def is_worth_eliminating(field: Field) -> bool:
    """Whether elimination is cheap, or at least possible where searches may find nothing."""
    return is_cheap(field) or (forbids(field) and narrow(field) is None)


def feasible_bound(field: Field, temperature: float, found: list[Raised]) -> Raised | None:
    r"""The lower bound :math:`-E(x) / t` of the best of a few labellings; None if they cost inf.

    They are those of the most probable labels. Where the graph is narrow enough to know that no
    labelling is left, a ``ValueError`` says so.
    """
    labels = np.array([one.probabilities.argmax(axis=1) for one in found])
    energies = field._energies(labels)
    best = int(np.argmin(energies))
    if energies[best] < inf:
        sure = np.zeros(field.unary.shape)
        sure[np.arange(len(sure)), labels[best]] = 1.0
        bound = -float(energies[best]) / temperature - rounding_of_logs(field, temperature)
        return Raised(bound, sure)
    if narrow(field) is None and planned(field, temperature).tree.log_partition() == -inf:
        raise ValueError("field must have a labelling of finite energy, got none")
    return None
