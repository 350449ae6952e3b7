"""From an image, and what somebody says of it, to a field."""

from __future__ import annotations

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
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._warnings import warn_caller
from setwise.fields import Field, Potential, Potts, RobustPn
from setwise.images._boxes import as_boxes, inside_boxes, refit_until_still
from setwise.images._colors import ColorModel
from setwise.images._contrast import contrast_edges
from setwise.images._location import location_costs
from setwise.images._pixels import Pixels, as_marks, as_pixels
from setwise.images._superpixels import Regions, as_layers

COLORS = ("mixture", "histogram")
# The default weights, in nats: of a unit of border without contrast, with colours learned from an
# image and with the less noisy probabilities of a network, and of the distance from strokes.
SMOOTHNESS, _SMOOTHNESS_OF_PROBABILITIES = 15.0, 3.0
LOCATION = 4.0
# Probabilities of a network are raised to at least this, because networks are overconfident.
_SUREST = 1e-6


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
    beta: float | None = None,
    location: float = LOCATION,
    connectivity: int | None = None,
    regions: Regions = None,
    region_weight: float = 1.0,
    channel_axis: int | str | None = "auto",
) -> Field:
    r"""Make the field of an image: what each pixel looks like, and neighbours that agree.

    .. math:: E(x) = \sum_i u_{i x_i} + s \sum_{ij}
        \frac{\exp(-\beta |I_i - I_j|^2)}{|i - j|} [x_i \ne x_j] + \sum_S \varphi_S(x)

    The unaries u come from the colours under ``scribbles``, from those inside and outside
    ``boxes``, or are :math:`-\log p` of ``probabilities``; what is near a stroke is more likely to
    be meant by it. Scribbled pixels keep their label,
    whatever it costs: the unaries of the others are infinite there.

    Parameters
    ----------
    image : array-like of shape (H, W), (H, W, C), (D, H, W) or (D, H, W, C)
        Grey or channels, of any real type and range.
    scribbles : array-like of int of the image's shape without channels, optional
        The label of each pixel that somebody has marked, -1 elsewhere.
    probabilities : array-like of the shape of ``scribbles`` and (L,) more, optional
        What a network says; below 1e-6 it is taken for 1e-6.
    boxes : array-like of int of shape (4,) or (B, 4), optional
        Rows and columns where the object is: (top, left, bottom, right), the last two not within;
        of a volume 6 numbers. Outside all boxes the label is 0; inside, what is object (1) and what
        is not is found as GrabCut does: colours from labels and labels from colours, until nothing
        changes.
    n_labels : int, optional
        L; by default one more than the largest label in the scribbles, at least 2.
    colors : {"mixture", "histogram"}
        How the colours of a label are learned: five Gaussians, or counts.
    smoothness : float, optional
        s, the price of a unit of border where the image does not change, in nats; by default 15
        for colours, which say little of a pixel, and 3 for probabilities, which say more.
    beta : float, optional
        By default one over twice the mean of :math:`|I_i - I_j|^2` over the edges.
    location : float
        What it costs to be far from the strokes of a label and near those of others, in nats: that
        times the share of a pixel's distance in the sum of its distances to all labels' strokes.
    connectivity : int, optional
        4 or 8 in an image, 6, 18 or 26 in a volume; by default 8 and 6.
    regions : int, mapping, label map or a sequence of these, optional
        Layers of superpixels that prefer one label. An integer is how many superpixels
        scikit-image's SLIC is asked for, a mapping are its arguments, an array of the image's shape
        is a layer, -1 for pixels of no region.
    region_weight : float
        The price of each pixel that differs from the rest of its region, in nats, until 30 % do.
    channel_axis : int, None or "auto"
        The axis of the channels, None where each pixel is a number; by default the last one where
        it has 1, 3 or 4 entries, or what the shapes of scribbles and probabilities say.

    Returns
    -------
    Field
        A variable for each pixel, in C order; ``shape`` is the image's.

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
    scale = None if beta is None else as_number(beta, "beta", nonnegative=True)
    place = as_number(location, "location", nonnegative=True)
    layers = as_layers(regions, pixels)
    strength = as_number(region_weight, "region_weight", nonnegative=True)
    if marks is None and chances is None and inside is None:
        raise ValueError("scribbles, probabilities or boxes must be given, got none of them")
    if chances is not None and inside is not None:
        raise ValueError("boxes must be left out where probabilities are given")
    if inside is not None and labels != 2:
        raise ValueError(f"n_labels must be 2 where boxes are given, got {labels}")

    edges, weights = _edges(pixels, connectivity, scale)
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
        unary += location_costs(marks, pixels.shape, labels, place)
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
    """Return costs (N, L) that leave marked pixels no label but their own; written in place."""
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
