"""Concave functions of a modular one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    LARGEST,
    BoolArray,
    FloatArray,
    IntArray,
    as_function,
    as_numbers,
    call_on_arrays,
)
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS
from setwise.functions._base import SetFunction
from setwise.functions._families._cardinality import slack_of


class ConcaveOfModular(SetFunction):
    r"""F(A) = h(:math:`\sum_{i \in A} w_i`) with h concave and w non-negative: submodular.

    The concavity of h is checked on a grid of 257 points of [0, w(V)]. ``is_increasing`` is then
    exact, since a concave h decreases first at the end of its range. A greedy pass is O(m) and one
    call of h.

    Parameters
    ----------
    concave : callable
        h, called with an array of sums.
    weights : array of shape (n,)
        Not negative.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> F = sw.functions.ConcaveOfModular(np.sqrt, [9.0, 16.0])
    >>> F.gains([0, 1]).tolist()
    [3.0, 2.0]
    """

    concave: Callable[..., ArrayLike]
    weights: FloatArray

    def __init__(self, concave: Callable[..., ArrayLike], weights: ArrayLike) -> None:
        as_function(concave, "concave", "sums")
        array = as_numbers(weights, "weights", nonnegative=True)
        self._set(n=len(array), concave=concave, weights=array)
        self._check_concave()

    def _check_concave(self) -> None:
        total = float(self.weights.sum())
        # More intervals would cost time, and could still miss a dent between two points.
        grid = np.linspace(0.0, total, 257)
        values = self._at(grid)
        bend = np.diff(values, 2)
        # For smaller sums, the spacing of floats is coarser than the grid.
        if total > 1 / LARGEST and bend.max() > 4 * slack_of(values):
            k = int(bend.argmax())
            raise ValueError(
                f"concave must be concave on [0, {total:g}], got "
                f"{values[k]:g}, {values[k + 1]:g}, {values[k + 2]:g} at "
                f"{grid[k]:g}, {grid[k + 1]:g}, {grid[k + 2]:g}"
            )

    def _at(self, sums: ArrayLike) -> FloatArray:
        return call_on_arrays(self.concave, "concave", sums)

    def _values(self, masks: BoolArray) -> FloatArray:
        return self._at(masks @ self.weights)

    def _gains(self, order: IntArray) -> FloatArray:
        return np.diff(self._at(np.concatenate([[0.0], np.cumsum(self.weights[order])])))

    @property
    def is_submodular(self) -> bool:
        return True

    @property
    def is_supermodular(self) -> bool | None:
        """True if at most one weight is positive, so that F has at most two values."""
        return True if np.count_nonzero(self.weights) <= 1 else None

    @property
    def is_increasing(self) -> bool:
        values = self._last_values()
        return bool(np.all(values[0] - values[1:] >= -slack_of(values)))

    def _fall(self) -> float:
        values = self._last_values()
        return max(0.0, float((values[1:] - values[0]).max(initial=0.0)))

    def _last_values(self) -> FloatArray:
        """Return F(V) and F(V - i): the least steps h(t + w_i) - h(t) of a concave h are last."""
        total = float(self.weights.sum())
        return self._at(np.concatenate([[total], total - self.weights]))

    def _gain_errors(self, order: IntArray, gains: FloatArray) -> FloatArray:
        """Return errors of gains, given the relative error k EPS of a sum of k weights in h."""
        sums = np.concatenate([[0.0], np.cumsum(self.weights[order])])
        shift = np.arange(len(sums)) * EPS * sums
        top = max(float(self.weights.sum()), float(sums[-1]))
        values, low, high = (self._at(np.clip(sums + d, 0.0, top)) for d in (0.0, -shift, shift))
        # Within the interval, a concave h differs most from its middle value at one of the ends.
        errors = np.maximum(np.abs(low - values), np.abs(high - values))
        errors += FEW_ROUNDINGS * EPS * np.abs(values)
        return errors[1:] + errors[:-1]

    def __repr__(self) -> str:
        name = getattr(self.concave, "__name__", repr(self.concave))
        return f"ConcaveOfModular({name}, n={self.n})"
