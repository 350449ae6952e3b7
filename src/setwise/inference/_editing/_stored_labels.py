"""Labels in an array that is written in place, with journals for restoring them."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import BoolArray, IntArray
from setwise.inference._editing._edits import Chunk, Edits
from setwise.inference._editing._sliceable import (
    Sliceable,
    Window,
    blocks,
    located,
    placed,
    shape_of,
)

# The side of the blocks in which many labels are written, by the number of axes. A block of 2^20 or
# 2^21 voxels takes a few megabytes, so that writes are long enough to be efficient and memory stays
# small. Not tuned.
_SIDE = {1: 1 << 20, 2: 1024, 3: 128}


class FormerLabels(NamedTuple):
    """The former labels of a window, eight per byte."""

    window: Window
    bits: NDArray[np.uint8]


class LabelStore:
    """Labels 0 and 1 in an array of any type of numbers, in memory or elsewhere."""

    def __init__(self, array: Sliceable) -> None:
        self.array = array

    def read(self, window: Window) -> BoolArray:
        """Return which voxels of a window have label 1."""
        return np.asarray(np.asarray(self.array[window]) != 0)

    def write(
        self, window: Window, labels: NDArray[np.generic], journal: list[FormerLabels]
    ) -> int:
        """Write the labels of a window. Return the number of labels that change.

        The former labels are appended to ``journal`` before.
        """
        shape, changed = shape_of(window), 0
        for part in blocks(shape, _SIDE[min(len(shape), 3)]):
            place = placed(part, window)
            after, stored = labels[part] != 0, np.asarray(self.array[place])
            before = stored != 0
            numbers: IntArray = np.flatnonzero(after != stored)  # this includes numbers above 1
            if not len(numbers):
                continue
            changed += len(numbers)
            box, _ = located(numbers, after.shape)
            small = placed(box, place)
            journal.append(FormerLabels(small, np.packbits(before[box])))
            self._put(small, after[box])
        return changed

    def restore(self, journal: list[FormerLabels]) -> int:
        """Restore the labels from a journal. Return the number of labels that change.

        A second call has no effect.
        """
        changed = 0
        for window, bits in reversed(journal):
            shape = shape_of(window)
            before = np.unpackbits(bits, count=prod(shape)).reshape(shape)
            changed += int(np.count_nonzero(before != self.read(window)))
            self._put(window, before)
        return changed

    def _put(self, window: Window, labels: NDArray[np.generic]) -> None:
        self.array[window] = labels.astype(self.array.dtype)  # type: ignore[index]


class Change(NamedTuple):
    """A change of costs, with the data for undoing and repeating it."""

    voxels: IntArray
    """numbers in C order, sorted"""
    before: Chunk
    after: Chunk
    journal: list[FormerLabels]
    proved: bool
    """whether the labels after the change are proved"""

    def revert(self, edits: Edits, store: LabelStore) -> int:
        """Restore costs and labels. Return the number of labels that change."""
        edits.write_at(self.voxels, self.before)
        return store.restore(self.journal)
