"""Arrays that are read in windows: of zarr, dask, files that are mapped, or in memory."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from itertools import product
from typing import Any
from zlib import crc32

import dask.array as da
import numpy as np
import zarr
from numpy.typing import NDArray

from setwise.inference._editing._sliceable import Window, as_sliceable

# The side of the boxes whose contents identify an array: the corners and the middle, so that an
# array of chunks is known after reading a few of them.
_PROBE = 8


@dataclass(frozen=True, eq=False)
class Source:
    """The voxels of an array whose first ``lead`` axes have length 1."""

    array: Any
    lead: int
    name: str
    """the argument that it was, for messages"""

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(int(side) for side in self.array.shape[self.lead :])

    @property
    def dtype(self) -> np.dtype[Any]:
        kind: np.dtype[Any] = np.dtype(self.array.dtype)
        return kind

    def read(self, window: Window) -> NDArray[Any]:
        """Return the voxels of a window."""
        part = self.array[(0,) * self.lead + window]
        if isinstance(part, da.Array):
            part = part.compute(scheduler="synchronous")
        return np.ascontiguousarray(part)

    def probe(self) -> int:
        """Return a checksum of the voxels in the corners and in the middle."""
        places = [{0, max(side - _PROBE, 0), side // 2} for side in self.shape]
        total = 0
        for corner in product(*(sorted(place) for place in places)):
            if len({side // 2 == at for side, at in zip(self.shape, corner, strict=True)}) > 1:
                continue  # neither a corner nor the middle
            window = tuple(slice(at, at + _PROBE) for at in corner)
            total = crc32(self.read(window).tobytes(), total)
        return total


@dataclass(frozen=True)
class _MappedFile:
    """A memory map that is sent to other processes as the name of its file."""

    path: str
    dtype: np.dtype[Any]
    offset: int
    shape: tuple[int, ...]
    order: Any

    def __getitem__(self, key: Any) -> NDArray[Any]:
        array: NDArray[Any] = np.memmap(
            self.path, self.dtype, "r", self.offset, self.shape, self.order
        )
        return np.array(array[key])


def as_source(values: Any, name: str, shape: tuple[int, ...] | None, shared: bool) -> Source:
    """Return an array as a source, of a shape if one is given.

    With ``shared``, other processes must be able to read it.
    """
    array: Any = as_sliceable(values, name)
    base: Any = getattr(array, "base", None)
    if isinstance(array, np.memmap) and isinstance(base, mmap.mmap) and array.filename:
        order = "C" if array.flags.c_contiguous else "F"
        array = _MappedFile(str(array.filename), array.dtype, array.offset, array.shape, order)
    elif shared and not isinstance(array, da.Array | zarr.Array):
        raise TypeError(
            f"{name} must be an array of zarr or dask or a memory map of a file where other "
            f"processes work, got {type(values).__name__}: write it with zarr.save_array"
        )
    given = tuple(int(side) for side in array.shape)
    if 0 in given or not given:
        raise ValueError(f"{name} must have at least one voxel, got shape {given}")
    lead = 0
    while len(given) - lead > 3 and given[lead] == 1:
        lead += 1
    if shape is not None and given != shape and given[lead:] == shape[-len(given[lead:]) :]:
        lead = len(given) - len(shape)
    if shape is not None and given[max(lead, 0) :] != shape:
        raise ValueError(f"{name} must have the shape of the volume, {shape}, got {given}")
    if not 1 <= len(given) - lead <= 3:
        raise ValueError(
            f"{name} must have one to three axes of voxels, after any of length 1, got {given}"
        )
    return Source(array, lead, name)
