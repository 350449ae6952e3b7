"""The task of a worker for a cell: it reads the energy, cuts it, and writes the labels."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise.dask._volumes._label_store import OPEN, DamagedLabels, LabelStore
from setwise.dask._volumes._layout import Cell
from setwise.dask._volumes._volume_energy import VolumeEnergy, squares_of_changes
from setwise.inference._editing._sliceable import size_of, within


class Usage(NamedTuple):
    """The resources that a process has used since its start, at the begin and the end of a task."""

    process: str
    begin: float
    end: float
    memory: int
    """the largest resident memory so far, in bytes"""


class Outcome(NamedTuple):
    """The answer of a task."""

    answer: Any
    usage: Usage


def _most_memory() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(most) * (1 if sys.platform == "darwin" else 1024)


@dataclass(frozen=True, eq=False)
class Task:
    """A function of the energy, the store and a cell, whose errors name the cell."""

    function: Callable[..., Any]

    def __call__(self, energy: VolumeEnergy, store: LabelStore, cell: Cell) -> Outcome:
        begin = time.process_time()
        try:
            answer = self.function(energy, store, cell)
        except DamagedLabels as error:
            raise DamagedLabels(_sentence(cell, error)) from error
        except OSError as error:
            raise OSError(error.errno, _sentence(cell, error.strerror or str(error))) from error
        except (ValueError, TypeError) as error:
            raise ValueError(_sentence(cell, error)) from error
        except MemoryError as error:
            raise MemoryError(_sentence(cell, "there is not enough memory")) from error
        except Exception as error:
            raise RuntimeError(_sentence(cell, f"{type(error).__name__}: {error}")) from error
        process = f"{os.uname().nodename if hasattr(os, 'uname') else ''}-{os.getpid()}"
        return Outcome(answer, Usage(process, begin, time.process_time(), _most_memory()))


def _sentence(cell: Cell, what: object) -> str:
    return f"{cell.name}: {what}; what is written stays, and the next call goes on from there"


class Decided(NamedTuple):
    """The result of a block: a row of the table."""

    open: int
    """voxels of the core that have no label yet"""
    ones: int
    """voxels of the core with label 1"""
    seconds: float
    """processor time of the thread"""


@dataclass(frozen=True, eq=False)
class CutCell:
    """Cut the window of a cell, and write the labels of the core that are certain."""

    fresh: bool
    budget: int

    def __call__(self, energy: VolumeEnergy, store: LabelStore, cell: Cell) -> Decided:
        begin = time.thread_time()
        padded = energy.padded(cell.window)
        inner, core = within(cell.window, padded), within(cell.core, padded)
        states = np.full([part.stop - part.start for part in padded], OPEN, np.uint8)
        if not self.fresh:
            states[core] = store.read(cell.core)
            if (states[core] == OPEN).any():
                states[...] = store.read(padded)
        before = states[core].copy()
        if (before == OPEN).any():
            block = energy.block(cell.window)
            box = np.array([(part.start, part.stop) for part in inner], np.int64)
            left = _core.cut_block(
                block.costs.ravel(),
                np.array(states.shape, np.int64),
                energy.steps,
                block.weights,
                states.ravel(),
                box,
                budget=self.budget,
            )
            if left < 0:
                raise AssertionError("the number of directions was checked before")
            if self.fresh or (states[core] != before).any():
                store.write(cell.core, np.ascontiguousarray(states[core]))
        n_open = int(np.count_nonzero(states[core] == OPEN))
        n_ones = int(np.count_nonzero(states[core] == 1))
        return Decided(n_open, n_ones, time.thread_time() - begin)


class OpenVoxels(NamedTuple):
    """The open voxels of a cell, with their decided neighbours fixed."""

    numbers: IntArray
    """in C order of the volume"""
    costs: NDArray[Any]
    """in units"""
    edges: IntArray
    """(E, 2), numbers of open voxels, some of other cells"""
    weights: NDArray[Any]


def gather_open(energy: VolumeEnergy, store: LabelStore, cell: Cell) -> OpenVoxels:
    """Return the open voxels of a cell."""
    sides = np.array(energy.sides)
    block = energy.block(cell.core)
    states = store.read(block.padded)
    core = within(cell.core, block.padded)
    corner = np.array([part.start for part in block.padded])
    inside = np.zeros(states.shape, np.bool_)
    inside[core] = states[core] == OPEN
    places = np.argwhere(inside)
    strides = np.array([int(np.prod(sides[axis + 1 :])) for axis in range(len(sides))], np.int64)
    numbers = (places + corner) @ strides
    costs = block.costs[inside].copy()
    edges, weights = [np.zeros((0, 2), np.int64)], [np.zeros(0, block.costs.dtype)]
    for k, step in enumerate(energy.pairs.steps):
        for sign in (1, -1):
            other = places + sign * np.array(step)
            exists = ((other >= 0) & (other < states.shape)).all(axis=1)
            there = tuple(other[exists].T)
            tails = tuple(places[exists].T) if sign > 0 else there
            weight, label = block.weights[k][tails], states[there]
            fixed = label != OPEN
            costs[exists] += np.where(fixed, weight * (1 - 2 * (label == 1)), 0).astype(costs.dtype)
            if sign > 0:
                pairs = numbers[exists][~fixed], (other[exists][~fixed] + corner) @ strides
                edges.append(np.stack(pairs, axis=1))
                weights.append(weight[~fixed])
    return OpenVoxels(numbers, costs, np.concatenate(edges), np.concatenate(weights))


def labels_of_open(parts: list[OpenVoxels]) -> NDArray[np.uint8]:
    """Return the labels of the least minimiser of open voxels, in their order."""
    numbers = np.concatenate([part.numbers for part in parts])
    order = np.argsort(numbers)
    edges = np.concatenate([part.edges for part in parts])
    edges = order[np.searchsorted(numbers, edges, sorter=order)]
    costs = np.concatenate([part.costs for part in parts]).astype(np.float64)
    unary = np.stack([np.zeros(len(costs)), costs], axis=1)
    weights = np.concatenate([part.weights for part in parts]).astype(np.float64)
    labels, answer = np.empty(len(costs), np.int64), np.empty(5)
    _core.cut_edges(unary, np.ascontiguousarray(edges), weights, labels, answer, 1)
    return labels.astype(np.uint8)


@dataclass(frozen=True, eq=False)
class WriteLabels:
    """Write labels of some voxels of a cell, which are sorted by number."""

    numbers: IntArray
    labels: NDArray[np.uint8]

    def __call__(self, energy: VolumeEnergy, store: LabelStore, cell: Cell) -> Decided:
        states = store.read(cell.core)
        places = np.stack(np.unravel_index(self.numbers, energy.sides), axis=1)
        corner = np.array([part.start for part in cell.core])
        states[tuple((places - corner).T)] = self.labels
        store.write(cell.core, states)
        n_open = int(np.count_nonzero(states == OPEN))
        return Decided(n_open, int(np.count_nonzero(states == 1)), 0.0)


class Energies(NamedTuple):
    """Sums over a cell and the edges that begin in it: a row of the last table."""

    paid: float
    least: float
    cut: float
    lost: float
    ones: int
    open: int


def sum_energy(energy: VolumeEnergy, store: LabelStore, cell: Cell) -> Energies:
    """Return the energy of the labels of a cell."""
    labels = store.read(energy.padded(cell.core))
    core = labels[within(cell.core, energy.padded(cell.core))]
    n_open = int(np.count_nonzero(core == OPEN))
    costs, cut, lost = energy.sums(cell.core, labels)
    ones = int(np.count_nonzero(core == 1))
    return Energies(costs.paid, costs.least, cut, costs.lost + lost, ones, n_open)


class ImageSums(NamedTuple):
    """The result of the first pass over a cell of the image."""

    low: float
    high: float
    squares: float
    """the sum of squared changes along the edges"""
    drawn: FloatArray | None
    """counts (2, K) of the values under the seeds of each label, with the values"""
    values: NDArray[Any] | None


def look_at_image(energy: VolumeEnergy, store: LabelStore, cell: Cell) -> ImageSums:
    """Return the range of the image in a cell, its changes, and its values under seeds."""
    source = energy.pairs.image
    assert source is not None
    padded = energy.padded(cell.core)
    image = source.read(padded)
    inner = within(cell.core, padded)
    own = image[inner]
    low, high = float(own.min()), float(own.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError(f"{source.name} must be finite, got {low} to {high}")
    squares = squares_of_changes(image, inner, energy.pairs.steps)
    seeds = energy._seeds(cell.core)
    if seeds is None or energy.costs.source is not source:
        return ImageSums(low, high, squares, None, None)
    marked = seeds >= 0
    values, place = np.unique(own[marked], return_inverse=True)
    drawn = np.bincount(
        place.ravel() + len(values) * seeds[marked].astype(np.int64), minlength=2 * len(values)
    )
    return ImageSums(low, high, squares, drawn.reshape(2, -1).astype(np.float64), values)


def memory_of_a_block(energy: VolumeEnergy, cells: list[Cell]) -> int:
    """Return about how many bytes the largest of some cells takes on a worker."""
    size = max(size_of(energy.padded(cell.window)) for cell in cells)
    steps = 0 if energy.pairs.image is None else len(energy.pairs.steps)
    number = energy.units.dtype.itemsize
    return size * (2 + number * (1 + steps) + 2 * energy.costs.source.dtype.itemsize)
