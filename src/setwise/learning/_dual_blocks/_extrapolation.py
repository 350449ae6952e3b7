"""Anderson extrapolation of passes: the limit of a linear iteration from a few of its points."""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse

from setwise._foundation._arguments import FloatArray
from setwise.learning._dual_blocks._linear_sets import LinearSets

# Passes are extrapolated up to WIDE examples per feature, and above _LEAST if features are sparse.
# Elsewhere a random order of the sets converges faster than the fixed one of extrapolation: by a
# factor of nine for 20,000 sparse features, while 600 dense ones take a quarter of the passes.
WIDE, _LEAST = 3.0, 0.5
# The regularisation of the matrix of inner products of steps, relative to its trace.
_ROUNDING = 1e-10


def prefers_extrapolation(sets: LinearSets) -> bool:
    """Return whether passes converge faster in a fixed order with extrapolation."""
    fewest = _LEAST * sets.columns if issparse(sets.X) else 0.0
    return fewest <= sets.n <= WIDE * sets.columns


class Extrapolation:
    r"""Anderson's extrapolation of a sequence of points.

    Near the optimum a pass in a fixed order is an affine map of the dual b, because the active
    constraints do not change any more. The map has few slow directions, and the mixture

    .. math:: \sum_k c_k b_{k+1}, \qquad c = \arg\min_{\sum c = 1}
        \Bigl| \sum_k c_k (b_{k+1} - b_k) \Bigr|^2,

    removes them. The shares c can be in the thousands, of either sign. Therefore quantities that
    are affine in b must be recomputed from the mixture: mixing them too would multiply their
    rounding errors by the shares.

    Q. Bertrand, M. Massias, Anderson acceleration of coordinate descent, 2021.
    """

    def __init__(self, steps: int = 4) -> None:
        self._steps = steps
        self._points: list[FloatArray] = []

    @property
    def begun(self) -> bool:
        """Whether there is a first point."""
        return bool(self._points)

    def begin(self, b: FloatArray) -> None:
        """Start a new sequence at b."""
        self._points = [b.copy()]

    def add(self, b: FloatArray) -> bool:
        """Add a point. Return whether there are enough points for an extrapolation."""
        self._points.append(b.copy())
        return len(self._points) > self._steps

    def limit(self) -> FloatArray | None:
        """Return the estimated limit, which need not be feasible, or None."""
        steps = np.diff(np.array(self._points), axis=0)
        products = steps @ steps.T
        products[np.diag_indices(len(steps))] += _ROUNDING * np.trace(products)
        try:
            shares = np.linalg.solve(products, np.ones(len(steps)))
        except np.linalg.LinAlgError:
            return None
        total = shares.sum()
        if not (np.isfinite(total) and total > 0.0):
            return None
        shares /= total
        return np.asarray(shares @ np.array(self._points[1:]), np.float64)
