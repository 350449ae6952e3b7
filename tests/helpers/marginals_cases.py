"""The methods of marginals by what their records say, and a field that most of them take."""

from __future__ import annotations

import numpy as np
import reference

import setwise as sw
from setwise.inference._marginals._methods import METHODS


def close(value: float, other: float, slack: float = 1e-9) -> bool:
    return abs(value - other) <= slack * max(1.0, abs(other))


def small_grid(seed: int = 0, n_labels: int = 3) -> sw.fields.Field:
    rng = np.random.default_rng(seed)
    field = sw.fields.Field(rng.normal(size=(30, n_labels)))
    field += sw.fields.Potts(sw.fields.grid_edges((5, 6)), 0.4)
    return field + sw.fields.RegionConsistency(np.arange(30) // 5, 0.5, 0.7)


def taking(field: sw.fields.Field) -> list[str]:
    """The methods that take a field."""
    return [name for name, record in METHODS.items() if record.obstacle(field) is None]


CERTIFIED = [name for name, record in METHODS.items() if record.certified]
STARTED = [name for name, record in METHODS.items() if record.takes_start]
# of fields with more than two labels as well
UPPER = [name for name in CERTIFIED if name in taking(small_grid())]
# whose upper bound is the least over the base polytope, the same for all of them
MODULAR = [name for name in CERTIFIED if name not in ("trees", "counts", "elimination")]


def least_upper(field: sw.fields.Field, method: str) -> float:
    """The least upper bound of the kind that a method lowers."""
    kind = "projection" if method in MODULAR else method
    return sw.marginals(field, kind, tol=1e-12).log_partition_upper


def log_partition(field: sw.fields.Field) -> float:
    """log Z, by enumeration."""
    labelings = reference.all_labelings(field.n_variables, field.n_labels)
    return float(np.logaddexp.reduce(-field._energies(labelings)))


def true_marginals(field: sw.fields.Field) -> np.ndarray:
    """(N, L), by enumeration."""
    labelings = reference.all_labelings(field.n_variables, field.n_labels)
    energies = field._energies(labelings)
    weights = np.exp(energies.min() - energies)
    weights /= weights.sum()
    return np.stack([weights @ (labelings == j) for j in range(field.n_labels)], axis=1)
