"""Modular functions: sums of weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray, as_numbers
from setwise.functions._base import SetFunction
from setwise.functions._families._cardinality import size_grid
from setwise.functions._numbers import Numbers, numbers_of_weights


class Modular(SetFunction):
    r"""F(A) = :math:`\sum_{i \in A} w_i`, the only functions both submodular and supermodular.

    Parameters
    ----------
    weights : array of shape (n,)
        Any real numbers. F is increasing if none is negative.

    Examples
    --------
    >>> import setwise as sw
    >>> F = sw.functions.Modular([1.0, 2.0, 4.0])
    >>> F([True, False, True])
    5.0
    """

    weights: FloatArray

    def __init__(self, weights: ArrayLike) -> None:
        array = as_numbers(weights, "weights")
        self._set(n=len(array), weights=array)

    def _values(self, masks: BoolArray) -> FloatArray:
        return masks @ self.weights

    def _gains(self, order: IntArray) -> FloatArray:
        return self.weights[order]

    @property
    def is_submodular(self) -> bool:
        return True

    @property
    def is_supermodular(self) -> bool:
        return True

    @property
    def is_increasing(self) -> bool:
        return bool(np.all(self.weights >= 0))

    def _numbers(self) -> Numbers:
        return numbers_of_weights(self.weights, 1)

    def _gain_errors(self, order: IntArray, gains: FloatArray) -> FloatArray:
        return np.zeros(len(order))

    def _on_counts(self, positive: BoolArray, scale: float) -> FloatArray | None:
        if np.any(self.weights != self.weights[:1]):
            return None
        values: FloatArray = scale * size_grid(positive) * self.weights[:1].sum()
        return values
