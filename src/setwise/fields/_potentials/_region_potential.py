"""Potentials that are a sum over the regions of one layer."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, IntArray, as_array, as_numbers
from setwise._foundation._certificate import EPS
from setwise.fields._base import Potential
from setwise.fields._regions import as_regions, check_regions, members_of
from setwise.fields._terms._region_counts import CountTerm


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
        """Read a nonnegative number per region; a single number is repeated."""
        shape: tuple[int, ...] = () if as_array(values, name).ndim == 0 else (self.n_regions,)
        numbers = as_numbers(values, name, shape=shape, nonnegative=True, largest=np.inf)
        return np.array(np.broadcast_to(numbers, self.n_regions))

    @property
    def n_regions(self) -> int:
        """The number R of regions."""
        return len(self.sizes)

    def check(self, n_variables: int, n_labels: int) -> None:
        check_regions(self.regions, n_variables)

    def _largest_price(self, by_cut: bool) -> float:
        return float(self.weight.max(initial=0.0))

    def _weight_within(self, limit: float, least: FloatArray) -> FloatArray:
        """Return weights, reduced so that ``least`` times each is at most the limit."""
        high = 2.0 * limit / np.maximum(least, EPS)
        return np.where(self.weight * least > 2.0 * limit, high, self.weight)

    def _members(self) -> tuple[IntArray, IntArray]:
        """Return the variables sorted by region, and where the regions begin and end, (R + 1,)."""
        return self._remember("members", lambda: members_of(self.regions))

    def _counts(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return all counts 0..size of each region: starts (R + 1,), region and count."""
        starts = np.concatenate([[0], np.cumsum(self.sizes + 1)])
        region = np.repeat(np.arange(self.n_regions), self.sizes + 1)
        return starts, region, np.arange(starts[-1]) - starts[region]

    def _count_term(self, table: FloatArray) -> CountTerm:
        return CountTerm._of(self.regions, self._counts()[0], table)
