"""Functions of the number of elements."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray, as_numbers
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS, MANY_ROUNDINGS
from setwise.functions._base import SetFunction
from setwise.functions._numbers import (
    Numbers,
    bend_of,
    least_of,
    numbers_of_table,
    without_constant,
)

# Values of a formula have rounding errors. A difference below this share of the range of the
# values counts as zero when a family checks whether it is submodular or increasing. A larger
# share would hide the second differences 2 / n^2 of (k / n)^2, which are small for large n.
ROUNDING = MANY_ROUNDINGS * EPS


def slack_of(values: FloatArray, share: float = ROUNDING) -> float:
    """Return the largest difference of values that counts as rounding.

    A constant that is added to all values changes their rounding errors, but not their range.
    """
    if not values.size:
        return 0.0
    span = float(np.abs(values - values.flat[0]).max())
    return max(share * span, FEW_ROUNDINGS * EPS * float(np.abs(values).max()))


def size_grid(positive: BoolArray) -> IntArray:
    """Return the sizes n + q of sets with n elements inside a split, q outside: (m + 1, r + 1)."""
    m = int(np.count_nonzero(positive))
    n, q = np.ogrid[: m + 1, : len(positive) - m + 1]
    sizes: IntArray = n + q
    return sizes


class Cardinality(SetFunction):
    """F(A) = values[|A|]: submodular when the values are concave (B_D paper, Proposition 1).

    Its properties are exact, up to differences below 1.4e-14 of the largest difference of two
    values (64 units of rounding), which count as zero. A greedy pass is O(m).

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
            "is_submodular", lambda: self._largest_exchange(1.0) <= slack_of(self.values)
        )

    @property
    def is_supermodular(self) -> bool:
        return self._remember(
            "is_supermodular", lambda: self._largest_exchange(-1.0) <= slack_of(self.values)
        )

    @property
    def is_increasing(self) -> bool:
        return self._remember("is_increasing", lambda: self._fall() <= slack_of(self.values))

    def _largest_exchange(self, sign: float) -> float:
        return float((sign * np.diff(self.values, 2)).max(initial=-np.inf))

    def _numbers(self) -> Numbers:
        return numbers_of_table(self.values, least_of(np.diff(self.values)))

    def _gain_errors(self, order: IntArray, gains: FloatArray) -> FloatArray:
        return EPS * np.abs(gains)

    def _bend(self, sign: float = 1.0, lost: float = 0.0) -> float:
        size = float(np.abs(np.diff(self.values)).max(initial=0.0))
        return bend_of(self, self._largest_exchange(sign), size, lost)

    def _fall(self) -> float:
        return max(0.0, -float(np.diff(self.values).min(initial=0.0)))

    def _without_constant(self) -> Cardinality:
        rises = without_constant(self.values)
        return self if rises is None else Cardinality(rises)

    def _all_values(self) -> FloatArray:
        return self.values

    def _largest_gain(self) -> float:
        return float(np.diff(self.values).max()) if self.n else 0.0

    def _on_counts(self, positive: BoolArray, scale: float) -> FloatArray:
        values: FloatArray = scale * self.values[size_grid(positive)]
        return values
