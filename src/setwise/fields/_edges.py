"""Edges between variables, in the form that pairwise potentials take."""

from __future__ import annotations

from typing import NamedTuple
from weakref import ref

import numpy as np
from numpy.typing import ArrayLike

from setwise import _core
from setwise._foundation._arguments import IntArray, as_array


class Grid(NamedTuple):
    """The sides of a grid, and the directions of its edges."""

    sides: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]

    @property
    def last(self) -> int:
        """The number of the last pixel that has a neighbour; -1 if no pixel has one."""
        return max(map(self._last_along, self.steps), default=-1)

    def _last_along(self, step: tuple[int, ...]) -> int:
        tail = head = 0
        for side, along in zip(self.sides, step, strict=True):
            if abs(along) >= side:
                return -1
            tail = tail * side + side - 1 - max(along, 0)
            head = head * side + side - 1 + min(along, 0)
        return max(tail, head)


# The read-only edge arrays of grids, by identity. A slice, copy or reordering is another object, so
# it is never mistaken for the edges of the grid.
_GRIDS: dict[int, tuple[ref[IntArray], Grid]] = {}


def remember_grid(edges: IntArray, grid: Grid) -> IntArray:
    """Return the edges of a grid, (E, 2), as a read-only array that remembers its grid."""
    fixed: IntArray = np.asarray(edges.data.toreadonly())
    # Entries of deleted arrays are removed here. A weakref callback would lose a Ctrl-C.
    for key in [key for key, (alive, _) in [*_GRIDS.items()] if alive() is None]:
        _GRIDS.pop(key, None)
    _GRIDS[id(fixed)] = (ref(fixed), grid)
    return fixed


def grid_of(edges: object) -> Grid | None:
    """Return the grid of an edge array, or None if it is not known."""
    known = _GRIDS.get(id(edges))
    return known[1] if known is not None and known[0]() is edges else None


def as_edges(edges: ArrayLike) -> IntArray:
    """Read pairs of different variables, (E, 2); ``[]`` has no edge, and grids stay grids."""
    array = as_array(edges, "edges")
    if grid_of(array) is not None:
        return array
    if array.shape == (0,):
        array = np.zeros((0, 2), np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"edges must have shape (E, 2), got {array.shape}")
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"edges must hold integers, got dtype {array.dtype}")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(_not_variables(array.max()))
    pairs = np.empty(array.shape, np.int64)
    source = np.ascontiguousarray(array, np.int64)
    bad = _core.copy_edges(source, pairs)
    if bad < 0:
        return pairs
    if (array < 0).any():
        raise ValueError(_not_variables(array.min()))
    i = source[bad, 0]
    raise ValueError(f"edges must join two different variables, got ({i}, {i})")


def _not_variables(got: object) -> str:
    return f"edges must join variables, which are numbered from 0, got {got}"


def check_edges(edges: IntArray, n_variables: int) -> None:
    """Raise a ``ValueError`` when an edge leaves the field."""
    grid = grid_of(edges)
    last = int(edges.max(initial=-1)) if grid is None else grid.last
    if last >= n_variables:
        raise ValueError(
            f"edges must join the field's {n_variables} variables, numbered from 0, got {last}"
        )
