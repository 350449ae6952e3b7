"""Reshaping of the variables' values to the image."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray


def in_image(values: NDArray[Any], shape: tuple[int, ...] | None, axis: int = 0) -> NDArray[Any]:
    """Reshape values to have the sides of the image in place of the axis of the variables."""
    if shape is None:
        raise ValueError(
            "the image's shape must be known, got a result of a field without: make the field by "
            "sw.images.field_from_image, from grid_edges, or as Field(unary, shape=shape)"
        )
    return values.reshape(*values.shape[:axis], *shape, *values.shape[axis + 1 :])
