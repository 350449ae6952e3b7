"""Potentials that are a sum over the regions of one layer."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, IntArray, as_array, as_numbers
from setwise.fields._base import Potential
from setwise.fields._regions import as_regions, check_regions


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
