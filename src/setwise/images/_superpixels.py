"""Layers of superpixels of an image, given or computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import IntArray, as_array, as_choice
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
        return superpixels(pixels, n_segments=int(given))
    if isinstance(given, Mapping):
        return superpixels(pixels, **given)
    array = as_array(given, "regions")
    if array.shape != pixels.shape:
        raise ValueError(f"regions must have the image's shape {pixels.shape}, got {array.shape}")
    return as_regions(array)


# The methods of scikit-image, with the arguments that a mapping may change. Quick shift seeks the
# modes of a density, as mean shift does.
_METHODS: dict[str, dict[str, Any]] = {
    "slic": {"start_label": 0, "compactness": 10.0},
    "felzenszwalb": {"scale": 100.0, "min_size": 20},
    "quickshift": {"kernel_size": 3, "max_dist": 6.0, "rng": 0},
}


def superpixels(pixels: Pixels, method: str = "slic", **options: Any) -> IntArray:
    """Return superpixels (N,) by a method of scikit-image."""
    name = as_choice(method, "method", _METHODS)
    try:
        function = getattr(load("skimage.segmentation"), name)
    except ImportError:
        raise ImportError(
            f"regions by {method} need scikit-image: install setwise with the extra app"
        ) from None
    if name != "slic" and len(pixels.shape) != 2:
        raise ValueError(f"regions of volumes must be made by 'slic', got {name!r}")
    values = pixels.values
    image = values.reshape(*pixels.shape, -1)
    asked = {**_METHODS[name], **options}
    if len(pixels.shape) == 3:
        asked = {"spacing": pixels.spacing, **asked}
    if values.dtype.kind == "f" or values.dtype != np.uint8:
        low, high = float(values.min()), float(values.max())
        image = (image.astype(np.float64) - low) / (high - low if high > low else 1.0)
    if name == "quickshift":
        asked = {"convert2lab": image.shape[-1] == 3, **asked, "channel_axis": -1}
        if not asked["convert2lab"]:  # the lightness of Lab has a range of 100
            image = image * (100.0 / 255.0 if image.dtype == np.uint8 else 100.0)
    elif image.shape[-1] == 1:
        image, asked = image[..., 0], {**asked, "channel_axis": None}
    else:
        asked["channel_axis"] = -1
    try:
        found = function(image, **asked)
    except (TypeError, ValueError, ZeroDivisionError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        shown = {"slic": "SLIC"}.get(name, name)
        raise kind(f"regions must be arguments that {shown} takes: {error}") from error
    # The caller's arguments of SLIC may set another start_label.
    return as_regions(np.asarray(found, np.int64))
