"""Regions: sets of variables that do not overlap, as one layer of a potential takes them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, IntArray, as_array, as_numbers
from setwise.fields._base import Potential
from setwise.fields._terms import CountTerm


class RegionPotential(Potential):
    """A potential that is a sum over the regions of one layer."""

    regions: IntArray
    """(N,): the region of each variable, numbered 0..R-1 in the order of the given numbers."""
    sizes: IntArray
    """(R,): the number of variables in each region."""
    weight: FloatArray
    """(R,)"""

    def _set_regions(self, regions: ArrayLike, weight: ArrayLike) -> None:
        compact = as_regions(regions)
        sizes = np.bincount(compact[compact >= 0]).astype(np.int64)
        self._set(regions=compact, sizes=sizes)
        self._set(weight=self._one_each(weight, "weight"))

    def _one_each(self, values: ArrayLike, name: str) -> FloatArray:
        """A number for each region, not negative."""
        shape: tuple[int, ...] = () if as_array(values, name).ndim == 0 else (self.n_regions,)
        numbers = as_numbers(values, name, shape=shape, nonnegative=True, largest=np.inf)
        return np.array(np.broadcast_to(numbers, self.n_regions))

    @property
    def n_regions(self) -> int:
        """R."""
        return len(self.sizes)

    def _check(self, n_variables: int, n_labels: int) -> None:
        if len(self.regions) != n_variables:
            raise ValueError(
                f"regions must have an entry for each of the field's {n_variables} variables, "
                f"got {len(self.regions)}"
            )

    def _members(self) -> tuple[IntArray, IntArray]:
        """The variables sorted by region, and where each region begins and ends, (R + 1,)."""

        def sort() -> tuple[IntArray, IntArray]:
            order = np.argsort(self.regions, kind="stable")
            outside = len(self.regions) - int(self.sizes.sum())
            return order[outside:], np.concatenate([[0], np.cumsum(self.sizes)])

        return self._remember("members", sort)

    def _counts(self) -> tuple[IntArray, IntArray, IntArray]:
        """Each count 0..size of each region: starts (R + 1,), region and count of each entry."""
        starts = np.concatenate([[0], np.cumsum(self.sizes + 1)])
        region = np.repeat(np.arange(self.n_regions), self.sizes + 1)
        return starts, region, np.arange(starts[-1]) - starts[region]

    def _count_term(self, table: FloatArray) -> CountTerm:
        return CountTerm(self.regions, self._counts()[0], table)


def as_regions(regions: ArrayLike) -> IntArray:
    """Regions (N,), renumbered 0..R-1 in the order of their numbers, -1 for none."""
    array = as_array(regions, "regions")
    if array.ndim != 1:
        raise ValueError(f"regions must have shape (N,), got {array.shape}")
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"regions must hold integers, got dtype {array.dtype}")
    if array.min() < -1:
        raise ValueError(f"regions must hold numbers from 0 on, or -1 for none, got {array.min()}")
    numbers, compact = np.unique(array, return_inverse=True)
    none = int(numbers[0] == -1) if array.dtype.kind == "i" else 0
    return compact.astype(np.int64) - none
