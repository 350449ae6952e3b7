"""Any set function, or any callable, as a loss."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from setwise._foundation._arguments import (
    BoolArray,
    FloatArray,
    IntArray,
    as_answer,
    as_array,
    as_function,
)
from setwise.functions import Cardinality, ConcaveOfModular, Modular, Oracle, SetFunction
from setwise.functions._base import empty_value
from setwise.functions._families._compose import Sum
from setwise.losses._base import Loss
from setwise.losses._concave import concave_gains
from setwise.losses._families import Family, ModularRows, TableRows, Tables
from setwise.losses._labels import Labels
from setwise.losses._modular import flat_weights

Callback = Callable[[BoolArray, BoolArray], float]


class SetLoss(Loss):
    """The loss l(I) = F(I) - F(empty) of a set function F or of a callable.

    Parameters
    ----------
    function : SetFunction or callable
        A set function of the positions, the same for every y of its size; or a callable
        ``function(mistakes, positive) -> float`` of two boolean masks (p,), which is called once
        per set.
    submodular, increasing : bool, optional
        Known properties of a callable, for every y; those of a set function are read from it.

    Examples
    --------
    >>> import setwise as sw
    >>> loss = sw.losses.SetLoss(sw.functions.Table([0.0, 1.0, 1.0, 1.2]))
    >>> loss([1, -1], [-1, 1])
    1.2
    >>> worst = sw.losses.SetLoss(lambda mistakes, positive: float(mistakes.any()))
    >>> worst([1, 0, 1], [1, 1, 1])
    1.0
    """

    function: SetFunction | Callback
    submodular: bool | None
    increasing: bool | None

    def __init__(
        self,
        function: SetFunction | Callback,
        *,
        submodular: bool | None = None,
        increasing: bool | None = None,
    ) -> None:
        submodular = as_answer(submodular, "submodular")
        increasing = as_answer(increasing, "increasing")
        if isinstance(function, SetFunction):
            known = function.is_submodular, function.is_increasing
            submodular = submodular if known[0] is None else known[0]
            increasing = increasing if known[1] is None else known[1]
            constant = empty_value(function)
            if constant != 0:
                function = Sum([function, Cardinality(np.full(function.n + 1, -constant))])
        elif not callable(function):
            raise TypeError(
                f"function must be a set function or a callable, got {type(function).__name__}"
            )
        else:
            as_function(function, "function", "mistakes", "positive")
        self._set(function=function, submodular=submodular, increasing=increasing)

    def function_of(self, positive: BoolArray) -> SetFunction:
        function = self.function
        if isinstance(function, SetFunction):
            self._check_size(len(positive))
            return function
        split = positive.copy()
        zero = _value(function, np.zeros(len(split), np.bool_), split)
        return Oracle(
            partial(_difference, function, split, zero),
            len(split),
            submodular=self.submodular,
            increasing=self.increasing,
        )

    def _check_size(self, p: int) -> None:
        if isinstance(self.function, SetFunction) and self.function.n != p:
            raise ValueError(
                f"y must have {self.function.n} elements a set, as the set function has, got {p}"
            )

    def _key(self, positive: BoolArray) -> object:
        fixed = isinstance(self.function, SetFunction)
        return len(positive) if fixed else positive.tobytes()

    def _family(self, labels: Labels) -> Family | None:
        if isinstance(self.function, Cardinality):
            for p in np.unique(labels.sizes):
                self._check_size(int(p))
            which = np.zeros(labels.n, np.int64)
            return TableRows.of([self.function], which)
        if isinstance(self.function, Modular) and np.all(self.function.weights >= 0):
            return ModularRows(flat_weights(self.function.weights, labels), labels)
        return None

    @property
    def _form(self) -> Tables | None:
        return Tables(self, of_size=True) if isinstance(self.function, Cardinality) else None

    def _gains(self, labels: Labels, order: IntArray, chains: IntArray) -> FloatArray:
        if isinstance(self.function, ConcaveOfModular):
            for p in np.unique(labels.sizes):
                self._check_size(int(p))
            return concave_gains(self.function.concave, self.function.weights[order], chains)
        return super()._gains(labels, order, chains)

    @property
    def is_submodular(self) -> bool | None:
        return self.submodular

    @property
    def is_increasing(self) -> bool | None:
        return self.increasing

    def __repr__(self) -> str:
        return f"SetLoss({self.function!r})"


def _difference(function: Callback, positive: BoolArray, zero: float, mistakes: BoolArray) -> float:
    return _value(function, mistakes, positive) - zero


def _value(function: Callback, mistakes: BoolArray, positive: BoolArray) -> float:
    """Call the function on copies of the masks, and check that it returns a number."""
    returned = as_array(function(mistakes.copy(), positive.copy()), "what function returns")
    if returned.ndim != 0 or returned.dtype.kind not in "fiub":
        what = f"shape {returned.shape}" if returned.ndim else f"dtype {returned.dtype}"
        raise TypeError(f"function must return a real number, got {what}")
    if not np.isfinite(returned):
        raise ValueError(f"function must return a finite number, got {returned}")
    return float(returned)
