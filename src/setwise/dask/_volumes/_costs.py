"""The cost of label 1 minus that of label 0, from what a volume holds for each voxel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import LARGEST, BoolArray, FloatArray
from setwise.dask._volumes._sources import Source
from setwise.images._mixture import mixture_densities

KINDS = ("unary", "probabilities", "image")
# Probabilities are kept this far from 0 and 1, as those of a network are in
# ``images.field_from_image``.
_SUREST = 1e-6
# The number of cells into which the range of a grey image is divided, and the share of the uniform
# density that is added to a label's: those of ``images.field_from_image``.
CELLS, _FLOOR = 256, 0.3


class CostSums(NamedTuple):
    """Sums over some voxels."""

    paid: float
    """the costs of the voxels with label 1"""
    least: float
    """the negative costs"""
    lost: float
    """the amount by which rounding has lowered the costs of these labels above the least costs"""


class Units(NamedTuple):
    """The conversion of numbers to whole units: multiplication by 2**exponent, rounding down."""

    exponent: int
    bits: int

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.int32 if self.bits == 32 else np.int64)

    @property
    def limit(self) -> int:
        """The size of a cost that decides a label: more than all edges of a voxel."""
        return 1 << (30 if self.bits == 32 else 37)

    def of(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return numbers in units, at most ``limit`` in size."""
        with np.errstate(over="ignore"):
            scaled = np.ldexp(numbers, np.int32(self.exponent))
        return np.asarray(np.clip(scaled, -self.limit, self.limit).astype(self.dtype))

    def lost(self, numbers: FloatArray) -> float:
        """Return the sum of the dropped digits of numbers below the limit."""
        small = numbers[np.abs(numbers) <= np.ldexp(float(self.limit), -self.exponent)]
        units = np.ldexp(np.trunc(np.ldexp(small, self.exponent)), -self.exponent)
        return float(np.abs(small - units).sum())


@dataclass(frozen=True, eq=False)
class Costs:
    """The costs of voxels by their values.

    Values with few possible codes have a table: integers of up to 16 bits, and images, whose range
    is divided into cells.
    """

    source: Source
    kind: str
    table: FloatArray | None = None
    low: float = 0.0
    step: float | None = None
    """the number of cells per unit of an image; None for codes that are integers from ``low`` on"""

    def codes(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the rows of the table."""
        if values.dtype.kind == "b":
            return values.view(np.uint8)
        if self.step is None:
            return values if self.low == 0 else values - np.int32(self.low)
        self.check(values)
        return cells_of(values, self.low, self.step)

    def exact(self, values: NDArray[Any]) -> FloatArray:
        """Return the costs."""
        if self.table is not None:
            return np.asarray(self.table[self.codes(values)])
        self.check(values)
        if self.kind == "unary":
            return values.astype(np.float64)
        likely = np.clip(values.astype(np.float64), _SUREST, 1 - _SUREST)
        return np.asarray(np.log1p(-likely) - np.log(likely))

    def in_units(self, values: NDArray[Any], units: Units) -> NDArray[Any]:
        """Return the costs in whole units."""
        if self.table is not None:
            return np.asarray(units.of(self.table)[self.codes(values)])
        if self.kind == "unary" and values.dtype.itemsize <= 4 and values.dtype.kind == "f":
            self.check(values)
            return units.of(values.astype(np.float32, copy=False))
        return units.of(self.exact(values))

    def sums(self, values: NDArray[Any], ones: BoolArray, units: Units) -> CostSums:
        """Return the sums over voxels with labels; infinite costs count 0."""
        if self.table is not None:
            n = len(self.table)
            codes = self.codes(values).astype(np.int64)
            counts = np.bincount((codes + n * ones).ravel(), minlength=2 * n).reshape(2, n)
            costs, number = np.tile(self.table, 2), counts.ravel().astype(np.float64)
            labels = np.repeat([False, True], n)
            costs, labels, number = costs[number > 0], labels[number > 0], number[number > 0]
        else:
            costs, labels = self.exact(values).ravel(), ones.ravel()
            number = np.ones(1)
        number = np.where(np.isfinite(costs), number, 0.0)
        costs = np.where(np.isfinite(costs), costs, 0.0)
        pays = labels == (costs > 0)
        beyond = np.abs(costs) > np.ldexp(float(units.limit), -units.exponent)
        whole = np.ldexp(np.trunc(np.ldexp(costs, units.exponent)), -units.exponent)
        lost = np.where(pays & ~beyond, np.abs(costs - whole), 0.0)
        return CostSums(
            float((costs * number)[labels].sum()),
            float((costs.clip(max=0.0) * number).sum()),
            float((lost * number).sum()),
        )

    def check(self, values: NDArray[Any]) -> None:
        """Raise an error for values that are not costs, probabilities or grey values."""
        if values.dtype.kind != "f":
            return
        low, high = values.min(), values.max()  # NaN if there is one
        if self.kind == "probabilities":
            if not (low >= 0 and high <= 1):
                raise ValueError(
                    f"{self.source.name} must hold probabilities, got numbers from {low} to {high}"
                )
        elif self.kind == "image":
            if not (np.isfinite(low) and np.isfinite(high)):
                raise ValueError(f"{self.source.name} must be finite, got {low} to {high}")
        elif np.isnan(low):
            raise ValueError(f"{self.source.name} must hold numbers, got nan")
        else:
            for end in (float(low), float(high)):
                if np.isfinite(end) and abs(end) > LARGEST:
                    raise ValueError(
                        f"{self.source.name} must be infinite or at most {LARGEST:g} in size, "
                        f"got {end:g}"
                    )


def make_costs(source: Source, kind: str) -> Costs:
    """Return the costs of unaries or probabilities."""
    dtype = source.dtype
    if dtype.kind == "b" or (dtype.kind in "iu" and dtype.itemsize <= 2):
        first, last = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        numbers = np.arange(first, last + 1, dtype=np.float64)
        if kind == "probabilities":
            likely = np.clip(numbers / last, _SUREST, 1 - _SUREST)
            numbers = np.log1p(-likely) - np.log(likely)
        return Costs(source, kind, numbers, float(first))
    if kind == "probabilities" and dtype.kind != "f":
        raise TypeError(
            f"{source.name} must hold floats or integers of up to 16 bits where they are "
            f"probabilities, got dtype {dtype}"
        )
    return Costs(source, kind)


def cells_of(values: NDArray[Any], low: float, step: float) -> NDArray[np.uint8]:
    """Return the cells of grey values."""
    places = (values.astype(np.float32) - np.float32(low)) * np.float32(step)
    return np.asarray(np.clip(places, 0, CELLS - 1).astype(np.uint8))


def color_costs(source: Source, low: float, high: float, drawn: FloatArray) -> Costs:
    """Return the costs of grey values by the counts (2, CELLS) of those under the seeds.

    The density of a label is a mixture of five Gaussians, as in ``images.field_from_image``.
    """
    step = CELLS / (high - low) if high > low else 0.0
    colors = ((np.arange(CELLS) + 0.5) / CELLS)[:, None]
    width = 12**-0.5 / CELLS
    zero, one = (-np.log(mixture_densities(colors, row, width) + _FLOOR) for row in drawn)
    return Costs(source, "image", one - zero, low, step)
