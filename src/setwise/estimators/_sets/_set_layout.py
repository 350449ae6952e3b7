"""Which predictions are judged together: rows of labels, groups of samples, or the whole sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._arguments import FloatArray, IntArray, as_array
from setwise.estimators._sample_weights import as_sample_weights, require_some

_MOST_ELEMENTS = 1 << 31

Sets = Literal["auto", "rows", "groups", "sample"]


@dataclass(frozen=True, eq=False)
class Arrangement:
    """Ground truths as sets: rows (n, p), or samples in the order of their sets.

    Attributes
    ----------
    kind : {"rows", "groups", "sample"}
    positive : boolean array, (n, p) for rows, else flat
        In the order of ``order``.
    order : array of shape (n,)
        Which samples, in which order; a sample may stand several times (its weight) or not at all.
    offsets : array
        Set i is [offsets[i], offsets[i + 1]) of that order; for rows every row is a set.
    weights : array of shape (n_sets,)
        What each set counts.
    multiplicity : array of shape (n,), optional
        How often each element of the one set of a sample counts, where that is no whole number.
    """

    kind: Literal["rows", "groups", "sample"]
    positive: NDArray[np.bool_]
    order: IntArray
    offsets: IntArray
    weights: FloatArray
    multiplicity: FloatArray | None = None

    @property
    def n_sets(self) -> int:
        """How many sets."""
        return len(self.weights)

    def distinct(self, key: Callable[[NDArray[np.bool_]], object]) -> Iterator[NDArray[np.bool_]]:
        """A truth for each key that the sets have."""
        seen: set[object] = set()
        for i in range(self.n_sets):
            truth: NDArray[np.bool_] = (
                self.positive[i]
                if self.kind == "rows"
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
    """The sets of a fit or a score; if ``separate``, every sample is a set of its own.

    A weight says how often a sample counts. A row of labels is a set, and weighs as one: any
    weight that is not negative. In a group it is an element of a set, and can be there twice but
    not one and a half times. So it is in the whole sample, unless ``fractional`` says that the
    loss knows what half an element is: then the weights are given back as ``multiplicity``.
    """
    n = len(positive)
    kind = _kind(positive, sets, groups)
    weight = as_sample_weights(sample_weight, n)
    number = None if groups is None else _group_numbers(groups, n)
    require_some(weight)
    if kind == "rows":
        kept = np.flatnonzero(weight > 0)
        return Arrangement(kind, positive[kept], kept, np.arange(len(kept) + 1), weight[kept])
    if separate:
        kept = np.flatnonzero(weight > 0)
        offsets = np.arange(len(kept) + 1)
        return Arrangement("groups", positive[kept], kept, offsets, weight[kept])
    whole = bool(np.all(weight == np.floor(weight)))
    if kind == "sample" and fractional and not whole:
        kept = np.flatnonzero(weight > 0)
        ends = np.array([0, len(kept)])
        return Arrangement(kind, positive[kept], kept, ends, np.ones(1), weight[kept])
    if not whole:
        raise ValueError(
            f"sample_weight must be whole numbers when samples are elements of a set, got "
            f"{weight[weight != np.floor(weight)][0]:g}"
        )
    if weight.sum() > _MOST_ELEMENTS:
        raise ValueError(
            "sample_weight must sum to at most 2**31 when samples are elements of a set, which "
            f"are written out so many times, got {weight.sum():g}"
        )
    order = np.repeat(np.arange(n), weight.astype(np.int64))
    if kind == "sample":
        return Arrangement(kind, positive[order], order, np.array([0, len(order)]), np.ones(1))
    assert number is not None
    order = order[np.argsort(number[order], kind="stable")]
    sizes = np.unique(number[order], return_counts=True)[1]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Arrangement(kind, positive[order], order, offsets, np.ones(len(sizes)))


def _kind(
    positive: NDArray[np.bool_], sets: Sets, groups: ArrayLike | None
) -> Literal["rows", "groups", "sample"]:
    if not isinstance(sets, str):
        raise TypeError(f"sets must be a string, got {type(sets).__name__}")
    if sets not in ("auto", "rows", "groups", "sample"):
        raise ValueError(f"sets must be 'auto', 'rows', 'groups' or 'sample', got {sets!r}")
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
                f"{positive.shape}: each row of a matrix is a set of its own"
            )
        return "rows"
    if sets == "rows":
        raise ValueError(f"y must have shape (n, p) when sets='rows', got {positive.shape}")
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
