"""An image or a volume from a file, with the metadata of its axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._base_classes import Record


@dataclass(frozen=True, eq=False, repr=False)
class Picture(Record):
    """An image or a volume from a file.

    It can be passed wherever an image is expected. ``segment`` and ``field_from_image`` then read
    the axis of the channels and the spacing from it.

    Attributes
    ----------
    pixels : array of shape (H, W), (H, W, C), (D, H, W) or (D, H, W, C)
        The numbers of the file.
    channel_axis : int, None or "auto"
        The axis of the channels, None if each pixel is a number, and "auto" if it is not known.
    spacing : tuple of float, or None
        The distance between neighbouring pixels along each side, None if the file has none.
    unit : str or None
        The unit of ``spacing``, for instance "micrometer".
    affine : array of shape (4, 4), or None
        The map from indices (x, y, z) to the space of the scanner, of a NIfTI file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import setwise as sw
    >>> path = Path(tempfile.mkdtemp(), "cells.npy")
    >>> np.save(path, np.zeros((4, 20, 30), np.uint8))
    >>> stack = sw.images.read(path)
    >>> stack.shape, stack.spacing
    ((4, 20, 30), None)
    """

    _printed = "shape channel_axis spacing unit"

    pixels: NDArray[Any]
    channel_axis: int | str | None = "auto"
    spacing: tuple[float, ...] | None = None
    unit: str | None = None
    affine: NDArray[np.float64] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array, with the channels."""
        return self.pixels.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy:
            return np.array(self.pixels, dtype=dtype)
        return np.asarray(self.pixels, dtype=dtype)
