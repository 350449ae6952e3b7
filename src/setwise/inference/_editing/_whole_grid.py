"""The least minimiser of a whole grid, by one cut or, if the grid is large, by cuts of blocks.

A block is cut with all voxels outside labelled 0 and with all of them labelled 1. The least
minimiser lies between the two answers, so where they agree they are its labels. The open voxels are
cut separately, with their decided neighbours fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import IntArray
from setwise.inference._editing._edits import Edits
from setwise.inference._editing._grid_energy import GridEnergy
from setwise.inference._editing._sliceable import (
    Window,
    blocks,
    grown,
    shape_of,
    size_of,
    whole,
    within,
)
from setwise.inference._flows._flow_graph import FlowGraph

# The most voxels of one cut, which takes about 1.5 GB with 6 neighbours. Chosen by hand to bound
# the memory.
MOST_AT_ONCE = 1 << 23
# The sides of blocks and the widths of halos, by the number of axes. The cut of a block with its
# halo takes a few hundred megabytes. benchmarks/edits.py measures how many voxels stay open.
_BLOCK = {1: 1 << 20, 2: 1024, 3: 96}
_HALO = {1: 1 << 10, 2: 32, 3: 12}
# The most open voxels that are cut at once without a second round with larger halos. Not tuned.
_MOST_OPEN = 1 << 22
_OPEN = 2

Labels = NDArray[np.uint8]
Report = Callable[[Window, float], bool]
"""Is called after a cut with its window and the share that is done. True ends the search."""


def solve_whole(
    energy: GridEnergy, edits: Edits, n_jobs: int | None, report: Report
) -> tuple[Labels, bool]:
    """Return the labels of the least minimiser, and whether they are proved.

    If ``report`` ends the search, the labels are lower bounds.
    """
    every = whole(energy.sides)
    if size_of(every) <= MOST_AT_ONCE:
        labels = energy.least(every, edits, 0, n_jobs).view(np.uint8)
        report(every, 1.0)
        return labels, True
    dimensions = min(len(energy.sides), 3)
    labels = np.full(energy.sides, _OPEN, np.uint8)
    return solve_in_blocks(
        energy, edits, n_jobs, report, labels, _BLOCK[dimensions], _HALO[dimensions]
    )


def solve_in_blocks(
    energy: GridEnergy,
    edits: Edits,
    n_jobs: int | None,
    report: Report,
    labels: Labels,
    side: int,
    halo: int,
) -> tuple[Labels, bool]:
    """Solve the grid in blocks of at most ``side`` voxels per axis, with a halo around each.

    ``labels`` has the value 2 everywhere, and is overwritten.
    """
    parts = blocks(energy.sides, side)
    for widening in (1, 2, 4):
        for number, core in enumerate(parts):
            if not (labels[core] == _OPEN).any():
                continue
            window = grown(core, (widening * halo,) * len(core), energy.sides)
            labels[core] = _bracket(energy, edits, n_jobs, window, core)
            if report(window, (number + 1) / len(parts)):
                labels[labels == _OPEN] = 0
                return labels, False
        n_open = int(np.count_nonzero(labels == _OPEN))
        if n_open <= _MOST_OPEN:
            break
    if n_open:
        _close(energy, edits, n_jobs, labels, parts)
    report(whole(energy.sides), 1.0)
    return labels, True


def _bracket(
    energy: GridEnergy, edits: Edits, n_jobs: int | None, window: Window, core: Window
) -> Labels:
    """Return the labels of a core that do not depend on the outside of the window, 2 elsewhere."""
    graph, borders = energy.graph(window)
    costs = energy.costs(window, edits)
    source, sink = np.maximum(costs, 0) + borders.ones, np.maximum(-costs, 0)
    graph.set_terminals(source, sink)
    graph.solve(n_jobs=n_jobs)
    inside = within(core, window)
    lower = graph._least_sink_side()[inside]
    # If all voxels outside get label 1, label 0 becomes more expensive at the faces and label 1
    # cheaper. The constant sum of ``borders.ones`` is added to the energy, so that only capacities
    # to the sink grow and the flow stays feasible.
    faces = np.flatnonzero(borders.ones + borders.zeros)
    if len(faces):
        more = sink + borders.ones + borders.zeros
        graph.set_terminals(source.ravel()[faces], more.ravel()[faces], nodes=faces)
        graph.solve(n_jobs=n_jobs)
    upper = graph._least_sink_side()[inside]
    return np.where(lower == upper, lower, _OPEN).astype(np.uint8)


def _close(
    energy: GridEnergy, edits: Edits, n_jobs: int | None, labels: Labels, parts: list[Window]
) -> None:
    """Cut the open voxels with all others fixed, and write their labels."""
    places = np.flatnonzero(labels == _OPEN)
    source, sink = np.zeros(len(places), np.int64), np.zeros(len(places), np.int64)
    edges: list[IntArray] = [np.zeros((0, 2), np.int64)]
    there: list[IntArray] = [np.zeros(0, np.int64)]
    back: list[IntArray] = [np.zeros(0, np.int64)]
    numbers = np.array([prod(energy.sides[axis + 1 :]) for axis in range(len(energy.sides))])
    for core in parts:
        found = np.argwhere(labels[core] == _OPEN)
        if not len(found):
            continue
        padded = grown(core, energy.margin, energy.sides)
        around = labels[padded]
        forth, hither = energy.capacities(padded)
        mine = found + [part.start - outer.start for part, outer in zip(core, padded, strict=True)]
        begin = np.array([outer.start for outer in padded])
        ids = np.searchsorted(places, (mine + begin) @ numbers)
        costs = energy.costs(core, edits)[tuple(found.T)]
        source[ids] += np.maximum(costs, 0)
        sink[ids] += np.maximum(-costs, 0)
        for k, step in enumerate(energy.steps):
            for sign in (1, -1):
                other = mine + sign * np.array(step)
                exists = ((other >= 0) & (other < shape_of(padded))).all(axis=1)
                tails = tuple((mine if sign > 0 else other)[exists].T)
                label = around[tuple(other[exists].T)]
                one, zero = forth[k][tails], hither[k][tails]
                if sign < 0:
                    one, zero = zero, one
                # Label 1 costs ``one`` beside a neighbour with label 0, and label 0 costs ``zero``
                # beside a neighbour with label 1.
                source[ids[exists]] += np.where(label == 0, one, 0)
                sink[ids[exists]] += np.where(label == 1, zero, 0)
                if sign > 0:
                    both = label == _OPEN
                    heads = np.searchsorted(places, (other[exists][both] + begin) @ numbers)
                    edges.append(np.stack([ids[exists][both], heads], axis=1))
                    there.append(one[both])
                    back.append(zero[both])
    graph = FlowGraph(
        len(places), np.concatenate(edges), np.concatenate(back), np.concatenate(there)
    )
    graph.set_terminals(source, sink)
    graph.solve(n_jobs=n_jobs)
    labels.reshape(-1)[places] = graph._least_sink_side()
