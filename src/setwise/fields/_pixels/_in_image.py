"""The conversion of values per variable to the shape of the image."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray


def in_image(values: NDArray[Any], shape: tuple[int, ...] | None, axis: int = 0) -> NDArray[Any]:
    """Replace the axis of the variables by the sides of the image."""
    if shape is None:
        raise ValueError(
            "the image's shape must be known, got a result of a field without: make the field by "
            "sw.images.field_from_image, from grid_edges, or as Field(unary, shape=shape)"
        )
    return values.reshape(*values.shape[:axis], *shape, *values.shape[axis + 1 :])
