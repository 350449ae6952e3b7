"""The arguments of decisions for exclusive classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._arguments import BoolArray, as_array, as_choice, as_numbers
from setwise.decisions._label_maps._decision import LabelDecision
from setwise.decisions._label_maps._search import find_label_maps
from setwise.inference import DiverseResult, MarginalsResult
from setwise.losses import Loss


def decide_classes(
    probabilities: ArrayLike | MarginalsResult | DiverseResult,
    loss: Loss,
    sets: str,
    weights: ArrayLike | None,
    presence: ArrayLike | None,
    present: bool,
    ignore: ArrayLike | None,
    threads: int,
) -> LabelDecision:
    """Return the label map of least expected loss that was found, in the shape of the elements."""
    law = "independent elements"
    if isinstance(probabilities, DiverseResult):
        raise TypeError(
            "probabilities must be an array or marginals for exclusive classes, got a DiverseResult"
        )
    if isinstance(probabilities, MarginalsResult):
        probabilities, law = probabilities.probabilities, "the product of the marginals"
    array = as_array(probabilities, "probabilities")
    p, shape = _in_planes(array)
    images, n_classes, _ = p.shape
    sets = as_choice(sets, "sets", ("auto", "rows", "cells"))
    per_image = sets == "rows"
    if per_image and len(shape) == 1:
        raise ValueError("sets must be 'auto' for probabilities of shape (n, C), got 'rows'")
    share = None
    if weights is not None:
        share = as_numbers(weights, "weights", shape=(n_classes,), nonnegative=True)
        if not share.any():
            raise ValueError("weights must not all be 0")
    there = None
    if present and presence is None:
        raise ValueError("presence must be given for classes='present', got None")
    if presence is not None:
        wanted = (images, n_classes) if per_image else (n_classes,)
        there = as_numbers(presence, "presence", shape=wanted, nonnegative=True)
        if there.size and there.max() > 1:
            raise ValueError(f"presence must lie in [0, 1], got {there.max():g}")
        law += " of classes that are there or not"
    found = find_label_maps(
        p,
        loss,
        per_image=per_image,
        weights=share,
        presence=there,
        present=present,
        ignore=None if ignore is None else _mask(ignore, shape),
        law=law,
        threads=threads,
        slack=1e-2 if array.dtype == np.float16 else 1e-4,
    )
    found.labels.shape = shape
    return found


def _in_planes(array: NDArray[Any]) -> tuple[NDArray[Any], tuple[int, ...]]:
    """Return probabilities as (B, C, P), and the shape of the elements."""
    if array.dtype.kind not in "fiub":
        raise TypeError(f"probabilities must hold real numbers, got dtype {array.dtype}")
    if array.ndim < 2 or array.shape[1] < 1:
        raise ValueError(
            "probabilities must have shape (B, C, ...) or (n, C) for exclusive classes, "
            f"got {array.shape}"
        )
    if array.dtype != np.float32:
        array = array.astype(np.float64)
    if array.ndim == 2:
        return np.ascontiguousarray(array.T)[None], array.shape[:1]
    shape = (array.shape[0], *array.shape[2:])
    planes = array.reshape(*array.shape[:2], int(np.prod(array.shape[2:])))
    return np.ascontiguousarray(planes), shape


def _mask(ignore: ArrayLike, shape: tuple[int, ...]) -> BoolArray:
    mask: BoolArray = as_array(ignore, "ignore")
    if mask.dtype != np.bool_:
        raise TypeError(f"ignore must be boolean, got dtype {mask.dtype}")
    if mask.shape != shape:
        raise ValueError(f"ignore must have shape {shape}, that of the elements, got {mask.shape}")
    return mask
