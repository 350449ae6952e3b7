"""Groups in the format OME-Zarr: the array of the highest resolution, its spacing and units."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zarr

_NAMES = ("z", "y", "x")


class OmeImage(NamedTuple):
    """The first image of a group."""

    array: zarr.Array
    spacing: tuple[float, ...]
    """the distance of voxels along each axis of space"""
    unit: str | None


def read_ome(group: zarr.Group, name: str) -> OmeImage:
    """Return the first image of an OME-Zarr group, of version 0.4 or 0.5."""
    attributes: Any = dict(group.attrs)
    where = f"{name} must be an OME-Zarr image"
    try:
        image = attributes.get("ome", attributes)["multiscales"][0]
        axes = [dict(axis) for axis in image["axes"]]
        path = image["datasets"][0]["path"]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(
            f"{where}, got a group {group.store_path} without multiscales, axes or datasets"
        ) from error
    try:
        array = group[path]
    except KeyError:
        raise ValueError(f"{where}, got one without its array {path!r}") from None
    if not isinstance(array, zarr.Array) or len(axes) != array.ndim:
        raise ValueError(f"{where} with an axis for each of its sides, got {len(axes)} axes")
    space = [k for k, axis in enumerate(axes) if axis.get("type", axis.get("name")) == "space"]
    if not space:  # axes of version 0.4 may have no type
        space = [k for k, axis in enumerate(axes) if axis.get("name") in _NAMES]
    if not space or space != list(range(array.ndim - len(space), array.ndim)):
        names = [axis.get("name") for axis in axes]
        raise ValueError(f"{where} whose last axes are those of space, got axes {names}")
    for k in range(array.ndim - len(space)):
        if array.shape[k] != 1:
            raise ValueError(
                f"{name} must have one entry along axis {axes[k].get('name')!r}, got "
                f"{array.shape[k]}: give one channel or time as an array"
            )
    scale = np.ones(array.ndim)
    for source in (image["datasets"][0], image):
        for transformation in source.get("coordinateTransformations", []):
            if transformation.get("type") == "scale":
                scale = scale * np.array(transformation["scale"], np.float64)
    spacing = tuple(float(step) for step in scale[space])
    return OmeImage(array, spacing, axes[space[-1]].get("unit"))


def ome_labels(spacing: Sequence[float], unit: str | None) -> dict[str, Any]:
    """Return the attributes of a group whose array "0" has labels, in version 0.5."""
    axes: list[dict[str, str]] = [
        {"name": name, "type": "space", **({} if unit is None else {"unit": unit})}
        for name in _NAMES[3 - len(spacing) :]
    ]
    scale = {"type": "scale", "scale": [float(step) for step in spacing]}
    dataset = {"path": "0", "coordinateTransformations": [scale]}
    return {
        "version": "0.5",
        "multiscales": [{"name": "labels", "axes": axes, "datasets": [dataset]}],
        "image-label": {"colors": [{"label-value": 1, "rgba": [255, 128, 0, 255]}]},
    }


def opened(values: Any, name: str) -> Any:
    """Return the array or group at a path, and anything else as it is."""
    if not isinstance(values, str | Path):
        return values
    try:
        return zarr.open(str(values), mode="r")
    except Exception as error:  # zarr raises errors of many kinds
        raise ValueError(
            f"{name} must be an array or an OME-Zarr group on disk, got {str(values)!r}, which "
            f"zarr cannot open ({type(error).__name__}: {error})"
        ) from error
