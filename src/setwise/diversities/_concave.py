"""Concave functions of a count, whose steps are the gains of further items of a group."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from setwise._foundation._arguments import FloatArray, as_choice, as_function, call_on_arrays
from setwise._foundation._base_classes import Immutable
from setwise.fields._terms import rounding_of_heights

_NAMED: dict[str, Callable[[FloatArray], FloatArray]] = {
    "min1": lambda counts: np.minimum(counts, 1.0),
    "sqrt": np.sqrt,
    "log1p": np.log1p,
}


class ConcaveCount(Immutable):
    """A concave function h of the number of items in a group, given as a name or a callable.

    A callable takes an array of counts. It is checked to be increasing, concave and finite on every
    range of counts that is used.
    """

    h: str | Callable[[FloatArray], FloatArray]

    def __init__(self, h: str | Callable[[FloatArray], FloatArray]) -> None:
        if not callable(h):
            h = as_choice(h, "h", _NAMED)
        else:
            as_function(h, "h", "counts")
        self._set(h=h)
        self.steps(2)

    @property
    def flattens(self) -> bool | None:
        """Whether its steps decrease to zero; None for a callable, for which this is not known."""
        return True if isinstance(self.h, str) else None

    def steps(self, most: int) -> FloatArray:
        """Return the steps h(k + 1) - h(k) for k = 0..most, nonnegative and nonincreasing."""
        return self._remember(most, lambda: self._steps(most))

    def _steps(self, most: int) -> FloatArray:
        counts = np.arange(most + 2, dtype=np.float64)
        if isinstance(self.h, str):
            return np.diff(_NAMED[self.h](counts))
        heights = call_on_arrays(self.h, "h", counts)
        slack = rounding_of_heights(heights)
        steps = np.diff(heights)
        falls = np.flatnonzero(steps < -slack)
        if len(falls):
            raise ValueError(f"h must be increasing, got a fall from {falls[0]} to {falls[0] + 1}")
        bends = np.flatnonzero(np.diff(steps) > slack)
        if len(bends):
            raise ValueError(f"h must be concave, got an upward bend at {bends[0] + 1}")
        return np.minimum.accumulate(np.maximum(steps, 0.0))

    def __repr__(self) -> str:
        return repr(self.h) if isinstance(self.h, str) else getattr(self.h, "__name__", "callable")
