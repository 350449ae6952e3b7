"""A set function given by all of its values."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray, as_numbers
from setwise._foundation._certificate import EPS
from setwise.functions._base import SetFunction, as_set_function
from setwise.functions._families._cardinality import slack_of
from setwise.functions._numbers import (
    Numbers,
    bend_of,
    least_of,
    numbers_of_table,
    without_constant,
)

# The most elements of a table: 2^24 values take 128 MB. Chosen by hand to bound the memory.
MOST_ELEMENTS = 24
# The most elements for which ``tabulate`` evaluates all sets: 2^20 sets take seconds for a Python
# callable. Chosen by hand to bound the time.
MOST_TABULATED = 20


class Table(SetFunction):
    r"""All :math:`2^n` values of a set function, in bit order.

    .. math:: F(A) = \mathtt{values}\Bigl[\sum_{i \in A} 2^i\Bigr].

    All its properties are known: ``is_submodular``, ``is_supermodular`` and ``is_increasing`` are
    computed at the first access, in O(n^2 2^n), O(n^2 2^n) and O(n 2^n), and cached. An inequality
    counts as violated if it fails by more than 1e-12 times the largest difference from F(empty),
    which bounds the rounding of sums of a few differences, or by more than 8 units of rounding of
    the largest value, if that is more.

    A value costs O(n), and so does a greedy pass.

    Parameters
    ----------
    values : array-like of shape (2**n,)
        The values, at most 2**24.

    Examples
    --------
    >>> import setwise as sw
    >>> F = sw.functions.Table([0.0, 1.0, 1.0, 3.0])
    >>> F([True, True])
    3.0
    >>> F.gains([1, 0]).tolist()
    [1.0, 2.0]
    >>> F.is_submodular, F.is_supermodular, F.is_increasing
    (False, True, True)
    """

    values: FloatArray

    def __init__(self, values: ArrayLike) -> None:
        table = as_numbers(values, "values")
        n = len(table).bit_length() - 1
        if len(table) == 0 or len(table) != 1 << n:
            raise ValueError(f"values must have a length that is a power of 2, got {len(table)}")
        if n > MOST_ELEMENTS:
            raise ValueError(f"values must have at most 2**{MOST_ELEMENTS} entries, got 2**{n}")
        self._set(n=n, values=table)

    @property
    def tolerance(self) -> float:
        """The tolerance of an inequality, at least 1e-12 of the largest F(A) - F(empty)."""
        return slack_of(self.values, 1e-12)

    def _values(self, masks: BoolArray) -> FloatArray:
        return self.values[masks @ _bits(self.n)]

    def _gains(self, order: IntArray) -> FloatArray:
        chain = np.zeros(len(order) + 1, np.int64)
        np.cumsum(_bits(self.n)[order], out=chain[1:])
        return np.diff(self.values[chain])

    @property
    def is_submodular(self) -> bool:
        return self._remember(
            "is_submodular", lambda: self._largest_exchange(1.0) <= self.tolerance
        )

    @property
    def is_supermodular(self) -> bool:
        return self._remember(
            "is_supermodular", lambda: self._largest_exchange(-1.0) <= self.tolerance
        )

    @property
    def is_increasing(self) -> bool:
        return self._remember("is_increasing", lambda: self._fall() <= self.tolerance)

    def _largest_exchange(self, sign: float) -> float:
        return self._remember(("exchange", sign), lambda: worst_exchange(sign * self.values)[0])

    def _numbers(self) -> Numbers:
        by_element = self.values.reshape((2,) * self.n)
        # The steps of one element are 2^(n - 1) numbers. The generator never stores those of all
        # elements at once.
        steps = (least_of(np.diff(by_element, axis=i)) for i in range(self.n))
        return numbers_of_table(self.values, min(least_of(self.values), *steps, np.inf))

    def _gain_errors(self, order: IntArray, gains: FloatArray) -> FloatArray:
        return EPS * np.abs(gains)

    def _bend(self, sign: float = 1.0, lost: float = 0.0) -> float:
        size = float(np.abs(self.values).max())
        return bend_of(self, self._largest_exchange(sign), size, lost)

    def _fall(self) -> float:
        return self._remember("fall", lambda: max(0.0, worst_fall(self.values)[0]))

    def _without_constant(self) -> Table:
        rises = without_constant(self.values)
        return self if rises is None else Table(rises)


def _bits(n: int) -> IntArray:
    return np.left_shift(1, np.arange(n, dtype=np.int64))


def worst_exchange(values: FloatArray) -> tuple[float, int, int, int]:
    """Return the largest F(A+i+j) + F(A) - F(A+i) - F(A+j), with its A (an index), i and j.

    The maximum is over all A and all i < j outside A. F is submodular if it is not positive. With
    fewer than two elements the result is (-inf, 0, 0, 0).
    """
    n = len(values).bit_length() - 1
    worst = (-np.inf, 0, 0, 0)
    for i in range(n):
        # Axes: bits above i, bit i, bits below. Without bit i, bit j > i becomes bit j - 1.
        cube = values.reshape(-1, 2, 1 << i)
        gain = (cube[:, 1] - cube[:, 0]).reshape(-1)
        for j in range(i + 1, n):
            halves = gain.reshape(-1, 2, 1 << (j - 1))
            growth = halves[:, 1] - halves[:, 0]
            place = int(growth.argmax())
            if growth.flat[place] > worst[0]:
                index = _insert_zero(_insert_zero(place, j - 1), i)
                worst = (float(growth.flat[place]), index, i, j)
    return worst


def worst_fall(values: FloatArray) -> tuple[float, int, int]:
    """Return the largest F(A) - F(A+i), with its A (an index) and i.

    The maximum is over all A and all i outside A. F is increasing if it is not positive. Without
    elements the result is (-inf, 0, 0).
    """
    n = len(values).bit_length() - 1
    worst = (-np.inf, 0, 0)
    for i in range(n):
        cube = values.reshape(-1, 2, 1 << i)
        fall = cube[:, 0] - cube[:, 1]
        place = int(fall.argmax())
        if fall.flat[place] > worst[0]:
            worst = (float(fall.flat[place]), _insert_zero(place, i), i)
    return worst


def _insert_zero(index: int, bit: int) -> int:
    """Insert a zero at the given bit of an index, and shift the bits from there on."""
    low = index & ((1 << bit) - 1)
    return ((index - low) << 1) | low


def masks_of(indices: IntArray, n: int) -> BoolArray:
    """Return the sets with the given indices in bit order, as masks (len(indices), n)."""
    masks: BoolArray = (indices[:, None] >> np.arange(n)) & 1 == 1
    return masks


def tabulate(function: SetFunction) -> Table:
    """Return the ``Table`` of any set function on at most 20 elements.

    All 2^n sets are evaluated, a few thousand at a time. A ``Table`` is returned unchanged.

    Examples
    --------
    >>> import setwise as sw
    >>> sw.functions.tabulate(sw.functions.Modular([1.0, 2.0])).values.tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    if isinstance(function, Table):
        return function
    if as_set_function(function).n > MOST_TABULATED:
        raise ValueError(
            f"function must have at most {MOST_TABULATED} elements to be tabulated, "
            f"got {function.n}"
        )
    total, rows = 1 << function.n, 1 << 13
    values = [
        function._values(masks_of(np.arange(start, min(start + rows, total)), function.n))
        for start in range(0, total, rows)
    ]
    return Table(np.concatenate(values))
