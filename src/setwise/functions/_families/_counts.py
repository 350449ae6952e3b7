"""Functions of two counts, the numbers of elements on each side of a split."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    as_function,
    as_numbers,
    call_on_arrays,
)
from setwise._foundation._base_classes import Immutable
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS
from setwise.functions._base import SetFunction, Walk
from setwise.functions._families._cardinality import slack_of
from setwise.functions._families._ratio import Ratio
from setwise.functions._numbers import bend_of

# The most cells of a grid of counts that is tabulated to find the properties of a formula. It
# bounds the memory: 4 million cells take 32 MB, and each kind of difference as much again. Not
# tuned.
GRID_CELLS = 1 << 22


class Counts(SetFunction):
    r"""F(A) = l(n, q) with n = :math:`|A \cap P|` and q = :math:`|A \setminus P|`.

    In a loss, A is the set of mistakes and P that of the elements whose true label is positive:
    there are n false negatives and q false positives. A greedy pass is O(m) and one call of the
    formula on arrays.

    Parameters
    ----------
    formula : callable or array of shape (m + 1, r + 1)
        l(n, q), called with arrays; or its values on the grid of all counts, m = |P|, r = |V - P|.
    positive : boolean array of shape (n,)
        A mask of the elements of P.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> F = sw.functions.Counts(lambda n, q: np.minimum(n, 2) + 0.5 * q, [True, True, False])
    >>> F([True, False, True])
    1.5
    >>> F.is_submodular
    True
    """

    formula: Callable[..., ArrayLike]
    positive: BoolArray
    m: int
    r: int

    def __init__(self, formula: Callable[..., ArrayLike] | ArrayLike, positive: ArrayLike) -> None:
        split = as_array(positive, "positive")
        if split.dtype != np.bool_ and split.size:
            raise TypeError(f"positive must be boolean, got dtype {split.dtype}")
        if split.ndim != 1:
            raise ValueError(f"positive must have shape (n,), got {split.shape}")
        split = split.astype(np.bool_)
        m = int(np.count_nonzero(split))
        r = len(split) - m
        if not callable(formula):
            formula = CountsGrid(as_numbers(formula, "formula", shape=(m + 1, r + 1)))
        elif not isinstance(formula, Ratio):
            as_function(formula, "formula", "n", "q")
        elif formula.m != m:
            raise ValueError(f"formula is made for {formula.m} positives, got {m} in positive")
        self._set(n=len(split), formula=formula, positive=split, m=m, r=r)

    def _at(self, n: ArrayLike, q: ArrayLike) -> FloatArray:
        if isinstance(self.formula, Ratio):
            return self.formula._at(np.asarray(n, np.float64), np.asarray(q, np.float64))
        return call_on_arrays(self.formula, "formula", n, q)

    def _values(self, masks: BoolArray) -> FloatArray:
        n = np.count_nonzero(masks[:, self.positive], axis=1)
        return self._at(n, np.count_nonzero(masks, axis=1) - n)

    def _gains(self, order: IntArray) -> FloatArray:
        positive = self.positive[order]
        n = np.concatenate([[0], np.cumsum(positive)])
        q = np.arange(len(order) + 1) - n
        if isinstance(self.formula, Ratio):
            return ratio_gains(self.formula, positive, n[:-1], q[:-1])
        return np.diff(self._at(n, q))

    @property
    def _has_grid(self) -> bool:
        return (self.m + 1) * (self.r + 1) <= GRID_CELLS

    def grid(self) -> FloatArray:
        """Return l on all counts, of shape (m + 1, r + 1). Raise an error above 2**22 cells."""
        if not self._has_grid:
            raise ValueError(
                f"a grid of counts must have at most {GRID_CELLS} cells, "
                f"got {self.m + 1} x {self.r + 1}"
            )
        n, q = np.meshgrid(np.arange(self.m + 1), np.arange(self.r + 1), indexing="ij")
        return self._remember("grid", lambda: self._at(n, q))

    def _curvatures(self) -> list[FloatArray]:
        """Return the second differences of l: in n, in q and mixed."""
        grid = self.grid()
        return [
            np.diff(grid, 2, axis=0),
            np.diff(grid, 2, axis=1),
            np.diff(np.diff(grid, axis=0), axis=1),
        ]

    def _is_curved(self, sign: float) -> bool | None:
        if not self._has_grid:
            return None
        return self._largest_exchange(sign) <= slack_of(self.grid())

    def _largest_exchange(self, sign: float) -> float:
        return max(float((sign * part).max(initial=-np.inf)) for part in self._curvatures())

    @property
    def is_submodular(self) -> bool | None:
        if isinstance(self.formula, Ratio):
            return self.formula.is_submodular(self.r)
        return self._remember("is_submodular", lambda: self._is_curved(1.0))

    @property
    def is_supermodular(self) -> bool | None:
        if isinstance(self.formula, Ratio):
            known = self.formula.is_supermodular(self.r)
            if known is not None:
                return known
        return self._remember("is_supermodular", lambda: self._is_curved(-1.0))

    @property
    def is_increasing(self) -> bool | None:
        if isinstance(self.formula, Ratio):
            return self.formula.is_increasing(self.r)
        return self._remember("is_increasing", self._rises)

    def _rises(self) -> bool | None:
        if not self._has_grid:
            return None
        return self._fall() <= slack_of(self.grid())

    def _gain_errors(self, order: IntArray, gains: FloatArray) -> FloatArray:
        if isinstance(self.formula, CountsGrid):
            return EPS * np.abs(gains)
        if isinstance(self.formula, Ratio) and self.formula.part != "submodular":
            # These gains are closed forms without cancellation.
            return 4 * FEW_ROUNDINGS * EPS * np.abs(gains)
        return super()._gain_errors(order, gains)

    def _bend(self, sign: float = 1.0, lost: float = 0.0) -> float:
        if isinstance(self.formula, Ratio) or not self._has_grid:
            return lost
        size = FEW_ROUNDINGS * float(np.abs(self.grid()).max())
        return bend_of(self, self._largest_exchange(sign), size, lost)

    def _fall(self) -> float:
        if isinstance(self.formula, Ratio) or not self._has_grid:
            return 0.0
        steps = (np.diff(self.grid(), axis=axis).min(initial=0.0) for axis in (0, 1))
        return max(0.0, -float(min(steps)))

    @property
    def _is_nonnegative(self) -> bool | None:
        # Both parts of a ratio are nonnegative; for the submodular part this follows from its
        # closed form.
        return True if isinstance(self.formula, Ratio) else None

    def _all_values(self) -> FloatArray | None:
        return self.grid().ravel() if self._has_grid else None

    def _largest_gain(self) -> float | None:
        if self.n == 0:
            return 0.0
        if isinstance(self.formula, Ratio):
            return self.formula._largest_step(self.r)
        if not self._has_grid:
            return super()._largest_gain()
        steps = [np.diff(self.grid(), axis=axis).max(initial=-np.inf) for axis in (0, 1)]
        return float(max(steps))

    @property
    def _split(self) -> BoolArray:
        return self.positive

    def _on_counts(self, positive: BoolArray, scale: float) -> FloatArray | None:
        return scale * self.grid() if np.array_equal(self.positive, positive) else None

    def _walk(self) -> Walk:
        return CountsWalk(self)

    def __repr__(self) -> str:
        return f"Counts({self.formula!r}, m={self.m}, r={self.r})"


class CountsWalk(Walk):
    """A set that changes, with its counts: an update takes O(1), a new set O(p)."""

    function: Counts

    def __init__(self, function: Counts) -> None:
        super().__init__(function)
        self.counts = [0, 0]

    def add(self, i: int) -> None:
        """Increment the count on the side of element i."""
        self.mask[i] = True
        self.counts[not self.function.positive[i]] += 1

    def drop(self, i: int) -> None:
        """Decrement the count on the side of element i."""
        self.mask[i] = False
        self.counts[not self.function.positive[i]] -= 1

    def value(self) -> FloatArray:
        """Return l at the counts, of shape (1,)."""
        return self.function._at(np.array(self.counts[:1]), np.array(self.counts[1:]))


def ratio_gains(formula: Ratio, positive: BoolArray, n: IntArray, q: IntArray) -> FloatArray:
    """Return the gains of a ratio for elements that follow n[k], q[k] mistakes."""
    gains = np.empty(len(positive))
    negative = ~positive
    gains[negative] = formula._step_positive(
        n[negative].astype(np.float64), q[negative].astype(np.float64)
    )
    if positive.any():
        gains[positive] = formula._step_negative(
            n[positive].astype(np.float64), q[positive].astype(np.float64)
        )
    return gains


class CountsGrid(Immutable):
    """A formula of counts that reads its values from an array (m + 1, r + 1)."""

    values: FloatArray

    def __init__(self, values: FloatArray) -> None:
        self._set(values=values)

    def __call__(self, n: ArrayLike, q: ArrayLike) -> FloatArray:
        return self.values[np.asarray(n, np.int64), np.asarray(q, np.int64)]

    def __repr__(self) -> str:
        return f"<table of {self.values.shape[0]} x {self.values.shape[1]} counts>"
