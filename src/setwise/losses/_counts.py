"""Losses of the numbers of false negatives and false positives: Jaccard, Dice, F-beta."""

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
    as_number,
    call_on_arrays,
)
from setwise.functions import Counts, Ratio
from setwise.functions._families._counts import GRID_CELLS, ratio_gains
from setwise.losses._base import Loss
from setwise.losses._families import Family, RatioRows, TableRows
from setwise.losses._labels import Labels

Formula = Callable[..., ArrayLike]


class OfCounts(Loss):
    """A loss l(I) = formula(n, q), one formula for each m positives and r negatives."""

    @abstractmethod
    def _formula(self, m: int, r: int) -> Formula: ...

    def _set_function(self, positive: BoolArray) -> Counts:
        m = int(np.count_nonzero(positive))
        r = len(positive) - m
        return Counts(self._remember((m, r), lambda: self._formula(m, r)), positive)

    def _splits(self, labels: Labels) -> tuple[list[tuple[int, int]], IntArray]:
        """The distinct (m, r) of a batch, and which each set has."""
        m = labels.positives
        pairs, which = np.unique(np.stack([m, labels.sizes - m]), axis=1, return_inverse=True)
        return [(int(a), int(b)) for a, b in pairs.T], which.reshape(-1)

    def _sorted(self, m: int, r: int) -> Counts:
        """The set function with its positives first: the grid is the same in any order.

        Small grids are kept, large ones (half a megabyte and more) are made when they are needed.
        """
        if (m + 1) * (r + 1) > 1 << 16:
            return self._set_function(np.arange(m + r) < m)
        return self._remember(("sorted", m, r), lambda: self._set_function(np.arange(m + r) < m))

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
            gains[chain] = self._set_function(labels.row(i))._gains(order[chain])
        return gains


class CountsLoss(OfCounts):
    """l(I) = formula(n, q, m, r) - formula(0, 0, m, r), any formula of the counts.

    The Lovász hinge takes it at any size; margin and slack rescaling look at every pair of counts,
    so that they are exact up to 2**22 pairs (about four thousand elements).

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
        self._set(formula=as_function(formula, "formula"))

    def _formula(self, m: int, r: int) -> Formula:
        return _FromZero(self.formula, m, r)

    def __repr__(self) -> str:
        return f"CountsLoss({getattr(self.formula, '__name__', self.formula)!s})"


class _FromZero:
    """A formula of (n, q, m, r) at fixed m and r, counted from its value at no mistake."""

    def __init__(self, formula: Formula, m: int, r: int) -> None:
        self.formula, self.m, self.r = formula, m, r
        self.zero = float(call_on_arrays(self._raw, "formula", np.zeros(1), np.zeros(1))[0])

    def _raw(self, n: ArrayLike, q: ArrayLike) -> ArrayLike:
        return self.formula(n, q, self.m, self.r)

    def __call__(self, n: ArrayLike, q: ArrayLike) -> FloatArray:
        n, q = np.asarray(n, np.float64), np.asarray(q, np.float64)
        return call_on_arrays(self._raw, "formula", n, q) - self.zero


class OfRatio(OfCounts):
    """Jaccard, F-beta and their parts: the formula is compiled and needs no grid."""

    @abstractmethod
    def _ratio(self, m: int) -> Ratio: ...

    def _formula(self, m: int, r: int) -> Ratio:
        return self._ratio(m)

    def _family(self, labels: Labels) -> Family | None:
        return self._remember("family", lambda: RatioRows(self._ratio(0)))

    def _values(self, labels: Labels, mistakes: BoolArray) -> FloatArray:
        n = labels.counts(mistakes & labels.positive.view(np.bool_)).astype(np.float64)
        q = labels.counts(mistakes) - n
        m = labels.positives
        ratio = self._ratio(1)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = (ratio.a * n + q) / (ratio.c * m - ratio.d * n + q)
        return np.where(m == 0, np.minimum(1.0, q), values)

    def _gains(self, labels: Labels, order: IntArray, chains: IntArray) -> FloatArray:
        gains = np.empty(len(order))
        for i in range(labels.n):
            chain = slice(chains[i], chains[i + 1])
            positive = labels.row(i)
            hit = positive[order[chain]]
            n: IntArray = np.cumsum(hit) - hit
            q = np.arange(len(hit)) - n
            gains[chain] = ratio_gains(self._ratio(int(np.count_nonzero(positive))), hit, n, q)
        return gains


class Jaccard(OfRatio):
    r"""One minus intersection over union: (n + q) / (m + q), equations (42) and (43).

    n false negatives, q false positives, m positives. Submodular (Proposition 11) and increasing.
    With no positive in y the loss of anything predicted is 1.

    Examples
    --------
    >>> import setwise as sw
    >>> sw.losses.Jaccard()([1, 1, 0, 0], [1, 0, 1, 0])
    0.6666666666666666
    """

    def _ratio(self, m: int) -> Ratio:
        return Ratio(1.0, 1.0, 0.0, m)

    @property
    def is_submodular(self) -> bool:
        return True

    @property
    def is_increasing(self) -> bool:
        return True


class FBeta(OfRatio):
    r"""One minus the F-beta score: (b n + q) / ((1 + b) m - n + q), b = beta squared.

    Increasing, but neither submodular nor supermodular as soon as there are two positives and a
    negative: ``DecomposedHinge`` is made for it. For beta >= 1 its decomposition is closed and has
    a non-negative submodular part. With no positive in y the loss of anything predicted is 1.

    Parameters
    ----------
    beta : float
        Positive; recall counts beta times as much as precision.

    Examples
    --------
    >>> import setwise as sw
    >>> round(sw.losses.FBeta(2.0)([1, 1, 0, 0], [1, 0, 1, 0]), 3)
    0.5
    """

    beta: float

    def __init__(self, beta: float = 1.0) -> None:
        self._set(beta=as_number(beta, "beta", positive=True))

    def _ratio(self, m: int) -> Ratio:
        b = self.beta * self.beta
        return Ratio(b, 1.0 + b, 1.0, m)

    @property
    def is_submodular(self) -> bool:
        return False

    @property
    def is_increasing(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"FBeta(beta={self.beta:g})"


class Dice(FBeta):
    r"""One minus the Sørensen-Dice coefficient: (n + q) / (2 m - n + q) (B_D paper, (29)).

    The F-1 loss: increasing, neither submodular nor supermodular (Proposition 6).

    Examples
    --------
    >>> import setwise as sw
    >>> sw.losses.Dice()([1, 1, 0, 0], [1, 0, 1, 0])
    0.5
    """

    def __init__(self) -> None:
        super().__init__(1.0)

    def __repr__(self) -> str:
        return "Dice()"


class RatioPart(OfRatio):
    """The submodular or the supermodular part of an F-beta loss with beta >= 1, or of Jaccard."""

    whole: OfRatio
    index: int

    def __init__(self, whole: OfRatio, index: int) -> None:
        self._set(whole=whole, index=index)

    def _ratio(self, m: int) -> Ratio:
        parts = self.whole._ratio(m).parts()
        assert parts is not None
        return parts[self.index]

    def _values(self, labels: Labels, mistakes: BoolArray) -> FloatArray:
        return OfCounts._values(self, labels, mistakes)

    @property
    def is_submodular(self) -> bool | None:
        return True if self.index == 0 else None

    @property
    def is_increasing(self) -> bool | None:
        return True if self.index == 1 else None

    def __repr__(self) -> str:
        return f"the {('submodular', 'supermodular')[self.index]} part of {self.whole!r}"
