"""An ``EditableCut`` over the energy of a volume in its units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.dask._volumes._volume_energy import VolumeEnergy
from setwise.inference._editing._editable_cut import EditableCut
from setwise.inference._editing._grid_energy import GridEnergy
from setwise.inference._editing._sliceable import within


class _CostView:
    """The costs of a volume as an array of floats that is computed where it is read."""

    dtype = np.dtype(np.float64)

    def __init__(self, energy: VolumeEnergy) -> None:
        self._energy, self.shape = energy, energy.sides

    def __getitem__(self, window: Any) -> NDArray[np.float64]:
        block = self._energy.block(window)
        costs = block.costs[within(window, block.padded)].astype(np.float64)
        return np.ldexp(costs, -self._energy.units.exponent)


class _WeightView:
    """The weights (K, *sides) of a volume as an array that is computed where it is read."""

    dtype = np.dtype(np.float64)

    def __init__(self, energy: VolumeEnergy) -> None:
        self._energy, self.shape = energy, (len(energy.pairs.steps), *energy.sides)

    def __getitem__(self, key: Any) -> NDArray[np.float64]:
        directions, *window = key
        block = self._energy.block(tuple(window))
        inner = within(tuple(window), block.padded)
        weights = block.weights[(directions, *inner)].astype(np.float64)
        return np.ldexp(weights, -self._energy.units.exponent)


def editable(energy: VolumeEnergy, labels: Any, n_jobs: int | None) -> EditableCut:
    """Return proved labels as an ``EditableCut``."""
    weights = _WeightView(energy)
    grid = GridEnergy(
        _CostView(energy),
        weights,
        weights,
        list(energy.pairs.steps),
        energy.units.exponent,
        energy.units.limit,
    )
    return EditableCut._of(grid, labels, n_jobs)
