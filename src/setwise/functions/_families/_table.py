"""A set function given by all of its values."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray, as_numbers
from setwise.functions._base import SetFunction, as_set_function
from setwise.functions._families._cardinality import slack_of

MOST_ELEMENTS = 24
MOST_TABULATED = 20


class Table(SetFunction):
    r"""All :math:`2^n` values of a set function, in bit order.

    .. math:: F(A) = \mathtt{values}\Bigl[\sum_{i \in A} 2^i\Bigr].

    It knows everything about itself: ``is_submodular``, ``is_supermodular`` and ``is_increasing``
    are worked out when first asked for, in O(n^2 2^n), O(n^2 2^n) and O(n 2^n), and remembered. An
    inequality counts as violated when it fails by more than 1e-12 times the largest difference from
    F(empty), which is what rounding may do to sums of a few of them, or 8 units of rounding of the
    largest value, if that is more.

    A value costs O(n), a greedy pass O(n).

    Parameters
    ----------
    values : array-like of shape (2**n,)
        At most 2**24 of them.

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
        """What an inequality may fail by and still hold: 1e-12 of the largest F(A) - F(empty)."""
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
            "is_submodular", lambda: worst_exchange(self.values)[0] <= self.tolerance
        )

    @property
    def is_supermodular(self) -> bool:
        return self._remember(
            "is_supermodular", lambda: worst_exchange(-self.values)[0] <= self.tolerance
        )

    @property
    def is_increasing(self) -> bool:
        return self._remember("is_increasing", lambda: worst_fall(self.values)[0] <= self.tolerance)


def _bits(n: int) -> IntArray:
    return np.left_shift(1, np.arange(n, dtype=np.int64))


def worst_exchange(values: FloatArray) -> tuple[float, int, int, int]:
    """The largest F(A+i+j) + F(A) - F(A+i) - F(A+j), and the A (as an index), i, j that give it.

    Over all A and all i < j outside A. F is submodular when it is not positive. With fewer than
    two elements there is nothing to exchange: (-inf, 0, 0, 0).
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
    """The largest F(A) - F(A+i), and the A (as an index), i that give it.

    Over all A and all i outside A. F is increasing when it is not positive. (-inf, 0, 0) when
    there are no elements.
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
    """The index with a zero put in at the given bit, the bits from there on moved up."""
    low = index & ((1 << bit) - 1)
    return ((index - low) << 1) | low


def masks_of(indices: IntArray, n: int) -> BoolArray:
    """The sets with the given indices in bit order, as masks (len(indices), n)."""
    masks: BoolArray = (indices[:, None] >> np.arange(n)) & 1 == 1
    return masks


def tabulate(function: SetFunction) -> Table:
    """The ``Table`` of any set function on at most 20 elements.

    Evaluates all 2^n sets, a few thousand at a time; a ``Table`` is returned as it is.

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
