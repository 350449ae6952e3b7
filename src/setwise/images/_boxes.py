"""Segmentation of an object in a box, alternating between colour models and labels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray, as_array
from setwise._foundation._search import completed
from setwise.fields import Field
from setwise.images._colors import ColorModel
from setwise.inference._map._solve_map import solve_map


def as_boxes(boxes: ArrayLike, shape: tuple[int, ...]) -> IntArray:
    """Return boxes (B, 2, d): first corners, and corners one past the last."""
    array = as_array(boxes, "boxes")
    axes = len(shape)
    if array.ndim == 1:
        array = array[None]
    if array.ndim != 2 or array.shape[1] != 2 * axes or not len(array):
        raise ValueError(
            f"boxes must have shape (B, {2 * axes}) in {axes} dimensions, got {np.shape(boxes)}"
        )
    if array.dtype.kind not in "iu":
        raise TypeError(f"boxes must hold integers, got dtype {array.dtype}")
    corners = array.astype(np.int64).reshape(-1, 2, axes)
    for first, last in corners:
        if (first < 0).any() or (last > shape).any() or (first >= last).any():
            raise ValueError(
                f"boxes must lie within the image of shape {shape} and have a pixel, "
                f"got {[*first.tolist(), *last.tolist()]}"
            )
    return corners


def inside_boxes(corners: IntArray, shape: tuple[int, ...]) -> BoolArray:
    """Return the mask (N,) of pixels inside a box."""
    inside = np.zeros(shape, np.bool_)
    for first, last in corners:
        inside[tuple(slice(low, high) for low, high in zip(first, last, strict=True))] = True
    return inside.ravel()


def refit_until_still(
    model: ColorModel,
    inside: BoolArray,
    marks: IntArray | None,
    field_of: Callable[[FloatArray], Field],
) -> Field:
    """Find a field whose best labelling reproduces the colour models of the field (GrabCut).

    Initially all pixels inside a box have label 1. Pixels outside have label 0, and marked pixels
    keep their labels.
    """
    fixed = np.where(inside, -1, 0)
    if marks is not None:
        fixed = np.where(marks >= 0, marks, fixed)
    labels = np.where(fixed >= 0, fixed, 1)
    known = fixed >= 0
    barred = np.zeros((len(fixed), 2), np.bool_)
    barred[known, 1 - fixed[known]] = True
    seen: set[bytes] = set()
    while True:
        unary = model.costs(labels, 2, covering=True)
        unary[barred] = np.inf
        field = field_of(unary)
        # The fit of a mixture is not exact, so the rounds may repeat a labelling. Three to twenty
        # rounds are usual.
        if not (labels == 1).any() or labels.tobytes() in seen:
            return field
        seen.add(labels.tobytes())
        labels = completed(solve_map(field, tol=np.inf, init=labels)).labels
