"""The energy of a volume in whole units, of which blocks are read."""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.dask._volumes._costs import Costs, CostSums, Units
from setwise.dask._volumes._sources import Source
from setwise.fields._pixels._grid import Offset, pair_slices
from setwise.inference._editing._sliceable import Window, grown, shape_of, within

# Layers along the first axis that are converted at once: temporary arrays stay in the cache.
_LAYERS = 4


class EnergyBlock(NamedTuple):
    """The energy of a window, and of its edges to the voxels around it."""

    padded: Window
    """the window with its margin"""
    costs: NDArray[Any]
    """of the padded window in units, 0 in the margin"""
    weights: NDArray[Any]
    """(K, *padded) in units, for the first voxel of each edge"""


@dataclass(frozen=True, eq=False)
class Pairs:
    r"""The weights :math:`s_k \exp(-\beta (I_p - I_{p + k})^2)` of edges; without an image s_k."""

    steps: tuple[Offset, ...]
    strengths: FloatArray
    image: Source | None = None
    beta: float = 0.0

    @property
    def margin(self) -> tuple[int, ...]:
        """The largest distance of two neighbours along each axis."""
        return tuple(int(far) for far in np.abs(np.array(self.steps)).max(axis=0))

    def falls(self, changes: NDArray[Any]) -> FloatArray:
        """Return the exponential of changes of the image."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(-self.beta * np.square(changes.astype(np.float64))))

    def in_units(self, image: NDArray[Any] | None, shape: tuple[int, ...], units: Units) -> Any:
        """Return the weights (K, *shape) in units, from the image of a window of this shape."""
        whole = (len(self.steps), *shape)
        if image is None:
            return np.broadcast_to(units.of(self.strengths).reshape(-1, *(1 for _ in shape)), whole)
        weights = np.zeros(whole, units.dtype)
        changes = _changes_of(image)
        table = None
        if changes.few is not None:
            falls = self.falls(np.arange(changes.few))
            table = [units.of(strength * falls) for strength in self.strengths]
        for k, step in enumerate(self.steps):
            first, second = pair_slices(shape, step)
            ahead, behind, row = image[second], image[first], weights[k][first]
            for begin in range(0, len(row), _LAYERS):
                part = slice(begin, begin + _LAYERS)
                change = changes(ahead[part], behind[part])
                if table is not None:
                    row[part] = table[k][change]
                else:
                    row[part] = units.of(self.strengths[k] * self.falls(change))
        return weights


class _Changes(NamedTuple):
    """The sizes of changes of an image; ``few`` of them are possible, or any number (None)."""

    kind: np.dtype[Any]
    few: int | None

    def __call__(self, ahead: NDArray[Any], behind: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.abs(np.subtract(ahead, behind, dtype=self.kind)))


def _changes_of(image: NDArray[Any]) -> _Changes:
    if image.dtype.kind in "iu" and image.dtype.itemsize <= 2:
        return _Changes(np.dtype(np.int32), 1 << (8 * image.dtype.itemsize))
    return _Changes(np.dtype(np.float64), None)


def squares_of_changes(image: NDArray[Any], inner: Window, steps: tuple[Offset, ...]) -> float:
    """Return the sum of the squared changes over the edges whose first voxels lie in a window."""
    total = 0.0
    changes = _changes_of(image)
    mine = np.zeros(image.shape, np.bool_)
    mine[inner] = True
    for step in steps:
        first, second = pair_slices(image.shape, step)
        ahead, behind, own = image[second], image[first], mine[first]
        for begin in range(0, len(own), _LAYERS):
            part = slice(begin, begin + _LAYERS)
            change = changes(ahead[part], behind[part])[own[part]]
            if changes.few is not None:  # exact, as an integer
                total += float(np.square(change.astype(np.int64)).sum())
            else:
                total += float(np.square(change).sum())
    return total


@dataclass(frozen=True, eq=False)
class VolumeEnergy:
    r"""The energy :math:`\sum_p u_p x_p + \sum_{kp} w_{kp} [x_p \ne x_{p + k}]` of a volume."""

    costs: Costs
    pairs: Pairs
    seeds: Source | None
    units: Units

    @property
    def sides(self) -> tuple[int, ...]:
        return self.costs.source.shape

    @property
    def steps(self) -> IntArray:
        return np.array(self.pairs.steps, np.int64)

    def padded(self, window: Window) -> Window:
        """Return a window with the voxels that share an edge with it."""
        return grown(window, self.pairs.margin, self.sides)

    def block(self, window: Window) -> EnergyBlock:
        """Return the energy of a window in units."""
        padded = self.padded(window)
        inner = within(window, padded)
        values, image = self._values(window, padded)
        costs = np.zeros(shape_of(padded), self.units.dtype)
        target = costs[inner]
        for begin in range(0, len(target), _LAYERS):
            part = slice(begin, begin + _LAYERS)
            target[part] = self.costs.in_units(values[part], self.units)
        if (seeds := self._seeds(window)) is not None:
            marked = seeds >= 0
            target[marked] = self.units.limit * (1 - 2 * seeds[marked].astype(self.units.dtype))
        weights = self.pairs.in_units(image, shape_of(padded), self.units)
        return EnergyBlock(padded, costs, weights)

    def _values(self, window: Window, padded: Window) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return the values of a window, and the image of the padded one."""
        if self.pairs.image is None:
            return self.costs.source.read(window), None
        image = self.pairs.image.read(padded)
        if image.dtype.kind == "f" and not np.isfinite(image).all():
            name = self.pairs.image.name
            raise ValueError(f"{name} must be finite, got {image[~np.isfinite(image)][0]}")
        if self.pairs.image is self.costs.source:
            return np.ascontiguousarray(image[within(window, padded)]), image
        return self.costs.source.read(window), image

    def _seeds(self, window: Window) -> NDArray[Any] | None:
        if self.seeds is None:
            return None
        seeds = self.seeds.read(window)
        low, high = seeds.min(), seeds.max()
        if low < -1 or high > 1:
            raise ValueError(
                f"seeds must hold 0, 1, or -1 where nothing is marked, got "
                f"{low if low < -1 else high}"
            )
        return seeds if high >= 0 else None

    def sums(self, window: Window, labels: NDArray[np.uint8]) -> tuple[CostSums, float, float]:
        """Return sums over the voxels of a window, and over the edges that begin in it.

        ``labels`` are those of the padded window. Of the edges, return the weights that are cut and
        what rounding has taken from them.
        """
        padded = self.padded(window)
        inner = within(window, padded)
        values, image = self._values(window, padded)
        ones = labels[inner] == 1
        if (seeds := self._seeds(window)) is not None:
            free = seeds < 0
            values, ones = values[free], ones[free]
        paid = least = lost = 0.0
        for begin in range(0, len(ones), _LAYERS if ones.ndim > 1 else 1 << 20):
            part = slice(begin, begin + (_LAYERS if ones.ndim > 1 else 1 << 20))
            found = self.costs.sums(values[part], ones[part], self.units)
            paid, least, lost = paid + found.paid, least + found.least, lost + found.lost
        cut = lost_weights = 0.0
        mine = np.zeros(labels.shape, np.bool_)
        mine[inner] = True
        for k, step in enumerate(self.pairs.steps):
            first, second = pair_slices(labels.shape, step)
            apart = (labels[first] != labels[second]) & mine[first]
            n = int(np.count_nonzero(apart))
            if not n:
                continue
            weights = np.full(n, self.pairs.strengths[k])
            if image is not None:
                changes = _changes_of(image)(image[second][apart], image[first][apart])
                weights *= self.pairs.falls(changes)
            cut += float(weights.sum())
            lost_weights += self.units.lost(weights)
        return CostSums(paid, least, lost), cut, lost_weights


def units_for(strengths: FloatArray, bits: int) -> Units:
    """Return the units of a volume whose weights are at most ``strengths``, one per direction.

    The weights of a voxel's edges add up to 2**28 units or more, and less than 2**29, so that all
    numbers of a flow stay below 2**31; with 64 bits to 2**35 or more, so that ``EditableCut`` can
    go on in the same units.
    """
    _, exponent = frexp(2 * float(strengths.sum()) or 1.0)
    return Units((29 if bits == 32 else 36) - exponent, bits)
