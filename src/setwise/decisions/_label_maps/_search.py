"""The label map of least expected loss, from probabilities of classes that exclude each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise._foundation._certificate import EPS
from setwise.decisions._label_maps._decision import LabelDecision
from setwise.decisions._presence import believed
from setwise.losses import Loss

# The error of the kernel's expectations and of its bounds: eight powers of probabilities per bin
# leave 1e-12 of an element, and the bounds are rounded outwards by 1e-9 (``label_bound.hpp``).
_KERNEL = 2e-9
# Up to this number of probabilities, classes and elements are sorted by their probabilities before
# the search. Its result then does not depend on their order, which otherwise decides between maps
# that are nearly equally good. Not tuned.
_SORTED = 1 << 16


def find_label_maps(
    p: NDArray[Any],
    loss: Loss,
    *,
    per_image: bool,
    weights: FloatArray | None,
    presence: FloatArray | None,
    present: bool,
    ignore: BoolArray | None,
    law: str,
    threads: int,
    slack: float,
) -> LabelDecision:
    r"""Return label maps for probabilities (B, C, P) of float32 or float64.

    With m the expected size of a class, k the size of its mask and a their expected overlap, the
    expected score is first approximated by a / (m + k - a) (Jaccard) or (1 + b) a / (k + b m)
    (F-beta). The change of this ratio by one element is linear in the probability of the element.
    The ascent of ``cpp/decisions/label_map.hpp`` starts from three maps: of the most probable
    classes, of probabilities relative to the sizes of the classes, and of the gains at the best
    masks of the classes alone. Of the maps found, the one of the largest expected score is kept,
    which is computed by quadrature (``ratio_moments.hpp``). The bound prices each element by its
    largest linear gain (``label_bound.hpp``). ``slack`` is the largest accepted difference between
    1 and the sum of an element's probabilities.

    ``presence`` has shape (B, C), or (C,) for all images together. It changes the law of each class
    as in ``_presence.py``: the expected score of a mask is 1 / c times that of the probabilities
    c p, and that of an empty mask is the probability that the class is absent. With ``present``,
    absent classes do not count: an empty mask scores 0, and the sum of the scores is divided by the
    expected number of present classes.
    """
    plain, factor = loss._unscaled()
    ratio = plain._fraction
    if ratio is None:
        raise ValueError(
            f"loss must be Jaccard, Dice or F-beta for exclusive classes, got {loss!r}"
            + (": the most probable class is optimal" if loss._traits.is_modular else "")
        )
    images, n_classes, n_pixels = p.shape
    n_sets = images if per_image else 1
    valid = np.empty(0, np.uint8)
    if ignore is not None:
        valid = np.ascontiguousarray(~ignore).reshape(-1).view(np.uint8)
    _check(p, valid, slack, threads)
    share = np.ones(n_classes) if weights is None else weights
    share = np.broadcast_to(share / share.sum(), (n_sets, n_classes))
    scale, absent = np.ones((n_sets, n_classes)), np.full((n_sets, n_classes), np.nan)
    if presence is not None:
        wide = p.astype(np.float64)
        if ignore is not None:
            wide *= ~ignore.reshape(images, 1, n_pixels)
        sets = np.arange(n_sets * n_classes).reshape(n_sets, n_classes, 1)
        number = np.broadcast_to(sets, p.shape).reshape(-1)
        flat, c, there = believed(wide.reshape(-1), number, presence.reshape(-1))
        p = flat.reshape(p.shape)
        scale, absent = c.reshape(scale.shape), 1 - there.reshape(scale.shape)
    counted_classes = np.ones(n_sets)
    if present:
        counted_classes = (share * (1 - absent)).sum(1)
        share = share / np.where(counted_classes > 0, counted_classes, 1.0)[:, None]
    labels = np.empty(images * n_pixels, np.int64)
    terms, bounds = np.empty((n_sets, n_classes)), np.empty(n_sets)
    b = 1.0 if ratio.beta is None else ratio.beta**2
    taken, gone = share / scale, 0 * share if present else share * absent
    order = _orders(p, ignore) if p.size <= _SORTED else None
    if order is not None:
        classes, places = order
        p = np.ascontiguousarray(np.take_along_axis(p[:, classes], places[:, None], axis=2))
        scale, taken, gone = scale[:, classes], taken[:, classes], gone[:, classes]
        if ignore is not None:
            valid = np.take_along_axis(valid.reshape(images, -1), places, axis=1).reshape(-1)
    _core.label_maps(
        p,
        valid,
        per_image,
        ratio.beta is None,
        b,
        np.ascontiguousarray(scale),
        np.ascontiguousarray(taken),
        np.ascontiguousarray(gone),
        threads,
        labels,
        terms,
        bounds,
    )
    if order is not None:
        classes, places = order
        found, named = labels.reshape(images, n_pixels).copy(), terms.copy()
        np.put_along_axis(labels.reshape(images, n_pixels), places, classes[found], axis=1)
        terms[:, classes] = named
    if ignore is not None:
        labels[ignore.reshape(-1)] = -1
    counted = np.full(n_sets, float(n_pixels if per_image else images * n_pixels))
    error = np.abs(factor) * (_KERNEL + 8 * EPS * (counted + 8)) * np.maximum(share.sum(1), 1.0)
    nothing = counted_classes <= 0  # no class occurs
    expected = np.where(nothing, 0.0, np.maximum(factor * (1 - terms.sum(1)), 0.0))
    bound = np.clip(factor * (1 - bounds) - error, 0.0, expected)
    if n_classes == 1:  # this is the only map
        bound = np.maximum(expected - error, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = share * (1 - absent) if present else share
        of_classes = factor * (1 - np.where(unit > 0, terms / unit, 0.0))
    of_classes = np.clip(np.where(unit > 0, of_classes, np.nan), 0.0, None)
    exact = expected - bound <= 3 * error
    if per_image:
        return LabelDecision(labels, expected, of_classes, bound, error, exact, "ascent", law)
    return LabelDecision(
        labels,
        float(expected[0]),
        of_classes[0],
        float(bound[0]),
        float(error[0]),
        bool(exact[0]),
        "ascent",
        law,
    )


def _orders(p: NDArray[Any], ignore: BoolArray | None) -> tuple[IntArray, IntArray]:
    """Return the classes (C,) and the elements of each image (B, P), sorted by probabilities."""
    if ignore is not None:
        p = np.where(ignore.reshape(len(p), 1, -1), 0, p)
    sizes = np.sort(p.transpose(1, 0, 2).reshape(p.shape[1], -1), axis=1).sum(axis=1)
    classes = np.argsort(sizes, kind="stable")
    places = [np.lexsort(image[classes]) for image in p]
    return classes, np.array(places, np.int64).reshape(len(p), p.shape[2])


def _check(p: NDArray[Any], valid: NDArray[np.uint8], slack: float, threads: int) -> None:
    """Check that the probabilities of each element lie in [0, 1] and sum to 1."""
    low, high, total = _core.probability_range(p, valid, threads)
    if not (low >= 0 and high <= 1 + slack):
        raise ValueError(f"probabilities must lie in [0, 1], got {low if not low >= 0 else high:g}")
    if p.size and abs(total - 1) > slack:
        raise ValueError(
            "probabilities must sum to 1 over the classes of each element for exclusive classes, "
            f"got {total:g}: leave classes='exclusive' out for masks that may overlap"
        )
