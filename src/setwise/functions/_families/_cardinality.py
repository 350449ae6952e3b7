"""Functions of the number of elements."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray, as_numbers
from setwise._foundation._certificate import EPS
from setwise.functions._base import SetFunction

# Values that come from a formula carry its rounding: a difference below this share of how far the
# values reach is taken for zero when a family asks whether it is submodular or increasing. It must
# be no larger: the second differences of (k / n)^2 are 2 / n^2.
ROUNDING = 64 * EPS


def slack_of(values: FloatArray, share: float = ROUNDING) -> float:
    """The difference of values that is taken for rounding: that of a formula, and of a constant.

    A constant that is added to all values is no part of what they reach, but rounds them.
    """
    if not values.size:
        return 0.0
    reach = float(np.abs(values - values.flat[0]).max())
    return max(share * reach, 8 * EPS * float(np.abs(values).max()))


def size_grid(positive: BoolArray) -> IntArray:
    """The sizes n + q of the sets with n elements inside a split and q outside: (m + 1, r + 1)."""
    m = int(np.count_nonzero(positive))
    n, q = np.ogrid[: m + 1, : len(positive) - m + 1]
    sizes: IntArray = n + q
    return sizes


class Cardinality(SetFunction):
    """F(A) = values[|A|]: submodular when the values are concave (B_D paper, Proposition 1).

    The answers about itself are exact, up to differences below 1.4e-14 of the largest difference of
    two values (64 units of rounding), which are taken for zero. A greedy pass is O(m).

    Parameters
    ----------
    values : array of shape (n + 1,)
        values[k] for k = 0, ..., n.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> F = sw.functions.Cardinality(np.sqrt(np.arange(5)))
    >>> F.n, F.is_submodular, F.is_increasing
    (4, True, True)
    >>> F.gains([3, 0]).round(3).tolist()
    [1.0, 0.414]
    """

    values: FloatArray

    def __init__(self, values: ArrayLike) -> None:
        array = as_numbers(values, "values")
        if len(array) == 0:
            raise ValueError("values must hold n + 1 numbers, got none")
        self._set(n=len(array) - 1, values=array)

    def _values(self, masks: BoolArray) -> FloatArray:
        values: FloatArray = self.values[np.count_nonzero(masks, axis=1)]
        return values

    def _gains(self, order: IntArray) -> FloatArray:
        return np.diff(self.values[: len(order) + 1])

    @property
    def is_submodular(self) -> bool:
        return self._remember(
            "is_submodular", lambda: bool(np.all(np.diff(self.values, 2) <= slack_of(self.values)))
        )

    @property
    def is_supermodular(self) -> bool:
        return self._remember(
            "is_supermodular",
            lambda: bool(np.all(np.diff(self.values, 2) >= -slack_of(self.values))),
        )

    @property
    def is_increasing(self) -> bool:
        return self._remember(
            "is_increasing", lambda: bool(np.all(np.diff(self.values) >= -slack_of(self.values)))
        )

    def _all_values(self) -> FloatArray:
        return self.values

    def _largest_gain(self) -> float:
        return float(np.diff(self.values).max()) if self.n else 0.0

    def _on_counts(self, positive: BoolArray, scale: float) -> FloatArray:
        values: FloatArray = scale * self.values[size_grid(positive)]
        return values
