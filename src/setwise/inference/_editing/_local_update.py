"""The labels after a change that favours one label, from a window that grows until they are proved.

Let the change favour label 1. Fix all voxels outside the window to label 1. The least minimiser
inside is then at least the new least minimiser of the grid, which is at least the old one. Start a
flood at the changed voxels, along the edges of the grid, through the voxels whose label in this
answer differs from the old one. If the flood stays inside the window, the new least minimiser has
the labels of the answer on the flood and the old labels elsewhere. Label 0 is treated
symmetrically.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from setwise._foundation._arguments import BoolArray, IntArray
from setwise.fields._pixels._grid import Offset, pair_slices
from setwise.inference._editing._edits import Edits
from setwise.inference._editing._grid_energy import GridEnergy, States
from setwise.inference._editing._sliceable import (
    Window,
    grown,
    located,
    shape_of,
    size_of,
    whole,
)
from setwise.inference._editing._stored_labels import LabelStore
from setwise.inference._editing._whole_grid import MOST_AT_ONCE, Report, solve_whole


class Update(NamedTuple):
    """The new labels of a window or of the whole grid."""

    window: Window
    labels: BoolArray | States
    proved: bool
    """whether they are proved if the old labels are, or whatever these are for the whole"""
    n_windows: int
    whole: bool
    stopped: bool


def pieces(voxels: IntArray, halo: int, sides: tuple[int, ...]) -> Iterator[IntArray]:
    """Split the changed voxels into groups while two windows are smaller than one."""
    window, places = located(voxels, sides)
    axis = int(np.argmax(shape_of(window)))
    first = places[:, axis] < shape_of(window)[axis] // 2
    if first.any():
        halves = voxels[first], voxels[~first]
        parts = [size_of(_first_window(half, halo, sides)) for half in halves]
        if sum(parts) < size_of(grown(window, (halo,) * len(sides), sides)):
            for half in halves:
                yield from pieces(half, halo, sides)
            return
    yield voxels


def _first_window(voxels: IntArray, halo: int, sides: tuple[int, ...]) -> Window:
    return grown(located(voxels, sides)[0], (halo,) * len(sides), sides)


def update(
    energy: GridEnergy,
    edits: Edits,
    store: LabelStore,
    voxels: IntArray,
    label: int,
    halo: int,
    once: bool,
    n_threads: int,
    report: Report,
) -> Update:
    """Return new labels after a change of voxels, sorted by number, that favours one label.

    With ``once``, only the first window is tried, because the old labels are not proved.
    """
    sides = energy.sides
    every, window = whole(sides), _first_window(voxels, halo, sides)
    n_windows = 0
    while size_of(window) <= MOST_AT_ONCE:
        n_windows += 1
        before = store.read(window)
        # If the old labels are proved, voxels that have the favoured label keep it.
        kept = None if once else before == label
        answer = energy.least(window, edits, label, n_threads, kept)
        stopped = report(window, 1.0)
        if window == every:
            return Update(window, answer, True, n_windows, True, stopped)
        core, places = located(voxels, sides)
        places = places + [part.start - out.start for part, out in zip(core, window, strict=True)]
        flooded, open_sides = _flood(answer != before, places, window, energy.steps, sides)
        if once or stopped or not open_sides.any():
            labels = np.where(flooded, answer, before)
            return Update(window, labels, not open_sides.any(), n_windows, False, stopped)
        window = tuple(
            slice(
                max(part.start - more * bool(low), 0),
                min(part.stop + more * bool(high), side),
            )
            for part, (low, high), side, more in (
                (part, ends, side, max(halo, (part.stop - part.start + 1) // 2))
                for part, ends, side in zip(window, open_sides, sides, strict=True)
            )
        )
    labels, proved = solve_whole(energy, edits, n_threads, report)
    return Update(every, labels, proved, n_windows + 1, True, not proved)


def _flood(
    differs: BoolArray,
    places: IntArray,
    window: Window,
    steps: list[Offset],
    sides: tuple[int, ...],
) -> tuple[BoolArray, BoolArray]:
    """Return the voxels that a flood reaches, and the ends of the axes where it leaves the window.

    The flood starts at those of ``places`` that differ. It passes through voxels that differ, along
    the edges of the grid. The second array has shape (axes, 2).
    """
    flooded, open_sides = np.zeros_like(differs), np.zeros((differs.ndim, 2), np.bool_)
    starts = places[differs[tuple(places.T)]]
    if not len(starts):
        return flooded, open_sides
    box, nodes = located(np.flatnonzero(differs), differs.shape)
    number = np.full(shape_of(box), -1, np.int32)
    number[tuple(nodes.T)] = np.arange(len(nodes), dtype=np.int32)
    rows, columns = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    for step in steps:
        first, second = pair_slices(number.shape, step)
        tails, heads = number[first], number[second]
        joined = (tails >= 0) & (heads >= 0)
        rows.append(tails[joined])
        columns.append(heads[joined])
    row, column = np.concatenate(rows), np.concatenate(columns)
    graph = coo_array((np.ones(len(row), np.bool_), (row, column)), shape=(len(nodes),) * 2)
    _, part = connected_components(graph, directed=False)
    begin = np.array([piece.start for piece in box])
    reached = np.zeros(int(part.max()) + 1, np.bool_)
    reached[part[number[tuple((starts - begin).T)]]] = True
    found = nodes[reached[part]] + begin
    flooded[tuple(found.T)] = True
    corner = np.array([piece.start for piece in window])
    shape = np.array(differs.shape)
    for step in [*steps, *(tuple(-along for along in step) for step in steps)]:
        other = found + np.array(step)
        exists = ((other + corner >= 0) & (other + corner < sides)).all(axis=1)
        open_sides[:, 0] |= (other[exists] < 0).any(axis=0)
        open_sides[:, 1] |= (other[exists] >= shape).any(axis=0)
    return flooded, open_sides
