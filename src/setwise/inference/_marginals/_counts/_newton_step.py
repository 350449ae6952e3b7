"""A step of Newton's method on the costs of counts: trees and counts are to agree on members."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.inference._marginals._counts._count_factors import Counted, CountLaws
from setwise.inference._marginals._counts._count_parts import CountParts

LONGEST = 4.0  # the most that a step moves a logit by


def newton_step(counted: Counted, parts: CountParts, laws: CountLaws, p: FloatArray) -> FloatArray:
    """(P,): the step of the costs, where the trees have probabilities p (P,) that members count."""
    owner, kappa = parts.owner, parts.now
    q = laws.q
    gradient = p - q
    mean = counted.sums(q)
    along = np.maximum(laws.with_count - q * mean[owner], 0.0)  # the covariance with the count
    variance = np.maximum(counted.sums(along), 1e-300)
    own = np.maximum(q * (1.0 - q) - along**2 / variance[owner], 0.0)
    total = np.maximum(counted.sums(own), 1e-300)
    rest = parts.rest[counted.members]
    diagonal = parts.overlaps * p * (1.0 - p) / rest + own / kappa[owner] + 1e-12
    # (diagonal + along along' / (kappa variance) - own own' / (kappa total)) step = gradient
    first, second = along / diagonal, own / diagonal
    a11 = counted.sums(along * first) + kappa * variance
    a12 = counted.sums(along * second)
    a22 = counted.sums(own * second) - kappa * total
    b1, b2 = counted.sums(first * gradient), counted.sums(second * gradient)
    determinant = a11 * a22 - a12 * a12
    determinant = np.where(determinant < 0, determinant, -1e-300)
    x1 = (a22 * b1 - a12 * b2) / determinant
    x2 = (a11 * b2 - a12 * b1) / determinant
    step = gradient / diagonal - first * x1[owner] - second * x2[owner]
    most = LONGEST * np.minimum(rest, kappa[owner])
    return np.clip(np.nan_to_num(step), -most, most)
