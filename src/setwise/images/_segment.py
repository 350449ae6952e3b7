"""Segmentation of an image with strokes: the best labelling, its uncertainty and alternatives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._arguments import FloatArray, IntArray, as_flag, as_number
from setwise._foundation._base_classes import Record
from setwise._foundation._display import Bytes, as_html, certificate_rows, label_colors
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._search import completed
from setwise.fields import Field
from setwise.images._field import FieldOptions, field_from_image
from setwise.images._pixels import Pixels, as_pixels
from setwise.images._superpixels import Regions
from setwise.inference import DiverseResult, MapResult, MarginalsResult
from setwise.inference._diverse._diverse import diverse
from setwise.inference._map._solve_map import solve_map
from setwise.inference._marginals._marginals import marginals

# The tolerance of marginals whose entropy is only displayed, in 256 shades.
MARGINALS_TOL = 1e-2
# The relative gap at which a search for labels ends. Displays show tenths of a percent.
TOL = 1e-3
# The number of alternatives: as many as fit side by side into the strip of the page.
N_ALTERNATIVES = 6


@dataclass(frozen=True, eq=False, repr=False)
class Segmentation(Record):
    """The labels of an image's pixels, with their certificate.

    ``marginals``, ``entropy`` and ``alternatives`` take longer than the labels. They are computed
    at the first access and cached.

    Attributes
    ----------
    field : Field
        The energy.
    result : MapResult
        Its best labelling: ``value``, ``bound``, ``gap``, ``exact``.
    image : array of uint8 of shape (H, W, 3), of a volume (D, H, W, 3)
        The image as ``overlay`` shows it.
    scribbles : array of int of shape (H, W), or None
        The given scribbles.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> image = np.repeat([[10, 12, 11, 200, 203, 198]], 4, axis=0)
    >>> scribbles = np.full((4, 6), -1)
    >>> scribbles[0, 0], scribbles[3, 5] = 0, 1
    >>> found = sw.images.segment(image, scribbles)
    >>> found.label_image[0].tolist(), found.exact
    ([0, 0, 0, 1, 1, 1], True)
    >>> found.entropy_image.shape, found.alternatives.label_images.shape, found.overlay().shape
    ((4, 6), (3, 4, 6), (4, 6, 3))
    """

    _printed = "shape value bound gap exact labels interrupted"

    field: Field
    result: MapResult
    image: NDArray[np.uint8]
    scribbles: IntArray | None

    @property
    def shape(self) -> tuple[int, ...]:
        """The sides of the image."""
        return self.image.shape[:-1]

    @property
    def labels(self) -> IntArray:
        """The label of each pixel, (N,)."""
        return self.result.labels

    @property
    def label_image(self) -> IntArray:
        """The same values in the shape of the image, (H, W)."""
        return self.result.label_image

    @property
    def certificate(self) -> MapResult:
        """The certificate of the labels, ``result``."""
        return self.result

    @property
    def value(self) -> float:
        """The energy of the labels."""
        return self.result.value

    @property
    def bound(self) -> float:
        """The lower bound on the energy of all labellings."""
        return self.result.bound

    @property
    def gap(self) -> float:
        """The gap, value - bound."""
        return self.result.gap

    @property
    def exact(self) -> bool:
        """Whether no labelling is better, up to rounding."""
        return self.result.exact

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search for the labels; the bound is valid even then."""
        return self.result.interrupted

    @cached_property
    def marginals(self) -> MarginalsResult:
        """The probabilities of the labels; Ctrl-C raises ``KeyboardInterrupt``."""
        return completed(marginals(self.field, tol=MARGINALS_TOL))

    @property
    def entropy(self) -> FloatArray:
        """The entropy of each pixel's label, (N,), in nats; 0 if its label is certain."""
        return self.marginals.entropy

    @property
    def entropy_image(self) -> FloatArray:
        """The same values in the shape of the image, (H, W)."""
        return self.marginals.entropy_image

    @property
    def probability_image(self) -> FloatArray:
        """The probabilities of the labels, (H, W, L)."""
        return self.marginals.probability_image

    @cached_property
    def alternatives(self) -> DiverseResult:
        """Six labellings of low energy that differ visibly, the best one first."""
        return completed(diverse(self.field, N_ALTERNATIVES))

    def overlay(
        self,
        labels: ArrayLike | None = None,
        *,
        opacity: float = 0.5,
        scribbles: bool = True,
    ) -> NDArray[np.uint8]:
        """Return the image with its labels as colours, (H, W, 3) uint8.

        Parameters
        ----------
        labels : array-like of int of shape (N,) or (H, W), optional
            The labels to show, for instance an alternative; by default the best labels.
        opacity : float
            The opacity of the colours, 0 to 1.
        scribbles : bool
            Whether scribbles are shown, opaque.
        """
        share = as_number(opacity, "opacity", nonnegative=True)
        if share > 1:
            raise ValueError(f"opacity must be at most 1, got {share:g}")
        shown = self.labels if labels is None else _as_labels(labels, self.field)
        colors = label_colors(self.field.n_labels)
        picture = overlaid(self.image, shown.reshape(self.shape), colors, share)
        if as_flag(scribbles, "scribbles") and self.scribbles is not None:
            picture = overlaid(picture, self.scribbles, colors, 1.0)
        return picture

    def _repr_html_(self) -> str:
        best = self.result
        rows = certificate_rows(best.value, best.bound, best.relative_gap, best.exact)
        rows += [("shape", self.shape), ("labels", self.field.n_labels)]
        picture = self.overlay()
        while picture.ndim > 3:
            picture = picture[len(picture) // 2]
        return as_html("Segmentation", rows, [("labels", picture)])


def _as_labels(labels: ArrayLike, field: Field) -> IntArray:
    array = np.asarray(labels)
    flat = array.ravel()
    if array.shape not in ((field.n_variables,), field.shape):
        raise ValueError(
            f"labels must have shape {field.shape} or ({field.n_variables},), got {array.shape}"
        )
    field.energy(flat)  # checks the labels
    return flat


@hints_at_names
def segment(
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
    time_limit: float | None = None,
    n_jobs: int | None = None,
) -> Segmentation:
    """Label the pixels of an image, from scribbles, boxes or probabilities.

    Parameters
    ----------
    image, scribbles, probabilities, boxes, n_labels, colors, smoothness, regions, \
    channel_axis, options
        As in ``field_from_image``: scribbles are labels, -1 where nothing was drawn.
    time_limit, n_jobs
        As in ``sw.solve_map``, for the labels. With two labels the result is optimal; with more the
        search ends at a relative gap of 1e-3. ``sw.solve_map(found.field, tol=...)`` reaches
        smaller gaps.

    Returns
    -------
    Segmentation
        ``labels``, ``label_image``, ``certificate``, ``entropy``, ``alternatives``, ``overlay``.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> image = np.zeros((20, 30), np.uint8)
    >>> image[5:15, 8:22] = 200
    >>> found = sw.images.segment(image, boxes=[3, 4, 18, 26])
    >>> bool((found.label_image == (image > 0)).all()), found.exact
    (True, True)
    """
    field = field_from_image(
        image,
        scribbles,
        probabilities=probabilities,
        boxes=boxes,
        n_labels=n_labels,
        colors=colors,
        smoothness=smoothness,
        regions=regions,
        channel_axis=channel_axis,
        options=options,
    )
    best = solve_map(field, tol=TOL, time_limit=time_limit, n_jobs=n_jobs)
    shown = as_bytes(as_pixels(image, channel_axis, field.shape))
    marks = None if scribbles is None else np.array(scribbles, np.int64)
    return Segmentation(field, best, shown, marks)


def as_bytes(pixels: Pixels) -> Bytes:
    """Return the image as bytes with three channels.

    The first three channels are colours. If there are fewer, the first one is repeated.

    Numbers other than bytes are rescaled, so that the least is black and the largest white; real
    numbers from 0 to 1 are not rescaled.
    """
    values = pixels.values
    chosen = values[:, :3] if values.shape[1] >= 3 else values[:, :1]
    if chosen.dtype != np.uint8:
        numbers = chosen.astype(np.float64)
        low, high = float(numbers.min()), float(numbers.max())
        if chosen.dtype.kind == "f" and low >= 0.0 and high <= 1.0:
            low, high = 0.0, 1.0
        numbers = (numbers - low) / (high - low if high > low else 1.0)
        chosen = np.round(255 * numbers).astype(np.uint8)
    return np.broadcast_to(chosen, (len(chosen), 3)).reshape(*pixels.shape, 3).copy()


def overlaid(image: Bytes, labels: IntArray, colors: Bytes, opacity: float) -> Bytes:
    """Return labels (H, W) as colours (L, 3) over an image (H, W, 3); -1 keeps a pixel."""
    share = round(256 * opacity)
    mixed = image.astype(np.uint16) * (256 - share) + colors[labels].astype(np.uint16) * share
    return np.where((labels >= 0)[..., None], (mixed >> 8).astype(np.uint8), image)
