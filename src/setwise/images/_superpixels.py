"""Layers of superpixels of an image, given or computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import IntArray, as_array
from setwise._foundation._imports import load
from setwise.fields._regions import as_regions
from setwise.images._pixels import Pixels

Regions = ArrayLike | Mapping[str, Any] | Sequence[Any] | int | None


def as_layers(regions: Regions, pixels: Pixels) -> list[IntArray]:
    """Return layers (N,) of regions, -1 for none, for the argument of ``field_from_image``."""
    if regions is None:
        return []
    if isinstance(regions, int | np.integer | Mapping) or not isinstance(regions, Sequence):
        return [_layer(regions, pixels)]
    if not regions:
        return []
    if isinstance(regions[0], int | np.integer | Mapping | np.ndarray):
        return [_layer(one, pixels) for one in regions]
    return [_layer(regions, pixels)]


def _layer(given: Any, pixels: Pixels) -> IntArray:
    if isinstance(given, bool):
        raise TypeError("regions must be a number of superpixels, a layer or a list of these")
    if isinstance(given, int | np.integer):
        if given < 1:
            raise ValueError(f"regions must be at least 1 superpixel, got {given}")
        return slic_layer(pixels, n_segments=int(given))
    if isinstance(given, Mapping):
        return slic_layer(pixels, **given)
    array = as_array(given, "regions")
    if array.shape != pixels.shape:
        raise ValueError(f"regions must have the image's shape {pixels.shape}, got {array.shape}")
    return as_regions(array)


def slic_layer(pixels: Pixels, **options: Any) -> IntArray:
    """Return superpixels (N,) by scikit-image's SLIC."""
    try:
        slic = load("skimage.segmentation").slic
    except ImportError:
        raise ImportError(
            "regions by SLIC need scikit-image: install setwise with the extra app"
        ) from None
    values = pixels.values
    image = values.reshape(*pixels.shape, -1)
    asked = {"start_label": 0, "compactness": 10.0, "spacing": pixels.spacing, **options}
    if len(pixels.shape) == 2:
        asked.pop("spacing")
    if values.dtype.kind == "f" or values.dtype != np.uint8:
        low, high = float(values.min()), float(values.max())
        image = (image.astype(np.float64) - low) / (high - low if high > low else 1.0)
    if image.shape[-1] == 1:
        image, asked = image[..., 0], {**asked, "channel_axis": None}
    else:
        asked["channel_axis"] = -1
    try:
        found = slic(image, **asked)
    except (TypeError, ValueError, ZeroDivisionError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"regions must be arguments that SLIC takes: {error}") from error
    # The caller's arguments of SLIC may set another start_label.
    return as_regions(np.asarray(found, np.int64))
