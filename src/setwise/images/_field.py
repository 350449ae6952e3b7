"""The field of an image with scribbles, boxes or probabilities."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._arguments import (
    FloatArray,
    IntArray,
    as_array,
    as_choice,
    as_count,
    as_number,
)
from setwise._foundation._base_classes import Record
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._warnings import warn_caller
from setwise.fields import Field, Potential, Potts, RobustPn
from setwise.images._boxes import as_boxes, inside_boxes, refit_until_still
from setwise.images._colors import ColorModel
from setwise.images._contrast import contrast_edges
from setwise.images._location import location_costs
from setwise.images._pixels import Pixels, as_marks, as_pixels, as_spacing
from setwise.images._superpixels import Regions, as_layers

COLORS = ("mixture", "histogram")
# The default weights, in nats. SMOOTHNESS is the cost of a unit of border without contrast for
# colours, and the second constant is that for probabilities of a network, which are less noisy. The
# third is the weight of the distance from strokes. Chosen by hand; no measurement is on record.
SMOOTHNESS, _SMOOTHNESS_OF_PROBABILITIES = 15.0, 3.0
LOCATION = 4.0
# The least probability. Lower probabilities of a network are raised to it, because networks are
# overconfident. Not tuned.
_SUREST = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class FieldOptions(Record):
    """Settings of the field of an image that few images need.

    Parameters
    ----------
    beta : float, optional
        By default one over twice the mean of :math:`|I_i - I_j|^2` over the edges.
    location : float
        The largest cost of the distance to a label's strokes, in nats. It is multiplied by a
        pixel's distance to these strokes, divided by the sum of its distances to the strokes of all
        labels.
    connectivity : int, optional
        4 or 8 in an image, 6, 18 or 26 in a volume; by default 8 and 6.
    region_weight : float
        The price, in nats, of each pixel that differs from its region's most common label. Beyond
        30 % of the pixels the price is constant.
    spacing : sequence of float, optional
        The distance of neighbouring pixels along each side, for instance (2.0, 0.5, 0.5) of a
        volume with thick slices: the price of a border between neighbours is divided by their
        distance, in units of the smallest. The default is the spacing of the file if the image is a
        result of ``sw.images.read``, otherwise 1.

    Examples
    --------
    >>> import setwise as sw
    >>> image = [[10, 12, 11, 200, 203, 198]] * 4
    >>> options = sw.images.FieldOptions(connectivity=4)
    >>> field = sw.images.field_from_image(image, boxes=[0, 0, 4, 3], options=options)
    >>> len(field.potentials[0].edges)
    38
    """

    beta: float | None = None
    location: float = LOCATION
    connectivity: int | None = None
    region_weight: float = 1.0
    spacing: tuple[float, ...] | None = None


@hints_at_names
def field_from_image(
    image: ArrayLike,
    scribbles: ArrayLike | None = None,
    *,
    probabilities: ArrayLike | None = None,
    boxes: ArrayLike | None = None,
    n_labels: int | None = None,
    colors: str = "mixture",
    smoothness: float | None = None,
    regions: Regions = None,
    channel_axis: int | str | None = "auto",
    options: FieldOptions | None = None,
) -> Field:
    r"""Make the field of an image: costs of colours, and neighbours that prefer to agree.

    .. math:: E(x) = \sum_i u_{i x_i} + s \sum_{ij}
        \frac{\exp(-\beta |I_i - I_j|^2)}{|i - j|} [x_i \ne x_j] + \sum_S \varphi_S(x)

    The unaries u come from the colours under ``scribbles``, from those inside and outside
    ``boxes``, or are :math:`-\log p` of ``probabilities``; pixels near a stroke are more likely to
    have its label. Scribbled pixels keep their label: the unaries of other labels are infinite
    there.

    Parameters
    ----------
    image : array-like of shape (H, W), (H, W, C), (D, H, W) or (D, H, W, C)
        Grey or channels, of any real type and range; or what ``sw.images.read`` returned.
    scribbles : array-like of int of the image's shape without channels, optional
        The label of each marked pixel, -1 elsewhere.
    probabilities : array-like of the shape of ``scribbles`` and (L,) more, optional
        Probabilities of a network. Those below 1e-6 are raised to 1e-6.
    boxes : array-like of int of shape (4,) or (B, 4), optional
        Rows and columns of the object: (top, left, bottom, right), where the last two are
        exclusive; for a volume 6 numbers. Outside all boxes the label is 0. Inside, the object (1)
        is found as in GrabCut: colour models and labels alternate until nothing changes.
    n_labels : int, optional
        The number L of labels; by default one more than the largest label in the scribbles, at
        least 2.
    colors : {"mixture", "histogram"}
        The colour model of a label: five Gaussians, or counts.
    smoothness : float, optional
        s, the price of a unit of border without contrast, in nats; by default 15 for colours, and 3
        for probabilities, which are more informative.
    regions : int, mapping, label map or a sequence of these, optional
        Layers of superpixels that prefer one label. An integer is the number of superpixels for
        scikit-image's SLIC, a mapping has its arguments, and an array of the image's shape is a
        layer, with -1 for pixels without a region.
    channel_axis : int, None or "auto"
        The axis of the channels, None if each pixel is a number. By default the shapes of scribbles
        and probabilities decide, otherwise it is the last axis if that has 1, 3 or 4 entries.
    options : FieldOptions, optional
        Settings that few fields change.

    Returns
    -------
    Field
        A field with a variable per pixel, in C order; its ``shape`` is the image's.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> image = np.repeat([[10, 12, 11, 200, 203, 198]], 4, axis=0)
    >>> scribbles = np.full((4, 6), -1)
    >>> scribbles[0, 0], scribbles[3, 5] = 0, 1
    >>> field = sw.images.field_from_image(image, scribbles)
    >>> sw.solve_map(field).label_image[0].tolist()
    [0, 0, 0, 1, 1, 1]
    """
    as_choice(colors, "colors", COLORS)
    pixels = as_pixels(image, channel_axis, _sides_of(scribbles, probabilities))
    marks = as_marks(scribbles, pixels.shape, "scribbles")
    inside = None if boxes is None else inside_boxes(as_boxes(boxes, pixels.shape), pixels.shape)
    chances = _as_probabilities(probabilities, pixels.shape)
    labels = _count_labels(n_labels, marks, chances)
    usual = SMOOTHNESS if chances is None else _SMOOTHNESS_OF_PROBABILITIES
    price = usual if smoothness is None else as_number(smoothness, "smoothness", nonnegative=True)
    settings = FieldOptions() if options is None else options
    if not isinstance(settings, FieldOptions):
        raise TypeError(
            f"options must be a FieldOptions of sw.images or None, got {type(options).__name__}"
        )
    scale = None if settings.beta is None else as_number(settings.beta, "beta", nonnegative=True)
    place = as_number(settings.location, "location", nonnegative=True)
    if settings.spacing is not None:
        pixels = replace(pixels, spacing=as_spacing(settings.spacing, len(pixels.shape)))
    layers = as_layers(regions, pixels)
    strength = as_number(settings.region_weight, "region_weight", nonnegative=True)
    if marks is None and chances is None and inside is None:
        raise ValueError("scribbles, probabilities or boxes must be given, got none of them")
    if chances is not None and inside is not None:
        raise ValueError("boxes must be left out where probabilities are given")
    if inside is not None and labels != 2:
        raise ValueError(f"n_labels must be 2 where boxes are given, got {labels}")

    edges, weights = _edges(pixels, settings.connectivity, scale)
    if marks is not None and (marks >= 0).all():
        warn_caller(
            "scribbles mark every pixel, and nothing is left to find: they must hold -1 where "
            "nothing was drawn"
        )
    potentials: list[Potential] = [Potts(edges, price * weights)]
    for layer in layers:
        sizes = np.bincount(layer[layer >= 0])
        potentials.append(
            RobustPn(layer, weight=0.3 * strength * sizes, truncation=0.3, relative=True)
        )

    def field_of(unary: FloatArray) -> Field:
        field = Field(unary, shape=pixels.shape)
        for potential in potentials:
            field = field + potential
        return field

    if chances is not None:
        return field_of(seeded(-np.log(np.maximum(chances, _SUREST)), marks))
    model = ColorModel(pixels, colors)
    if inside is not None:
        return refit_until_still(model, inside, marks, field_of)
    assert marks is not None
    if not (marks >= 0).any():
        raise ValueError("scribbles must mark at least one pixel, got -1 everywhere")
    unary = model.costs(marks, labels)
    if place > 0:
        unary += location_costs(marks, pixels.shape, labels, place, pixels.spacing)
    return field_of(seeded(unary, marks))


def _edges(pixels: Pixels, connectivity: object, beta: float | None) -> tuple[IntArray, FloatArray]:
    axes = len(pixels.shape)
    known = {2: (4, 8), 3: (6, 18, 26)}[axes]
    count = {2: 8, 3: 6}[axes] if connectivity is None else as_count(connectivity, "connectivity")
    if count not in known:
        words = " or ".join(map(str, known))
        raise ValueError(f"connectivity must be {words} in {axes} dimensions, got {count}")
    return contrast_edges(pixels, count, beta)


def seeded(unary: FloatArray, marks: IntArray | None) -> FloatArray:
    """Forbid all labels but the marked one in costs (N, L) of marked pixels, in place."""
    if marks is not None:
        known = np.flatnonzero(marks >= 0)
        unary[known] = np.inf
        unary[known, marks[known]] = 0.0
    return unary


def _sides_of(
    scribbles: ArrayLike | None, probabilities: ArrayLike | None
) -> tuple[int, ...] | None:
    """Return the image's sides if another array determines them."""
    if scribbles is not None:
        return as_array(scribbles, "scribbles").shape
    if probabilities is not None:
        return as_array(probabilities, "probabilities").shape[:-1]
    return None


