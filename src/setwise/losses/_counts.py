"""Losses of the numbers of false negatives and false positives."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    BoolArray,
    FloatArray,
    IntArray,
    as_function,
    call_on_arrays,
)
from setwise.functions import Counts
from setwise.functions._families._counts import GRID_CELLS, CountsGrid
from setwise.losses._base import Loss, LossTraits
from setwise.losses._families import Family, TableRows, Tables
from setwise.losses._labels import Labels
from setwise.losses._parts import PartOf, Which

Formula = Callable[..., ArrayLike]


class OfCounts(Loss):
    """A loss l(I) = formula(n, q), with one formula per m positives and r negatives."""

    @abstractmethod
    def _formula(self, m: int, r: int) -> Formula: ...

    def function_of(self, positive: BoolArray) -> Counts:
        m = int(np.count_nonzero(positive))
        r = len(positive) - m
        return Counts(self._remember((m, r), lambda: self._formula(m, r)), positive)

    def _splits(self, labels: Labels) -> tuple[list[tuple[int, int]], IntArray]:
        """Return the distinct (m, r) of a batch, and the index of each set's pair."""
        m = labels.positives
        pairs, which = np.unique(np.stack([m, labels.sizes - m]), axis=1, return_inverse=True)
        return [(int(a), int(b)) for a, b in pairs.T], which.reshape(-1)

    def _sorted(self, m: int, r: int) -> Counts:
        """Return the set function with the positives first; the grid does not depend on the order.

        Small grids are cached; large ones (half a megabyte and more) are recomputed.
        """
        if (m + 1) * (r + 1) > 1 << 16:
            return self.function_of(np.arange(m + r) < m)
        return self._remember(("sorted", m, r), lambda: self.function_of(np.arange(m + r) < m))

    def _family(self, labels: Labels) -> Family | None:
        splits, which = self._splits(labels)
        if sum((m + 1) * (r + 1) for m, r in splits) > GRID_CELLS:
            return None
        return TableRows.of([self._sorted(m, r) for m, r in splits], which)

    def _values(self, labels: Labels, mistakes: BoolArray) -> FloatArray:
        n = labels.counts(mistakes & labels.positive.view(np.bool_))
        q = labels.counts(mistakes) - n
        splits, which = self._splits(labels)
        values = np.empty(labels.n)
        for k, (m, r) in enumerate(splits):
            here = which == k
            values[here] = call_on_arrays(self._formula(m, r), "formula", n[here], q[here])
        return values

    def _gains(self, labels: Labels, order: IntArray, chains: IntArray) -> FloatArray:
        gains = np.empty(len(order))
        for i in range(labels.n):
            chain = slice(chains[i], chains[i + 1])
            gains[chain] = self.function_of(labels.row(i))._gains(order[chain])
        return gains

    def _grid_of_counts(self, m: int, r: int) -> FloatArray:
        return self._sorted(m, r).grid()

    _traits = LossTraits(is_symmetric=True)

    @property
    def _form(self) -> object:
        return Tables(self, of_size=False)

    def _part(self, which: Which) -> Loss:
        return CountsPart(self, which)


class CountsPart(PartOf, OfCounts):
    """A part of a loss of the counts, which is such a loss too, given by its grid."""

    def _formula(self, m: int, r: int) -> CountsGrid:
        part = self._decomposed(np.arange(m + r) < m)
        grid = part.grid() if isinstance(part, Counts) else np.zeros((m + 1, r + 1))
        return CountsGrid(np.array(grid))


class CountsLoss(OfCounts):
    """The loss l(I) = formula(n, q, m, r) - formula(0, 0, m, r) by any formula of the counts.

    The Lovász hinge supports it at any size. Margin and slack rescaling enumerate all pairs of
    counts, and are exact up to 2**22 pairs (about four thousand elements).

    Parameters
    ----------
    formula : callable
        Called as formula(n, q, m, r) with arrays of false negatives n and false positives q, and
        the numbers m of positives and r of negatives in the truth.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> balanced = lambda n, q, m, r: (n / max(m, 1) + q / max(r, 1)) / 2
    >>> loss = sw.losses.CountsLoss(balanced)
    >>> loss([1, 1, 0, 0], [1, 0, 0, 0])
    0.25
    """

    formula: Formula

    def __init__(self, formula: Formula) -> None:
        self._set(formula=as_function(formula, "formula", "n", "q", "m", "r"))

    def _formula(self, m: int, r: int) -> Formula:
        return _FromZero(self.formula, m, r)

    def __repr__(self) -> str:
        return f"CountsLoss({getattr(self.formula, '__name__', self.formula)!s})"


class _FromZero:
    """A formula of (n, q, m, r) at fixed m and r, minus its value without mistakes."""

    def __init__(self, formula: Formula, m: int, r: int) -> None:
        self.formula, self.m, self.r = formula, m, r
        self.zero = float(call_on_arrays(self._raw, "formula", np.zeros(1), np.zeros(1))[0])

    def _raw(self, n: ArrayLike, q: ArrayLike) -> ArrayLike:
        return self.formula(n, q, self.m, self.r)

    def __call__(self, n: ArrayLike, q: ArrayLike) -> FloatArray:
        n, q = np.asarray(n, np.float64), np.asarray(q, np.float64)
        return call_on_arrays(self._raw, "formula", n, q) - self.zero
