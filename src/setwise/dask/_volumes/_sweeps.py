r"""Sweeps over blocks whose labels depend on each other over long distances.

Let the open voxels lie in cells, with all others fixed. For an edge e = (u, v) of weight w between
two cells and any :math:`|\lambda_e| \le w_e`,
:math:`w_e [x_u \ne x_v] \ge \lambda_e (x_u - x_v)`. Therefore the sum of the least energies of the
cells, with :math:`\pm \lambda_e` added to the costs of their ends, is a lower bound:
:math:`\lambda` is a flow over the borders of the cells. A sweep cuts all cells, and changes
:math:`\lambda_e` by a supergradient step, as in Strandmark and Kahl, "Parallel and distributed
graph cuts by dual decomposition" (CVPR 2010). If the labels of all cells together have the energy
of the bound, they are the least minimiser: every minimiser is one of each cell, so the least ones
of the cells lie below it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import IntArray
from setwise.dask._volumes._label_store import OPEN, LabelStore
from setwise.dask._volumes._layout import Cell
from setwise.dask._volumes._tasks import OpenVoxels, gather_open, labels_of_open
from setwise.dask._volumes._volume_energy import VolumeEnergy

Run = Callable[[str, Sequence[Any], int, int, Callable[[Cell, Any], None]], None]


class Border(NamedTuple):
    """The edges between open voxels of a cell and of others, tails first."""

    edges: IntArray
    weights: IntArray


class SolvedCell(NamedTuple):
    """The least energy of a cell in units, and its labels at the ends of the given edges."""

    least: int
    labels: NDArray[np.uint8]
    n_open: int


def find_border(energy: VolumeEnergy, store: LabelStore, cell: Cell) -> Border:
    """Return the edges that lead from a cell to others."""
    part = gather_open(energy, store, cell)
    leaves = ~np.isin(part.edges[:, 1], part.numbers)
    return Border(part.edges[leaves], part.weights[leaves].astype(np.int64))


@dataclass(frozen=True, eq=False)
class SolveCell:
    """Cut the open voxels of a cell with changed costs, and write their labels if asked to."""

    ends: IntArray
    """numbers of voxels"""
    changes: IntArray
    """what is added to their costs, in units"""
    write: bool

    def __call__(self, energy: VolumeEnergy, store: LabelStore, cell: Cell) -> SolvedCell:
        part = gather_open(energy, store, cell)
        places = np.searchsorted(part.numbers, self.ends)
        costs = part.costs.astype(np.int64)
        np.add.at(costs, places, self.changes)
        own = np.isin(part.edges[:, 1], part.numbers)
        inner = OpenVoxels(part.numbers, costs, part.edges[own], part.weights[own])
        labels = labels_of_open([inner])
        tails, heads = np.searchsorted(part.numbers, inner.edges).T
        cut = inner.weights[labels[tails] != labels[heads]].astype(np.int64).sum()
        if self.write:
            states = store.read(cell.core)
            states[states == OPEN] = labels
            store.write(cell.core, states)
        return SolvedCell(int(costs[labels == 1].sum() + cut), labels[places], len(labels))


class Sweeps:
    """The search for a flow over the borders of cells."""

    def __init__(
        self, energy: VolumeEnergy, store: LabelStore, cells: Sequence[Cell], run: Run
    ) -> None:
        self._store, self._run, self._cells = store, run, cells
        self._unit = 2.0**-energy.units.exponent
        self._sides = energy.sides

    def solve(self, most: int) -> tuple[float, int, int]:
        """Write labels. Return their gap, and the numbers of open voxels and of sweeps."""
        borders: dict[int, Border] = {}
        every = range(len(self._cells))

        def keep(cell: Cell, border: Border) -> None:
            borders[cell.number] = border

        calls = [(find_border, self._cells[number]) for number in every]
        self._run("sweeps", calls, 0, len(calls), keep)
        edges = np.concatenate([borders[number].edges for number in every])
        weights = np.concatenate([borders[number].weights for number in every])
        owner = self._owners(edges)
        flow = np.zeros(len(edges), np.int64)
        best = flow
        bound: int | None = None
        for sweep in range(most + 1):
            energy, least, labels, _ = self._sweep(edges, weights, owner, flow, False)
            if bound is None or least > bound:
                bound, best = least, flow
            if energy == least or sweep == most:
                break
            step = labels[:, 0].astype(np.int64) - labels[:, 1]
            share = weights // (2 + sweep)
            flow = np.clip(flow + share * step, -weights, weights)
        self._store.find(unproved=True)
        energy, _, _, n_open = self._sweep(edges, weights, owner, best, True)
        return (energy - bound) * self._unit, n_open, sweep + 1

    def _owners(self, edges: IntArray) -> IntArray:
        """Return the cells of the ends of edges."""
        places = np.stack(np.unravel_index(edges, self._sides), axis=-1)
        owner = np.full(edges.shape, -1, np.int64)
        for cell in self._cells:
            inside = np.ones(edges.shape, np.bool_)
            for axis, part in enumerate(cell.core):
                inside &= (part.start <= places[..., axis]) & (places[..., axis] < part.stop)
            owner[inside] = cell.number
        return owner

    def _sweep(
        self, edges: IntArray, weights: IntArray, owner: IntArray, flow: IntArray, write: bool
    ) -> tuple[int, int, NDArray[np.uint8], int]:
        """Return the energy, the bound, the labels of the ends, and the number of open voxels."""
        signed = np.stack([flow, -flow], axis=1)
        places = {cell.number: np.nonzero(owner == cell.number) for cell in self._cells}
        calls = [
            (SolveCell(edges[places[cell.number]], signed[places[cell.number]], write), cell)
            for cell in self._cells
        ]
        labels = np.zeros(edges.shape, np.uint8)
        leasts: list[int] = []
        n_open: list[int] = []

        def keep(cell: Cell, found: SolvedCell) -> None:
            labels[places[cell.number]] = found.labels
            leasts.append(found.least)
            n_open.append(found.n_open)

        self._run("sweeps", calls, 0, len(calls), keep)
        least = sum(leasts)
        apart = labels[:, 0].astype(np.int64) - labels[:, 1]
        energy = least - int((flow * apart).sum()) + int((weights * np.abs(apart)).sum())
        return energy, least, labels, sum(n_open)
