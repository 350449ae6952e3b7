"""The probabilities of one set, of a batch of rows, of groups, or of sets of different sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray, as_array, as_choice
from setwise.decisions._presence import Law, believed
from setwise.losses._labels import _read_offsets


@dataclass(frozen=True, eq=False)
class SetProbabilities:
    """The probability of each element, flat: set i is at [offsets[i], offsets[i + 1]).

    ``order`` is the position of each flat entry in the given array, or None if the order is the
    same. ``single`` is true for a single set. ``scale`` and ``presence`` belong to each set's
    distribution (``_presence.py``), None for independent elements.
    """

    flat: FloatArray
    offsets: IntArray
    shape: tuple[int, ...]
    single: bool
    order: IntArray | None = None
    scale: FloatArray | None = None
    presence: FloatArray | None = None

    @property
    def n(self) -> int:
        """The number of sets."""
        return len(self.offsets) - 1

    def law(self, i: int) -> Law:
        """Return the distribution of the truth of set i."""
        p = self.flat[self.offsets[i] : self.offsets[i + 1]]
        if self.scale is None or self.presence is None:
            return Law(p)
        return Law(p, float(self.scale[i]), float(1 - self.presence[i]))

    def with_presence(self, presence: FloatArray) -> SetProbabilities:
        """Return the probabilities under which set i is not empty with probability presence[i]."""
        number = np.repeat(np.arange(self.n), np.diff(self.offsets))
        flat, scale, presence = believed(self.flat, number, presence)
        return replace(self, flat=flat, scale=scale, presence=presence)

    def in_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values per element, in the caller's order, set by set."""
        flat = values.reshape(-1)
        return flat if self.order is None else flat[self.order]

    def as_given(self, mask: BoolArray) -> BoolArray:
        """Return a flat mask in the caller's shape and order."""
        if self.order is not None:
            placed = np.empty_like(mask)
            placed[self.order] = mask
            mask = placed
        return mask.reshape(self.shape)


def read_probabilities(
    probabilities: ArrayLike,
    *,
    offsets: ArrayLike | None,
    groups: ArrayLike | None,
    sets: str,
) -> SetProbabilities:
    """Read numbers in [0, 1]: (p,), (n, p), flat with offsets, or flat with groups."""
    array = as_array(probabilities, "probabilities")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"probabilities must hold real numbers, got dtype {array.dtype}")
    if array.ndim not in (1, 2):
        raise ValueError(f"probabilities must have shape (p,) or (n, p), got {array.shape}")
    flat = np.ascontiguousarray(array, np.float64).reshape(-1)
    wrong = ~((flat >= 0) & (flat <= 1))
    if wrong.any():
        raise ValueError(f"probabilities must lie in [0, 1], got {flat[wrong][0]:g}")
    sets = as_choice(sets, "sets", ("auto", "rows", "columns", "cells"))
    if offsets is not None and groups is not None:
        raise ValueError("groups must be None when offsets are given, got both")
    if (offsets is not None or groups is not None) and array.ndim != 1:
        name = "offsets" if groups is None else "groups"
        raise ValueError(
            f"probabilities must have shape (p,) when {name} are given, got {array.shape}"
        )
    if sets != "auto" and (offsets is not None or groups is not None):
        raise ValueError(f"sets must be 'auto' when offsets or groups are given, got {sets!r}")
    if sets != "auto" and array.ndim != 2:
        raise ValueError(f"probabilities must have shape (n, p) for {sets}, got {array.shape}")
    if offsets is not None:
        return SetProbabilities(flat, _read_offsets(offsets, flat.size), array.shape, False)
    if groups is not None:
        return _grouped(flat, groups)
    if array.ndim == 1 or sets == "cells":
        return SetProbabilities(flat, np.array([0, flat.size]), array.shape, True)
    n, p = array.shape
    if sets == "columns":
        order = np.arange(n * p).reshape(n, p).T.reshape(-1)
        return SetProbabilities(flat[order], np.arange(p + 1) * n, array.shape, False, order)
    return SetProbabilities(flat, np.arange(n + 1) * p, array.shape, False)


def _grouped(flat: FloatArray, groups: Any) -> SetProbabilities:
    """Return the sets in the sorted order of their names."""
    names: NDArray[Any] = as_array(groups, "groups")
    if names.shape != flat.shape:
        raise ValueError(f"groups must have shape {flat.shape}, got {names.shape}")
    if names.dtype.kind == "f" and np.isnan(names).any():
        raise ValueError("groups must name a set for every element, got nan")
    try:
        _, number, sizes = np.unique(names, return_inverse=True, return_counts=True)
    except TypeError as error:
        kinds = sorted({type(name).__name__ for name in names})
        raise TypeError(f"groups must be of one type, got {' and '.join(kinds)}") from error
    order = np.argsort(number, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return SetProbabilities(flat[order], offsets, flat.shape, False, order)
