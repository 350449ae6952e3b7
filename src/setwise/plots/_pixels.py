"""Readers of images and of values per pixel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from setwise._foundation._arguments import as_array, as_count


def as_sides(
    shape: Sequence[int] | None, n_variables: int, known: Sequence[int] | None
) -> tuple[int, int]:
    """Return the given or known height and width of an image with one pixel per variable."""
    chosen = known if shape is None else shape
    if chosen is None:
        raise ValueError("shape must be given where the result does not know it, got None")
    sides = tuple(
        as_count(side, "shape", least=1) for side in as_array(chosen, "shape").ravel().tolist()
    )
    if len(sides) != 2 or sides[0] * sides[1] != n_variables:
        raise ValueError(
            f"shape must be a height and a width with {n_variables} pixels, got {sides}"
        )
    return sides[0], sides[1]


def folded(values: ArrayLike, shape: tuple[int, ...], name: str) -> Any:
    """Reshape a row of values, one for each pixel, into a map; a map is returned as it is."""
    array = as_array(values, name)
    return array.reshape(shape) if array.shape == (shape[0] * shape[1],) else array


def as_image(image: ArrayLike, shape: tuple[int, ...]) -> Any:
    """Return grey or colours in the form of matplotlib's ``imshow``."""
    array = as_array(image, "image")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"image must hold real numbers, got dtype {array.dtype}")
    if array.shape[:2] != shape or array.shape[2:] not in ((), (3,), (4,)):
        raise ValueError(
            f"image must have shape {shape}, with 3 or 4 colours or none, got {array.shape}"
        )
    return array
