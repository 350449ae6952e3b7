"""Changes of the costs of single voxels, stored separately from a read-only array of costs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.inference._editing._sliceable import Window, shape_of, within

# The approximate number of voxels per chunk; a stroke changes a few chunks of 300 kB; not tuned.
_CHUNK = 1 << 15
NO_SEED = -1

Chunk = tuple[FloatArray, NDArray[np.int8]]
"""What is added to the costs of a chunk's voxels, and their seeds: 0, 1 or NO_SEED."""


class Edits:
    """Sums of changes and seeds, in chunks that exist only where costs were changed."""

    def __init__(self, sides: tuple[int, ...]) -> None:
        self.sides = sides
        self._side = max(1, round(_CHUNK ** (1 / len(sides))))
        self._chunks: dict[tuple[int, ...], Chunk] = {}

    def read(self, window: Window) -> Chunk | None:
        """Return a copy of the changes in a window, or None if there are none."""
        if not self._chunks:
            return None
        delta = np.zeros(shape_of(window))
        seed = np.full(delta.shape, NO_SEED, np.int8)
        found = False
        for chunk, part in self._parts(window):
            own = self._chunks.get(chunk)
            if own is None:
                continue
            found = True
            here = within(part, window)
            there = tuple(
                slice(piece.start - self._side * at, piece.stop - self._side * at)
                for piece, at in zip(part, chunk, strict=True)
            )
            delta[here], seed[here] = own[0][there], own[1][there]
        return (delta, seed) if found else None

    def read_at(self, voxels: IntArray) -> Chunk:
        """Return the changes at voxels given by their numbers in C order."""
        delta, seed = np.zeros(len(voxels)), np.full(len(voxels), NO_SEED, np.int8)
        for chunk, rows, places in self._at(voxels):
            if (own := self._chunks.get(chunk)) is not None:
                delta[rows], seed[rows] = own[0][places], own[1][places]
        return delta, seed

    def write_at(self, voxels: IntArray, values: Chunk) -> None:
        """Replace the changes at voxels given by their numbers in C order."""
        for chunk, rows, places in self._at(voxels):
            if chunk not in self._chunks:
                shape = tuple(
                    min(self._side, side - self._side * at)
                    for at, side in zip(chunk, self.sides, strict=True)
                )
                self._chunks[chunk] = np.zeros(shape), np.full(shape, NO_SEED, np.int8)
            own = self._chunks[chunk]
            own[0][places], own[1][places] = values[0][rows], values[1][rows]

    def _parts(self, window: Window) -> Iterator[tuple[tuple[int, ...], Window]]:
        """Yield each chunk that intersects a window, with the intersection in both coordinates."""
        ranges = [range(part.start // self._side, -(-part.stop // self._side)) for part in window]
        for chunk in product(*ranges):
            yield (
                chunk,
                tuple(
                    slice(max(part.start, self._side * at), min(part.stop, self._side * (at + 1)))
                    for part, at in zip(window, chunk, strict=True)
                ),
            )

    def _at(
        self, voxels: IntArray
    ) -> Iterator[tuple[tuple[int, ...], IntArray, tuple[IntArray, ...]]]:
        """Yield each chunk that contains some of the voxels, their rows, and their places in it."""
        if not len(voxels):
            return
        places = np.stack(np.unravel_index(voxels, self.sides))
        chunks, places = np.divmod(places, self._side)
        names, group = np.unique(chunks, axis=1, return_inverse=True)
        order = np.argsort(group.reshape(-1), kind="stable")
        ends = np.cumsum(np.bincount(group.reshape(-1), minlength=names.shape[1]))
        for name, rows in zip(names.T.tolist(), np.split(order, ends[:-1]), strict=True):
            yield tuple(name), rows, tuple(places[:, rows])
