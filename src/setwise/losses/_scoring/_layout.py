"""The layout of sets: rows, columns or cells, groups, or the whole sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._arguments import (
    MOST_ENTRIES,
    FloatArray,
    IntArray,
    as_array,
    as_choice,
    as_sample_weights,
    require_some,
)

Kind = Literal["rows", "columns", "cells", "groups", "sample"]
Sets = Literal["auto", "rows", "columns", "cells", "groups", "sample"]
_OF_A_MATRIX = ("rows", "columns", "cells")


@dataclass(frozen=True, eq=False)
class Arrangement:
    """Ground truths as sets: rows of equal length, or flat, one set after the other.

    Attributes
    ----------
    kind : {"rows", "columns", "cells", "groups", "sample"}
    positive : boolean array, (n, p) for rows, (p, n) for columns, else flat
        The positive labels, arranged by ``gather``.
    order : array of shape (n,)
        The indices of the samples in order; a sample may occur several times (its weight) or not at
        all.
    offsets : array
        Set i is [offsets[i], offsets[i + 1]) of ``positive``: one row of a matrix, or a slice.
    weights : array of shape (n_sets,)
        The weight of each set.
    n_outputs : int
        The number of labels per sample: p, or 1.
    multiplicity : array, optional
        The multiplicity of each element of a set, the same in all sets, if it is not a whole
        number.
    """

    kind: Kind
    positive: NDArray[np.bool_]
    order: IntArray
    offsets: IntArray
    weights: FloatArray
    n_outputs: int = 1
    multiplicity: FloatArray | None = None

    @property
    def n_sets(self) -> int:
        """The number of sets."""
        return len(self.weights)

    @property
    def ragged_offsets(self) -> IntArray | None:
        """The offsets of a flat arrangement; None if the sets are the rows of a matrix."""
        return None if self.positive.ndim == 2 else self.offsets

    def gather(self, values: NDArray[Any]) -> NDArray[Any]:
        """Arrange values of the samples, (n,) or (n, p), like the elements."""
        chosen = values[self.order]
        if self.kind == "columns":
            return chosen.T
        return chosen.reshape(-1) if self.kind == "cells" else chosen

    def distinct(self, key: Callable[[NDArray[np.bool_]], object]) -> Iterator[NDArray[np.bool_]]:
        """Yield one truth for each distinct key of the sets."""
        seen: set[object] = set()
        for i in range(self.n_sets):
            truth: NDArray[np.bool_] = (
                self.positive[i]
                if self.positive.ndim == 2
                else self.positive[self.offsets[i] : self.offsets[i + 1]]
            )
            name = key(truth)
            if name not in seen:
                seen.add(name)
                yield truth


def arrange(
    positive: NDArray[np.bool_],
    sets: Sets,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None,
    *,
    separate: bool = False,
    fractional: bool = False,
) -> Arrangement:
    """Arrange the sets of a fit or score. If ``separate``, each element may become a set.

    A weight is the multiplicity of a sample. If a row of labels is a set, the weight may be any
    nonnegative number. In a group a sample is an element of a set, so the weight must be a whole
    number. The same holds for columns, cells and the whole sample, unless the loss supports
    fractional elements (``fractional``); the weights are then returned as ``multiplicity``.
    """
    n = len(positive)
    kind = _kind(positive, sets, groups)
    weight = as_sample_weights(sample_weight, n)
    number = None if groups is None else _group_numbers(groups, n)
    require_some(weight)
    kept = np.flatnonzero(weight > 0)
    if kind == "rows" or (separate and positive.ndim == 2):
        offsets = np.arange(len(kept) + 1)
        p = positive.shape[1]
        return Arrangement("rows", positive[kept], kept, offsets, weight[kept], p)
    if separate:
        offsets = np.arange(len(kept) + 1)
        return Arrangement("groups", positive[kept], kept, offsets, weight[kept])
    whole = bool(np.all(weight == np.floor(weight)))
    if kind != "groups" and fractional and not whole:
        times = np.repeat(weight[kept], positive.shape[1]) if kind == "cells" else weight[kept]
        return _large_sets(kind, positive, kept, times)
    order = np.repeat(np.arange(n), _whole_numbers(weight))
    if kind != "groups":
        return _large_sets(kind, positive, order)
    assert number is not None
    order = order[np.argsort(number[order], kind="stable")]
    sizes = np.unique(number[order], return_counts=True)[1]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Arrangement(kind, positive[order], order, offsets, np.ones(len(sizes)))


def _large_sets(
    kind: Kind,
    positive: NDArray[np.bool_],
    order: IntArray,
    multiplicity: FloatArray | None = None,
) -> Arrangement:
    """Arrange sets that include all samples: the columns, the cells, the sample."""
    chosen = positive[order]
    p = 1 if chosen.ndim == 1 else chosen.shape[1]
    if kind == "columns":
        across = np.ascontiguousarray(chosen.T)
        return Arrangement(kind, across, order, np.arange(p + 1), np.ones(p), p, multiplicity)
    flat = chosen.reshape(-1)
    ends = np.array([0, len(flat)])
    return Arrangement(kind, flat, order, ends, np.ones(1), p, multiplicity)


def _whole_numbers(weight: FloatArray) -> IntArray:
    fractions = weight[weight != np.floor(weight)]
    if fractions.size:
        raise ValueError(
            f"sample_weight must be whole numbers when samples are elements of a set, got "
            f"{fractions[0]:g}"
        )
    if weight.sum() > MOST_ENTRIES:
        raise ValueError(
            f"sample_weight must sum to at most {MOST_ENTRIES} when samples are elements of a set, "
            f"which are written out so many times, got {weight.sum():g}"
        )
    return weight.astype(np.int64)


def check_sets(sets: object) -> None:
    """Raise an error unless ``sets`` is one of the kinds of sets, or "auto"."""
    as_choice(sets, "sets", ("auto", *_OF_A_MATRIX, "groups", "sample"))


def _kind(positive: NDArray[np.bool_], sets: Sets, groups: ArrayLike | None) -> Kind:
    check_sets(sets)
    if sets == "groups" and groups is None:
        raise ValueError(
            "groups must be given when sets='groups', got None: pass groups=, and in a search or "
            "a pipeline route it with set_fit_request(groups=True) and "
            "set_score_request(groups=True)"
        )
    if positive.ndim == 2:
        if groups is not None or sets in ("groups", "sample"):
            raise ValueError(
                "y must have shape (n,) when samples are grouped into sets, got "
                f"{positive.shape}: the sets of a matrix are its 'rows', its 'columns' or all of "
                "its 'cells'"
            )
        return "rows" if sets == "auto" else sets
    if sets in _OF_A_MATRIX:
        raise ValueError(f"y must have shape (n, p) when sets={sets!r}, got {positive.shape}")
    if sets == "sample" and groups is not None:
        raise ValueError("groups must be None when sets='sample', the whole sample is one set")
    if sets == "auto":
        return "sample" if groups is None else "groups"
    return sets


def _group_numbers(groups: Any, n: int) -> IntArray:
    array = as_array(groups, "groups")
    if array.shape != (n,):
        raise ValueError(f"groups must have shape ({n},), got {array.shape}")
    objects = array.dtype.kind == "O"
    missing = [g for g in array if g is None or g != g] if objects else array[array != array]
    if len(missing):
        raise ValueError(f"groups must name a set for every sample, got {missing[0]}")
    try:
        numbers: IntArray = np.unique(array, return_inverse=True)[1].astype(np.int64)
    except TypeError as error:
        kinds = sorted({type(group).__name__ for group in array})
        raise TypeError(f"groups must be of one type, got {' and '.join(kinds)}") from error
    return numbers
