"""Arrays that are read slice by slice: in memory, memory-mapped, or in chunks on disk."""

from __future__ import annotations

from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._arguments import IntArray, as_array, refuse_masked
from setwise.fields._pixels._grid import Offset, count_pairs, pair_slices

Window = tuple[slice, ...]
"""A box of voxels: for each axis a slice with a start and an end, and without a step."""


class Sliceable(Protocol):
    """An array that can be sliced: from NumPy, a memory map, zarr, dask, or another library."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> Any: ...

    def __getitem__(self, key: Any, /) -> Any: ...


def as_sliceable(values: ArrayLike | Sliceable, name: str) -> Sliceable:
    """Return an array of real numbers as it is if it can be sliced, otherwise as a NumPy array."""
    refuse_masked(values, name)
    if not _is_sliceable(values):
        values = as_array(values, name)  # type: ignore[arg-type]
    array: Sliceable = values  # type: ignore[assignment]
    if np.dtype(array.dtype).kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if any(not isinstance(side, int | np.integer) for side in array.shape):
        raise ValueError(f"{name} must have a known shape, got {array.shape}")
    return array


def _is_sliceable(values: object) -> bool:
    shape, dtype = getattr(values, "shape", None), getattr(values, "dtype", None)
    package = type(values).__module__.partition(".")[0]
    if package in ("pandas", "scipy"):  # slices of these types have another meaning
        return False
    return isinstance(shape, tuple) and isinstance(dtype, np.dtype) and not np.isscalar(values)


def read(array: Sliceable, window: Window) -> NDArray[Any]:
    """Return a window of an array that may have to be broadcast to the grid.

    The result can be broadcast to the shape of the window.
    """
    own = window[len(window) - len(array.shape) :]
    places = tuple(
        slice(0, 1) if side == 1 else part for side, part in zip(array.shape, own, strict=True)
    )
    return np.asarray(array[places])


def whole(sides: tuple[int, ...]) -> Window:
    """Return the window of all voxels."""
    return tuple(slice(0, side) for side in sides)


def shape_of(window: Window) -> tuple[int, ...]:
    """Return the sides of a window."""
    return tuple(part.stop - part.start for part in window)


def size_of(window: Window) -> int:
    """Return the number of voxels of a window."""
    return prod(shape_of(window))


def grown(window: Window, by: tuple[int, ...], sides: tuple[int, ...]) -> Window:
    """Return the window with ``by`` more voxels along each axis, as far as the grid reaches."""
    return tuple(
        slice(max(part.start - more, 0), min(part.stop + more, side))
        for part, more, side in zip(window, by, sides, strict=True)
    )


def within(window: Window, outer: Window) -> Window:
    """Convert a window from coordinates of the grid to coordinates of an outer window."""
    return tuple(
        slice(part.start - around.start, part.stop - around.start)
        for part, around in zip(window, outer, strict=True)
    )


def placed(window: Window, outer: Window) -> Window:
    """Convert a window from coordinates of an outer window to coordinates of the grid."""
    return tuple(
        slice(part.start + around.start, part.stop + around.start)
        for part, around in zip(window, outer, strict=True)
    )


def located(voxels: IntArray, sides: tuple[int, ...]) -> tuple[Window, IntArray]:
    """Return the smallest window that contains the numbered voxels, and their places in it."""
    places = np.stack(np.unravel_index(voxels, sides), axis=1)
    first, last = places.min(axis=0), places.max(axis=0)
    window = tuple(slice(int(low), int(high) + 1) for low, high in zip(first, last, strict=True))
    return window, places - first


def blocks(sides: tuple[int, ...], side: int) -> list[Window]:
    """Return windows of at most ``side`` voxels per axis that cover the grid."""
    corners = np.ndindex(*(-(-length // side) for length in sides))
    return [
        tuple(
            slice(side * at, min(side * (at + 1), length))
            for at, length in zip(corner, sides, strict=True)
        )
        for corner in corners
    ]


def per_step(flat: NDArray[Any], sides: tuple[int, ...], steps: list[Offset]) -> NDArray[Any]:
    """Return weights of edges, in the order of ``grid_edges``, as an array of shape (K, *sides)."""
    full = np.zeros((len(steps), *sides), flat.dtype)
    begin = 0
    for row, step in zip(full, steps, strict=True):
        end = begin + count_pairs(sides, step)
        part = row[pair_slices(sides, step)[0]]
        part[...] = flat[begin:end].reshape(part.shape)
        begin = end
    return full
