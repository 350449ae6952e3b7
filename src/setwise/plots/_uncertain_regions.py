"""The most uncertain regions of an image, and their outlines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, IntArray, as_array
from setwise.fields import regions_from_labels
from setwise.fields._regions import as_regions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import PathPatch

# The size of the smallest component that is shown, in pixels and as a share of the image: about a
# square with a thirtieth of the sides. Smaller ones could hardly be seen. Chosen by hand.
_LEAST_PIXELS, _LEAST_SHARE = 10, 1e-3
# The least width of a region with a number in it, as a share of the image's width. In narrower
# regions the number would hide the region. Chosen by hand.
_WIDE = 0.2


def as_layer(regions: ArrayLike, shape: tuple[int, ...]) -> IntArray:
    """Read a layer of regions over an image, renumbered 0..R-1 in the order of its numbers."""
    array = as_array(regions, "regions")
    if array.shape != shape:
        raise ValueError(f"regions must have shape {shape}, got {array.shape}")
    return as_regions(array.ravel()).reshape(shape)


def uncertain_pieces(entropy: FloatArray, quantile: float) -> IntArray:
    """Return a layer of connected components of pixels at or above a quantile of the entropy.

    Pixels without entropy, and components of fewer than 10 pixels or a thousandth of all, are
    excluded.
    """
    high = (entropy >= np.quantile(entropy, quantile)) & (entropy > 0)
    pieces = regions_from_labels(high.astype(np.int64), ignore=0, connected=True)
    sizes = np.append(np.bincount(pieces[pieces >= 0]), 0)  # the last entry is for -1, no component
    least = max(_LEAST_PIXELS, _LEAST_SHARE * entropy.size)
    kept = np.where(sizes[pieces] >= least, pieces, -1)
    return as_layer(kept.reshape(entropy.shape), entropy.shape)


def mean_entropies(entropy: FloatArray, regions: IntArray) -> FloatArray:
    """Return the mean over the pixels of each region of a layer, (R,)."""
    inside = regions >= 0
    sums = np.bincount(regions[inside], weights=entropy[inside])
    return np.asarray(sums / np.bincount(regions[inside]))


def outline(regions: IntArray, chosen: IntArray) -> FloatArray:
    """Return the sides of pixels that bound the chosen regions, as pairs of points (S, 2, 2).

    Points are (x, y), and the centre of the pixel in row y and column x is (x, y).
    """
    kept = np.pad(np.where(np.isin(regions, chosen), regions, -1), 1, constant_values=-1)
    y, x = np.nonzero(kept[:, 1:] != kept[:, :-1])
    upright = np.stack([x - 0.5, y - 1.5, x - 0.5, y - 0.5], axis=1)
    y, x = np.nonzero(kept[1:] != kept[:-1])
    level = np.stack([x - 1.5, y - 0.5, x - 0.5, y - 0.5], axis=1)
    return np.concatenate([upright, level]).reshape(-1, 2, 2)


def draw_outlines(
    ax: Axes, regions: IntArray, chosen: IntArray, style: Mapping[str, Any]
) -> PathPatch:
    """Draw outlines as one path: a light line with a dark border, visible on any background."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path
    from matplotlib.patheffects import withStroke

    points = outline(regions, chosen).reshape(-1, 2)
    codes = np.tile(np.array([Path.MOVETO, Path.LINETO], np.uint8), len(points) // 2)
    look: dict[str, Any] = {
        "edgecolor": "white",
        "linewidth": 0.9,
        "capstyle": "projecting",
        "path_effects": [withStroke(linewidth=2.2, foreground="black")],
    }
    patch = PathPatch(Path(points, codes), **{"facecolor": "none", **look, **style})
    # Added as an artist, because a patch would change the limits of the axes.
    ax.add_artist(patch)
    return patch


def draw_ranks(ax: Axes, regions: IntArray, chosen: IntArray) -> None:
    """Draw 1, 2, ... in the regions, or beside small regions."""
    from matplotlib.patheffects import withStroke

    border = [withStroke(linewidth=2.2, foreground="black")]
    bold: dict[str, Any] = {"color": "white", "fontsize": "small", "fontweight": "bold"}
    width = regions.shape[1]
    for rank, region in enumerate(chosen, start=1):
        y, x = np.nonzero(regions == region)
        nearest = np.argmin((y - y.mean()) ** 2 + (x - x.mean()) ** 2)
        place, shift, side = (x[nearest], y[nearest]), 0, "center"
        if np.ptp(x) < _WIDE * width:
            right = x.min() + x.max() < width  # on the side with more space
            place = (x.max() + 0.5 if right else x.min() - 0.5, y.mean())
            shift, side = (3, "left") if right else (-3, "right")
        ax.annotate(
            str(rank),
            (float(place[0]), float(place[1])),
            xytext=(shift, 0),
            textcoords="offset points",
            ha=side,
            va="center",
            path_effects=border,
            **bold,
        )
