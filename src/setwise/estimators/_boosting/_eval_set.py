"""``eval_set`` as users of other boosting give it: a pair of rows and labels, or several pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import IntArray, as_array


def as_eval_set(eval_set: Any, widths: tuple[int, ...] = (2,)) -> list[tuple[Any, ...]]:
    """A list of tuples of these lengths."""
    if eval_set is None:
        return []
    wanted = "(X, y)" if widths == (2,) else "(X, y) or (X, y, groups)"
    if not isinstance(eval_set, list | tuple):
        raise TypeError(
            f"eval_set must be {wanted} or a list of them, got {type(eval_set).__name__}"
        )
    several = isinstance(eval_set, list) or all(isinstance(part, tuple) for part in eval_set)
    parts: list[Any] = list(eval_set) if several else [eval_set]
    for part in parts:
        if not isinstance(part, tuple):
            raise TypeError(f"eval_set must hold pairs {wanted}, got {type(part).__name__}")
        if len(part) not in widths:
            raise ValueError(f"eval_set must hold pairs {wanted}, got a tuple of {len(part)}")
    return parts


def known_places(y: Any, classes: NDArray[Any]) -> IntArray:
    """Where each label stands among the classes of the fit."""
    labels = as_array(y, "y")
    unknown = labels[~np.isin(labels, classes)]
    if unknown.size:
        raise ValueError(
            f"y must hold the labels of fit, {classes.tolist()}, got {unknown.tolist()[0]!r}"
        )
    return np.searchsorted(classes, labels).astype(np.int64)
