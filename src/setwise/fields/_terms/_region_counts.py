"""Terms of the number of variables of a region with each label."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

import numpy as np
from numpy.typing import ArrayLike

from setwise import _core
from setwise._foundation._arguments import (
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    as_integers,
    as_numbers,
)
from setwise.fields._regions import as_regions, check_regions, members_of
from setwise.fields._terms._base import Numbers, Term, largest, rounding_of_heights


class RegionTerm(Term):
    """A sum over disjoint regions."""

    regions: IntArray

    @property
    def members(self) -> IntArray:
        """The variables that are in a region, (P,), region after region."""
        return self._members()[0]

    def _members(self) -> tuple[IntArray, IntArray]:
        return self._remember("members", lambda: members_of(self.regions))

    def _check(self, n_variables: int, n_labels: int) -> None:
        check_regions(self.regions, n_variables)


class CountTerm(RegionTerm):
    r"""Concave functions of the counts of each label in regions, :math:`\sum_{rj} h_r(n_{rj})`.

    :math:`n_{rj}` is the number of variables of region r with label j; every label of the field
    counts, including labels that no variable takes.

    Parameters
    ----------
    regions : array-like of int, shape (N,)
        The region of each variable, numbered 0..R-1, each with a variable; -1 for none.
    starts : array-like of int, shape (R + 1,)
        The values h_r(0), h_r(1), ... are ``table[starts[r] : starts[r + 1]]``.
    table : array-like
        For each region one value more than its number of variables; concave in each region.

    Examples
    --------
    Two regions of two variables and of one, the first with h(n) = min(n, 1):

    >>> import setwise as sw
    >>> term = sw.fields.CountTerm([0, 1, 0], [0, 3, 5], [0.0, 1.0, 1.0, 0.0, 2.0])
    >>> term.is_submodular
    True
    """

    __match_args__ = ("regions", "starts", "table")

    starts: IntArray
    table: FloatArray

    def __init__(self, regions: ArrayLike, starts: ArrayLike, table: ArrayLike) -> None:
        numbers, sizes = _numbered(regions)
        heights = as_numbers(table, "table")
        ends = as_integers(starts, "starts", below=len(heights) + 1)
        wanted = np.concatenate([[0], np.cumsum(sizes + 1)])
        if not np.array_equal(ends, wanted):
            raise ValueError(
                "starts must leave each region one value more than it has variables: "
                f"{_few(wanted)}, got {_few(ends)}"
            )
        if len(heights) != wanted[-1]:
            raise ValueError(f"table must have {wanted[-1]} entries, got {len(heights)}")
        for r, heights_of in enumerate(np.split(heights, wanted[1:-1]) if len(sizes) else []):
            if (np.diff(heights_of, 2) > rounding_of_heights(heights_of)).any():
                raise ValueError(f"table must be concave in each region, got a bend in region {r}")
        self._set(regions=numbers, starts=wanted, table=heights)

    @property
    def is_submodular(self) -> bool:
        return True

    def _energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        energies = np.empty(len(labels))
        none = self.table[self.starts[:-1]]  # the kernel skips labels that no variable takes
        table = self.table - np.repeat(none, np.diff(self.starts))
        members, offsets = self._members()
        _core.count_energies(labels, n_labels, members, offsets, table, energies)
        return np.asarray(energies + n_labels * none.sum())

    def _least(self, n_variables: int, n_labels: int) -> float:
        # A sum of concave functions over a simplex is least at a corner: a single label.
        first, last = self.table[self.starts[:-1]], self.table[self.starts[1:] - 1]
        return float((last + (n_labels - 1) * first).sum())

    def _most(self, n_labels: int) -> float:
        return n_labels * float(np.maximum.reduceat(np.abs(self.table), self.starts[:-1]).sum())

    def _magnitude(self, by_cut: bool) -> float:
        return largest(self.table)

    def _reduced(self, n_variables: int, n_labels: int) -> tuple[Term, float]:
        none = self.table[self.starts[:-1]]
        if not none.any():
            return self, 0.0
        table = self.table - np.repeat(none, np.diff(self.starts))
        return CountTerm._of(self.regions, self.starts, table), n_labels * fsum(none)

    def _limited(self, limit: float) -> Term:
        # A region with a single label has the least energy. The next is a region in which one
        # variable has another label.
        first, last = self.starts[:-1], self.starts[1:] - 1
        ends = self.table[first] + self.table[last]
        cost = self.table[first + 1] + self.table[last - 1] - ends
        share = np.minimum(1.0, 2.0 * limit / np.maximum(cost, np.finfo(np.float64).tiny))
        if (share == 1.0).all():
            return self
        _, region, count = list_counts(last - first)
        slope = (self.table[last] - self.table[first]) / (last - first)
        line = self.table[first][region] + slope[region] * count
        table = np.where(share < 1.0, share, 0.0)[region] * (self.table - line) + line
        table = np.where(share[region] < 1.0, table, self.table)
        return CountTerm._of(self.regions, self.starts, table)

    def _n_summands(self, n_variables: int) -> int:
        return len(self.table)

    def _numbers(self, n_labels: int) -> Numbers:
        # Several labels of a region may have the same count.
        return np.tile(self.table, n_labels)[:, None], 1


class RobustTerm(RegionTerm):
    r"""A price for the variables outside a region's most common label, constant above Q of them.

    .. math:: \sum_r w_r \min\Bigl(1, \min_j \frac{s_r - n_{rj}}{Q_r}\Bigr)

    Inference treats it as a CountTerm if it equals one. It does if the truncation Q is at most half
    of a region's size s (rounded up). It also does if at most this half can be outside the most
    common label, which is always so for two labels.

    Parameters
    ----------
    regions : array-like of int, shape (N,)
        The region of each variable, numbered 0..R-1, each with a variable; -1 for none.
    weights : array-like of shape (R,)
        Not negative.
    truncation : array-like of shape (R,)
        Positive.

    Examples
    --------
    >>> import setwise as sw
    >>> sw.fields.RobustTerm([0, 0, 0, 0], [2.0], [3.0]).is_submodular
    False
    """

    __match_args__ = ("regions", "weights", "truncation")

    weights: FloatArray
    truncation: FloatArray

    def __init__(self, regions: ArrayLike, weights: ArrayLike, truncation: ArrayLike) -> None:
        numbers, sizes = _numbered(regions)
        shape = (len(sizes),)
        prices = as_numbers(weights, "weights", shape=shape, nonnegative=True)
        limits = as_numbers(truncation, "truncation", shape=shape, nonnegative=True)
        if not limits.all():
            raise ValueError("truncation must be positive, got 0")
        self._set(regions=numbers, weights=prices, truncation=limits)

    @property
    def is_submodular(self) -> bool:
        return bool(self._separable(int(self._sizes.max(initial=1))).all())

    @property
    def _sizes(self) -> IntArray:
        """The number of variables in each region, (R,)."""
        return self._remember("sizes", lambda: _sizes_of(self.regions))

    def _separable(self, n_labels: int) -> BoolArray:
        """Return for each region whether its price is a sum over labels, (R,).

        This requires that the price be constant if no label has more than half of the region. The
        more labels there are, the fewer regions fulfil this.
        """
        half = -(-self._sizes // 2)
        most_outside = self._sizes - -(-self._sizes // n_labels)
        limited = (self.truncation <= half) | (most_outside <= half)
        return np.asarray(limited | (self.weights == 0))

    def _split(self, n_variables: int, n_labels: int) -> Sequence[Term]:
        easy = self._separable(n_labels)
        if easy.all():
            return (self._remember("counts", self._as_counts),)
        if not easy.any():
            return (self,)
        return self._part(easy)._as_counts(), self._part(~easy)

    def _part(self, chosen: BoolArray) -> RobustTerm:
        """Return the term of some of the regions."""
        kept = (self.regions >= 0) & chosen[self.regions]
        regions = as_regions(np.where(kept, self.regions, -1))
        return RobustTerm._of(regions, self.weights[chosen], self.truncation[chosen])

    def _as_counts(self) -> CountTerm:
        """Return functions h with h(0) = 0 whose sum over the labels is the price, if separable.

        Let p(k) be the price of k variables outside the most common label, s the size and m =
        p(s/2). Then h(n) = m n / s up to half of the region, and h(n) = p(s - n) - m (s - n) / s
        beyond. If a label has more than half of the region, its h is the price minus the sum of the
        others. Otherwise the sum over all labels is m.
        """
        starts, region, count = list_counts(self._sizes)
        size, outside = self._sizes[region], self._sizes[region] - count
        weight, limit = self.weights[region], self.truncation[region]
        most = weight * np.minimum(1.0, -(-size // 2) / limit)
        price = weight * np.minimum(1.0, outside / limit)
        table = np.where(2 * count <= size, most * count / size, price - most * outside / size)
        return CountTerm._of(self.regions, starts, np.asarray(table))

    def _energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        energies = np.empty(len(labels))
        members, offsets = self._members()
        _core.robust_energies(
            labels, n_labels, members, offsets, self.weights, self.truncation, energies
        )
        return energies

    def _least(self, n_variables: int, n_labels: int) -> float:
        return 0.0

    def _most(self, n_labels: int) -> float:
        return float(self.weights.sum())

    def _magnitude(self, by_cut: bool) -> float:
        return largest(self.weights)

    def _limited(self, limit: float) -> Term:
        # Then one variable outside the most common label costs 2 * limit.
        most = 2.0 * limit * np.maximum(self.truncation, 1.0)
        if (self.weights <= most).all():
            return self
        return RobustTerm._of(self.regions, np.minimum(self.weights, most), self.truncation)

    def _numbers(self, n_labels: int) -> Numbers | None:
        # A truncation below one variable acts like one variable.
        limits = np.maximum(self.truncation, 1.0)
        # Division by other numbers than powers of two is rounded.
        if (np.frexp(limits)[0] != 0.5).any():
            return None
        return np.stack([self.weights, self.weights / limits], axis=1), 1

    def _has_fractions(self, n_labels: int) -> bool:
        return True  # the share of a label in the price is rounded


def list_counts(sizes: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """List each count 0..size of each region: starts (R + 1,), region and count of entries."""
    starts = np.concatenate([[0], np.cumsum(sizes + 1)])
    region = np.repeat(np.arange(len(sizes)), sizes + 1)
    return starts, region, np.arange(starts[-1]) - starts[region]


def _numbered(regions: ArrayLike) -> tuple[IntArray, IntArray]:
    """Check regions (N,) that are numbered 0..R-1, and return them with their sizes (R,)."""
    numbers = as_regions(regions)
    if not np.array_equal(numbers, as_array(regions, "regions")):
        raise ValueError("regions must be numbered 0..R-1, each with a variable, got a gap")
    return numbers, _sizes_of(numbers)


def _sizes_of(regions: IntArray) -> IntArray:
    return np.bincount(regions[regions >= 0]).astype(np.int64)


def _few(numbers: IntArray) -> str:
    return str(numbers.tolist()) if numbers.size <= 8 else f"{numbers.size} numbers"
