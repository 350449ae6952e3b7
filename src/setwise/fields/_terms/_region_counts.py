"""Terms of the number of variables of a region with each label."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise import _core
from setwise._foundation._arguments import (
    FloatArray,
    IntArray,
    as_array,
    as_integers,
    as_numbers,
)
from setwise.fields._regions import as_regions, check_regions, members_of
from setwise.fields._terms._base import Term, largest, rounding_of_heights


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

    def _price(self, by_cut: bool) -> float:
        return largest(self.table)

    def _n_summands(self, n_variables: int) -> int:
        return len(self.table)

    def _numbers(self, n_labels: int) -> FloatArray:
        return np.tile(self.table, n_labels)[:, None]  # several labels may have the same count


class RobustTerm(RegionTerm):
    r"""A price for variables outside a region's most common label, if it is no ``CountTerm``.

    .. math:: \sum_r w_r \min\Bigl(1, \min_j \frac{s_r - n_{rj}}{Q_r}\Bigr)

    This is the case for more than two labels, a truncation Q above half of a region's size s
    (rounded up), and enough labels to leave more than that half outside the most common one.

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
        return False

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

    def _price(self, by_cut: bool) -> float:
        return largest(self.weights)

    def _numbers(self, n_labels: int) -> FloatArray | None:
        return robust_numbers(self.weights, self.truncation)


def robust_numbers(weights: FloatArray, truncation: FloatArray) -> FloatArray | None:
    """Return numbers (R, 2) that robust prices are multiples of; None if shares are rounded."""
    limits = np.maximum(truncation, 1.0)  # at least one variable
    if (np.frexp(limits)[0] != 0.5).any():  # not powers of two
        return None
    return np.stack([weights, weights / limits], axis=1)


def _numbered(regions: ArrayLike) -> tuple[IntArray, IntArray]:
    """Check regions (N,) that are numbered 0..R-1, and return them with their sizes (R,)."""
    numbers = as_regions(regions)
    if not np.array_equal(numbers, as_array(regions, "regions")):
        raise ValueError("regions must be numbered 0..R-1, each with a variable, got a gap")
    return numbers, np.bincount(numbers[numbers >= 0]).astype(np.int64)


def _few(numbers: IntArray) -> str:
    return str(numbers.tolist()) if numbers.size <= 8 else f"{numbers.size} numbers"
