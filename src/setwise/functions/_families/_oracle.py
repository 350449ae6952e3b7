"""A set function given by any Python callable."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from setwise._foundation._arguments import (
    LARGEST,
    BoolArray,
    FloatArray,
    IntArray,
    as_answer,
    as_array,
    as_count,
    as_function,
)
from setwise.functions._base import SetFunction


class Oracle(SetFunction):
    """A set function given by any Python callable: A -> function(mask of A).

    Known properties of the function can be declared. Declarations are not verified; ``check`` tests
    them. An oracle can be pickled if its callable can.

    A value costs one call of the function, a greedy pass over m elements m + 1 calls.

    Parameters
    ----------
    function : callable
        Takes a boolean mask of shape (n,), its own copy each time, and returns a real number.
    n : int
        The number of elements.
    submodular, supermodular, increasing : bool or None
        The values of ``is_submodular``, ``is_supermodular``, ``is_increasing``; None: not known.

    Examples
    --------
    >>> import setwise as sw
    >>> F = sw.functions.Oracle(lambda mask: float(mask.any()), 3, submodular=True)
    >>> F([False, True, True])
    1.0
    >>> F.gains([2, 0]).tolist()
    [1.0, 0.0]
    >>> F.is_submodular, F.is_increasing
    (True, None)
    """

    function: Callable[[BoolArray], float]
    _submodular: bool | None
    _supermodular: bool | None
    _increasing: bool | None
    _is_costly = True

    def __init__(
        self,
        function: Callable[[BoolArray], float],
        n: int,
        *,
        submodular: bool | None = None,
        supermodular: bool | None = None,
        increasing: bool | None = None,
    ) -> None:
        if not callable(function):
            raise TypeError(f"function must be callable, got {type(function).__name__}")
        as_function(function, "function", "mask")
        self._set(
            n=as_count(n, "n"),
            function=function,
            _submodular=as_answer(submodular, "submodular"),
            _supermodular=as_answer(supermodular, "supermodular"),
            _increasing=as_answer(increasing, "increasing"),
        )

    def _values(self, masks: BoolArray) -> FloatArray:
        return np.array([self._value(mask) for mask in masks], dtype=np.float64)

    def _value(self, mask: BoolArray) -> float:
        # The callable may write into its argument, which must not change the error message.
        result = as_array(self.function(mask.copy()), "what function returns")
        if result.ndim != 0 or result.dtype.kind not in "fiub":
            what = f"shape {result.shape}" if result.ndim else f"dtype {result.dtype}"
            raise TypeError(f"function must return a real number, got {what}")
        if not np.isfinite(result):
            raise ValueError(
                f"function must return a finite number, got {result} for the set "
                f"{np.flatnonzero(mask).tolist()}"
            )
        if abs(float(result)) > LARGEST:
            raise ValueError(f"function must return at most {LARGEST:g} in size, got {result:g}")
        return float(result)

    def _gains(self, order: IntArray) -> FloatArray:
        mask = np.zeros(self.n, np.bool_)
        chain = np.empty(len(order) + 1)
        chain[0] = self._value(mask)
        for k, element in enumerate(order):
            mask[element] = True
            chain[k + 1] = self._value(mask)
        return np.diff(chain)

    @property
    def is_submodular(self) -> bool | None:
        return self._submodular

    @property
    def is_supermodular(self) -> bool | None:
        return self._supermodular

    @property
    def is_increasing(self) -> bool | None:
        return self._increasing

    def __repr__(self) -> str:
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        declared = {
            "submodular": self._submodular,
            "supermodular": self._supermodular,
            "increasing": self._increasing,
        }
        properties = "".join(
            f", {key}={value}" for key, value in declared.items() if value is not None
        )
        return f"Oracle({name}, n={self.n}{properties})"
