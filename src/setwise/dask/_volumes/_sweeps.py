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
from setwise.dask._volumes._label_store import OPEN, PROPOSED, LabelStore
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
    total: int
    """the energy of label 1 everywhere"""
    labels: NDArray[np.uint8]
    n_open: int


def find_border(energy: VolumeEnergy, store: LabelStore, cell: Cell) -> Border:
    """Return the edges that lead from a cell to others."""
    part = gather_open(energy, store, cell)
    leaves = ~np.isin(part.edges[:, 1], part.numbers)
    return Border(part.edges[leaves], part.weights[leaves].astype(np.int64))


@dataclass(frozen=True, eq=False)
class SolveCell:
    """Cut the open voxels of a cell with changed costs, and propose their labels if asked to."""

    ends: IntArray
    """numbers of voxels"""
    changes: IntArray
    """the change of their costs, in units"""
    propose: bool
    label: int | None
    """the label of all voxels, instead of the best ones"""

    def __call__(self, energy: VolumeEnergy, store: LabelStore, cell: Cell) -> SolvedCell:
        part = gather_open(energy, store, cell)
        places = np.searchsorted(part.numbers, self.ends)
        costs = part.costs.astype(np.int64)
        np.add.at(costs, places, self.changes)
        own = np.isin(part.edges[:, 1], part.numbers)
        inner = OpenVoxels(part.numbers, costs, part.edges[own], part.weights[own])
        labels = labels_of_open([inner])
        if self.label is not None:
            labels[...] = self.label
        tails, heads = np.searchsorted(part.numbers, inner.edges).T
        cut = inner.weights[labels[tails] != labels[heads]].astype(np.int64).sum()
        if self.propose:
            states = store.read(cell.core)
            states[states == OPEN] = PROPOSED + labels
            store.write(cell.core, states)
        least, total = int(costs[labels == 1].sum() + cut), int(costs.sum())
        return SolvedCell(least, total, labels[places], len(labels))


def settle(energy: VolumeEnergy, store: LabelStore, cell: Cell) -> tuple[int]:
    """Make proposed labels of a cell its labels, and return their number."""
    states = store.read(cell.core, proposed=True)
    chosen = states >= PROPOSED
    states[chosen] -= PROPOSED
    if chosen.any():
        store.write(cell.core, states)
    return (int(np.count_nonzero(chosen)),)


class Sweeps:
    """The search for a flow over the borders of cells."""

    def __init__(
        self, energy: VolumeEnergy, store: LabelStore, cells: Sequence[Cell], run: Run
    ) -> None:
        self._store, self._run, self._cells = store, run, cells
        self._unit = 2.0**-energy.units.exponent
        self._sides = energy.sides

    def solve(self, most: int) -> tuple[float, int, int]:
        """Propose labels. Return their gap, and the numbers of open voxels and of sweeps."""
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
        value, least, labels, total = self._sweep(edges, weights, owner, flow)
        # The proposals: the labels of the cells for a flow, or one label everywhere.
        best: IntArray | int = flow
        for label, energy in enumerate((0, total)):
            if energy < value:
                value, best = energy, label
        bound, share, sweep = least, 1.0, 0
        while value > bound and sweep < most:
            apart = labels[:, 0].astype(np.int64) - labels[:, 1]
            # Polyak's step, with the energy of the best labels in place of the maximum. That is too
            # high, so the step is halved whenever the bound does not rise.
            length = share * (value - least) / max(int(np.count_nonzero(apart)), 1)
            flow = np.clip(flow + max(int(length), 1) * apart, -weights, weights)
            sweep += 1
            energy, least, labels, _ = self._sweep(edges, weights, owner, flow)
            if least <= bound:
                share /= 2
            bound = max(bound, least)
            # If the two are equal, the labels are the least minimiser.
            if energy < value or least == value:
                value, best = energy, flow
        if isinstance(best, int):
            n_open = sum(self._solve(edges, edges, owner, best)[2])
        else:
            n_open = sum(self._solve(edges, np.stack([best, -best], axis=1), owner, None)[2])
        return (value - bound) * self._unit, n_open, sweep

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
        self, edges: IntArray, weights: IntArray, owner: IntArray, flow: IntArray
    ) -> tuple[int, int, NDArray[np.uint8], int]:
        """Return the energy, the bound, the labels of the ends, and the energy of label 1."""
        signed = np.stack([flow, -flow], axis=1)
        labels, found, _ = self._solve(edges, signed, owner, None, propose=False)
        least, total = (sum(numbers) for numbers in zip(*found, strict=True))
        apart = labels[:, 0].astype(np.int64) - labels[:, 1]
        energy = least - int((flow * apart).sum()) + int((weights * np.abs(apart)).sum())
        return energy, least, labels, total - int(signed.sum())

    def _solve(
        self,
        edges: IntArray,
        changes: IntArray,
        owner: IntArray,
        label: int | None,
        *,
        propose: bool = True,
    ) -> tuple[NDArray[np.uint8], list[tuple[int, int]], list[int]]:
        """Cut all cells. Return the labels of the ends, energies, and numbers of open voxels."""
        places = {cell.number: np.nonzero(owner == cell.number) for cell in self._cells}
        calls = [
            (SolveCell(edges[own], changes[own], propose, label), cell)
            for cell, own in zip(self._cells, places.values(), strict=True)
        ]
        labels = np.zeros(edges.shape, np.uint8)
        energies: list[tuple[int, int]] = []
        n_open: list[int] = []

        def keep(cell: Cell, found: SolvedCell) -> None:
            labels[places[cell.number]] = found.labels
            energies.append((found.least, found.total))
            n_open.append(found.n_open)

        self._run("sweeps", calls, 0, len(calls), keep)
        return labels, energies, n_open
