"""The least minimiser of a whole grid, by one cut or, if the grid is large, by cuts of blocks.

Kernels solve a block for all labels around it and write the labels that are certain. The open
voxels are cut separately, with their decided neighbours fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from math import prod
from threading import Lock

import numpy as np

from setwise._foundation._arguments import IntArray
from setwise.inference._editing._edits import Edits
from setwise.inference._editing._grid_energy import OPEN, GridEnergy, States
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

# The most voxels of one cut, which takes up to about 600 MB with 6 neighbours. Chosen by hand to
# bound the memory.
MOST_AT_ONCE = 1 << 23
# The sides of blocks, and the widths by which blocks with open voxels grow in later rounds, by the
# number of axes. The arrays of a block take a few hundred megabytes.
_BLOCK = {1: 1 << 20, 2: 1024, 3: 96}
_HALO = {1: 1 << 10, 2: 32, 3: 12}
# The most open voxels that are cut at once without a second round with larger halos. Not tuned.
_MOST_OPEN = 1 << 22

Report = Callable[[Window, float], bool]
"""Is called after a cut with its window and the share that is done. True ends the search."""


def solve_whole(
    energy: GridEnergy, edits: Edits, n_threads: int, report: Report
) -> tuple[States, bool]:
    """Return the labels of the least minimiser, and whether they are proved.

    If ``report`` ends the search, the labels are lower bounds.
    """
    every = whole(energy.sides)
    if size_of(every) <= MOST_AT_ONCE:
        labels = energy.least(every, edits, 0, n_threads).view(np.uint8)
        report(every, 1.0)
        return labels, True
    dimensions = min(len(energy.sides), 3)
    labels = np.full(energy.sides, OPEN, np.uint8)
    return solve_in_blocks(
        energy, edits, n_threads, report, labels, _BLOCK[dimensions], _HALO[dimensions]
    )


def solve_in_blocks(
    energy: GridEnergy,
    edits: Edits,
    n_threads: int,
    report: Report,
    labels: States,
    side: int,
    halo: int,
) -> tuple[States, bool]:
    """Solve the grid in blocks of at most ``side`` voxels per axis.

    Later rounds widen the blocks that have open voxels by ``halo`` and more. ``labels`` has OPEN
    everywhere, and is overwritten.
    """
    parts = blocks(energy.sides, side)
    reading = Lock()

    def prove(core: Window, wider: int) -> Window:
        window = grown(core, (wider,) * len(core), energy.sides)
        if not (labels[core] == OPEN).any():
            return window
        padded = grown(window, energy.margin, energy.sides)
        with reading:
            numbers = energy.numbers(padded, edits)
        known = labels[padded].copy()  # other threads write other blocks meanwhile
        energy.prove(numbers, within(window, padded), known)
        labels[core] = known[within(core, padded)]
        return window

    pool = ThreadPoolExecutor(n_threads)
    try:
        for wider in (0, halo, 3 * halo):
            found = (pool.map if n_threads > 1 else map)(prove, parts, repeat(wider))
            for number, window in enumerate(found):
                if report(window, (number + 1) / len(parts)):
                    pool.shutdown(cancel_futures=True)  # nobody may read what is written now
                    labels[labels == OPEN] = 0
                    return labels, False
            n_open = int(np.count_nonzero(labels == OPEN))
            if n_open <= _MOST_OPEN:
                break
    finally:
        pool.shutdown(cancel_futures=True)
    if n_open:
        _close(energy, edits, n_threads, labels, parts)
    report(whole(energy.sides), 1.0)
    return labels, True


def _close(
    energy: GridEnergy, edits: Edits, n_threads: int, labels: States, parts: list[Window]
) -> None:
    """Cut the open voxels with all others fixed, and write their labels."""
    places = np.flatnonzero(labels == OPEN)
    source, sink = np.zeros(len(places), np.int64), np.zeros(len(places), np.int64)
    edges: list[IntArray] = [np.zeros((0, 2), np.int64)]
    there: list[IntArray] = [np.zeros(0, np.int64)]
    back: list[IntArray] = [np.zeros(0, np.int64)]
    numbers = np.array([prod(energy.sides[axis + 1 :]) for axis in range(len(energy.sides))])
    for core in parts:
        found = np.argwhere(labels[core] == OPEN)
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
                    both = label == OPEN
                    heads = np.searchsorted(places, (other[exists][both] + begin) @ numbers)
                    edges.append(np.stack([ids[exists][both], heads], axis=1))
                    there.append(one[both])
                    back.append(zero[both])
    graph = FlowGraph(
        len(places), np.concatenate(edges), np.concatenate(back), np.concatenate(there)
    )
    graph.set_terminals(source, sink)
    graph.solve(n_jobs=n_threads)
    labels.reshape(-1)[places] = graph._least_sink_side()