def _as_probabilities(
    probabilities: ArrayLike | None, shape: tuple[int, ...]
) -> NDArray[np.float64] | None:
    """Return probabilities (N, L), rows that sum to 1."""
    if probabilities is None:
        return None
    array = as_array(probabilities, "probabilities")
    if array.dtype.kind != "f":
        raise TypeError(f"probabilities must hold real numbers, got dtype {array.dtype}")
    if array.ndim != len(shape) + 1 or array.shape[:-1] != shape or array.shape[-1] == 0:
        hint = ": the labels are the last axis" if array.shape[1:] == shape else ""
        wanted = ", ".join(map(str, shape))
        raise ValueError(f"probabilities must have shape ({wanted}, L), got {array.shape}{hint}")
    rows = array.reshape(-1, array.shape[-1]).astype(np.float64)
    sums = rows.sum(axis=1)
    if not (np.isfinite(sums).all() and rows.min() >= 0 and np.abs(sums - 1).max() < 1e-2):
        raise ValueError(
            "probabilities must be at least 0 and sum to 1 over the last axis, got "
            f"numbers from {rows.min():g} to {rows.max():g} with sums from {sums.min():g} to "
            f"{sums.max():g}"
        )
    return rows


def _count_labels(
    n_labels: int | None, marks: IntArray | None, chances: NDArray[np.float64] | None
) -> int:
    largest = -1 if marks is None else int(marks.max())
    if chances is not None:
        said = int(chances.shape[1])
        if n_labels is not None and as_count(n_labels, "n_labels", least=1) != said:
            raise ValueError(f"n_labels must be the {said} of probabilities, got {n_labels}")
        if largest >= said:
            raise ValueError(
                f"scribbles must hold labels below the {said} of probabilities, got {largest}"
            )
        return said
    if n_labels is None:
        return max(2, largest + 1)
    count = as_count(n_labels, "n_labels", least=1)
    if largest >= count:
        raise ValueError(f"n_labels must be above the label {largest} in scribbles, got {count}")
    return count
