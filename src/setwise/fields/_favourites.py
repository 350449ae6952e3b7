"""The label of least unary energy of each variable."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray

T = TypeVar("T", bound=np.generic)


class Favourites(NamedTuple):
    """The least unary of each row, its label, and the largest finite excess over it in all rows."""

    least: FloatArray
    """(N,)"""
    labels: IntArray
    """(N,): the first label of each row that costs no more"""
    largest: float
    """The largest finite entry after subtracting each row's least entry."""

    @classmethod
    def of(cls, unary: FloatArray) -> Favourites:
        """Compute the favourites of unaries (N, L) in one pass over memory."""
        least, labels = np.empty(len(unary)), np.empty(len(unary), np.int64)
        largest = _core.favourites(np.ascontiguousarray(unary), least, labels)
        return cls(_read_only(least), _read_only(labels), largest)

    def grounded(self) -> Favourites:
        """Return the favourites after the least unary of each row is subtracted from the row."""
        return self._replace(least=_read_only(np.zeros_like(self.least)))


def _read_only(array: NDArray[T]) -> NDArray[T]:
    array.flags.writeable = False
    return array
