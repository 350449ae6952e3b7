"""Where passes are going: the limit of a linear iteration, from a few of its points."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import FloatArray

# Of so many examples a feature at the most, passes in one order do well, and can be extrapolated;
# of more, a random order does better. Of fewer than the least, few passes are enough.
LEAST, WIDE = 0.5, 3.0
# What is added to the products of steps for the sake of rounding.
_ROUNDING = 1e-10


class Extrapolation:
    r"""Anderson's extrapolation of a sequence of points.

    Near the end a pass in a fixed order is an affine map of the dual b: which of its constraints
    hold with equality does not change any more. The slow directions of that map are few, and the
    mixture

    .. math:: \sum_k c_k b_{k+1}, \qquad c = \arg\min_{\sum c = 1}
        \Bigl| \sum_k c_k (b_{k+1} - b_k) \Bigr|^2,

    is free of them. The shares c can be thousands, of either sign: whatever is affine in b is to be
    made from the mixture, for if it was mixed too, the shares would multiply its rounding, each
    time anew.

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
        """Anew from here."""
        self._points = [b.copy()]

    def add(self, b: FloatArray) -> bool:
        """The next point; whether there are enough now."""
        self._points.append(b.copy())
        return len(self._points) > self._steps

    def limit(self) -> FloatArray | None:
        """Where they seem to go, if anywhere: b, which need not be feasible."""
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
