"""Volumes in OME-Zarr groups: their axes, scale and units (versions 0.4 and 0.5)."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from setwise._foundation._imports import load

_KINDS = {"t": "time", "c": "channel"}
# The longest side of a chunk of a written volume. Not tuned.
_CHUNK = 128


@dataclass(frozen=True)
class OmeImage:
    """The full resolution of a multiscale image: an array and the meaning of its axes."""

    array: Any
    """An array of zarr, of shape ``axes``."""
    axes: str
    """A letter per axis: t, c, z, y, x, or empty if the store does not say."""
    spacing: tuple[float, ...] | None
    """The distances of pixels along the axes z, y and x that there are."""
    unit: str | None


def open_ome(path: str | Path) -> OmeImage:
    """Open the full resolution of an OME-Zarr group, or an array of zarr."""
    zarr = load("zarr")
    try:
        node = zarr.open(str(path), mode="r")
    except Exception as error:  # stores raise many types of errors
        raise ValueError(f"{path} must be a zarr array or an OME-Zarr group: {error}") from None
    if hasattr(node, "shape"):
        return OmeImage(node, "", None, None)
    known = dict(node.attrs)
    scales = known.get("ome", known).get("multiscales")
    try:
        scale = scales[0]
        axes = "".join(axis["name"].lower() for axis in scale["axes"])
        first = scale["datasets"][0]
        array = node[first["path"]]
        steps = np.ones(len(axes))
        for transform in [
            *first.get("coordinateTransformations", []),
            *scale.get("coordinateTransformations", []),
        ]:
            if transform["type"] == "scale":
                steps = steps * np.asarray(transform["scale"], np.float64)
        units = {axis.get("unit") for axis in scale["axes"] if axis["name"].lower() in "zyx"}
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(
            f"{path} must have the metadata multiscales of OME-Zarr 0.4 or 0.5, with axes and "
            f"datasets, got {type(error).__name__}: {error}"
        ) from None
    if len(axes) != array.ndim or len(set(axes)) != len(axes) or set(axes) - set("tczyx"):
        raise ValueError(
            f"{path} must have axes among t, c, z, y and x, one for each of the {array.ndim} sides "
            f"of its array, got {axes!r}"
        )
    spacing = tuple(float(step) for name, step in zip(axes, steps, strict=True) if name in "zyx")
    if not all(isfinite(step) and step > 0 for step in spacing):
        raise ValueError(f"{path} must have a positive scale along each side, got {spacing}")
    return OmeImage(array, axes, spacing, units.pop() if len(units) == 1 else None)


def create_ome(
    path: str | Path,
    shape: tuple[int, ...],
    dtype: Any,
    *,
    spacing: tuple[float, ...] | None = None,
    unit: str | None = None,
    channels: bool = False,
    chunks: tuple[int, ...] | None = None,
) -> Any:
    """Create an OME-Zarr 0.5 group with one level, and return its empty array."""
    sides = len(shape) - channels
    names = [*"zyx"[3 - sides :], *(["c"] if channels else [])]
    group = load("zarr").open_group(str(path), mode="w", zarr_format=3)
    steps = [*(spacing or (1.0,) * sides), *([1.0] if channels else [])]
    axes = [
        {"name": name, "type": _KINDS.get(name, "space")}
        | ({"unit": unit} if unit is not None and name in "zyx" else {})
        for name in names
    ]
    group.attrs["ome"] = {
        "version": "0.5",
        "multiscales": [
            {
                "axes": axes,
                "datasets": [
                    {
                        "path": "0",
                        "coordinateTransformations": [{"type": "scale", "scale": steps}],
                    }
                ],
            }
        ],
    }
    return group.create_array(
        "0",
        shape=shape,
        dtype=dtype,
        chunks=chunks or tuple(min(side, _CHUNK) for side in shape),
        dimension_names=names,
    )
