"""The cells of a volume: each round solves windows around them and writes the cells."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from setwise.inference._editing._sliceable import Window, grown


class Cell(NamedTuple):
    """A part of the volume that one task decides."""

    number: int
    """its number in its round; -1 for the box in the middle, which is tried first"""
    core: Window
    """the voxels whose labels are written: whole chunks"""
    window: Window
    """the voxels that are solved: the core and its halo"""

    @property
    def name(self) -> str:
        """Return the name of the cell in messages."""
        voxels = ", ".join(f"{part.start}:{part.stop}" for part in self.core)
        name = "the middle" if self.number < 0 else f"block {self.number}"
        return f"{name} (voxels [{voxels}])"


class Round(NamedTuple):
    """A partition of the volume into cells."""

    name: str
    fresh: bool
    """whether nothing is known before"""
    cells: list[Cell]


@dataclass(frozen=True)
class Layout:
    """Blocks of a volume, and the chunks in which their labels lie, which are halves of them."""

    sides: tuple[int, ...]
    block: tuple[int, ...]

    @property
    def chunks(self) -> tuple[int, ...]:
        return tuple(max(-(-side // 2), 1) for side in self.block)

    def rounds(self) -> list[Round]:
        """Return the rounds in order.

        Blocks leave voxels open at their faces. In the second round blocks begin in the middle of
        those of the first, so that these faces lie inside of them. Then come halves of blocks,
        with halos of a quarter and of half a block.
        """
        halves = self.chunks
        whole = tuple(2 * half for half in halves)
        none = (0,) * len(halves)
        small = tuple(half // 2 for half in halves)
        return [
            Round("blocks", True, self._cells(whole, none, none)),
            Round("shifted", False, self._cells(whole, halves, none)),
            Round("halo", False, self._cells(halves, none, small)),
            Round("doubled halo", False, self._cells(halves, none, halves)),
        ]

    def _cells(
        self, size: tuple[int, ...], shift: tuple[int, ...], halo: tuple[int, ...]
    ) -> list[Cell]:
        axes = []
        for side, step, first in zip(self.sides, size, shift, strict=True):
            cuts = sorted({0, side, *range(first, side, step)})
            axes.append([slice(a, b) for a, b in pairwise(cuts)])
        return [
            Cell(number, core, grown(core, halo, self.sides))
            for number, core in enumerate(
                tuple(axis[k] for axis, k in zip(axes, place, strict=True))
                for place in np.ndindex(*map(len, axes))
            )
        ]
