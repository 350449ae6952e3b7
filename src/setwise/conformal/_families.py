"""Families of nested masks, stored as one score per element."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray, as_array
from setwise._foundation._threads import Pool
from setwise.fields import Field
from setwise.inference import bias_path
from setwise.inference._diverse._path._nested_path import BiasPath

PATH, PROBABILITIES, STACK = "bias path", "probabilities", "stack of masks"
# The level of the prediction without a guarantee: bias 0, or probability 1/2. A stack has none.
_NEUTRAL = {PATH: 0.0, PROBABILITIES: 0.5}


@dataclass(frozen=True, eq=False)
class NestedMasks:
    """The nested masks {i : score_i >= level} of one example, and its shape.

    Along a bias path, a score is the largest bias against the object at which the element is still
    in the best mask: inf if it still is at ``max_bias``, and -inf if it is not even at
    ``-max_bias``. So the family ends with the full mask on one side and the smallest mask on the
    other.
    """

    kind: str
    scores: FloatArray
    shape: tuple[int, ...]

    def outer(self, level: float) -> BoolArray:
        """Return the larger mask at a level: ties are inside."""
        return (self.scores >= level).reshape(self.shape)

    def inner(self, level: float) -> BoolArray:
        """Return the smaller mask at a level: ties are outside."""
        return (self.scores > level).reshape(self.shape)

    @property
    def plain(self) -> BoolArray:
        """The mask without a guarantee: the best one, or the probabilities above 1/2."""
        return self.inner(_NEUTRAL[self.kind])


def as_nested(
    item: Any, name: str, max_bias: float | None, resolution: float, n_jobs: int
) -> NestedMasks:
    """Return the family of a field, a bias path, a map of probabilities, or a stack of masks."""
    if isinstance(item, Field):
        path = bias_path(item, max_bias=max_bias, resolution=resolution, n_jobs=n_jobs)
        return NestedMasks(PATH, scores_of_path(path), item.shape or (item.n_variables,))
    if isinstance(item, BiasPath):
        return NestedMasks(PATH, scores_of_path(item), (len(item.last),))
    array = as_array(item, name)
    if array.dtype == np.bool_:
        return NestedMasks(STACK, scores_of_stack(array, name), array.shape[1:])
    if array.dtype.kind not in "fiu":
        raise TypeError(
            f"{name} must hold fields, bias paths, maps of probabilities or stacks of masks, got "
            f"an array of dtype {array.dtype}"
        )
    if array.ndim == 0 or array.size == 0:
        raise ValueError(f"{name} must hold maps with an axis and an element, got {array.shape}")
    scores = np.array(array, np.float64).ravel()
    wrong = ~((scores >= 0) & (scores <= 1))
    if wrong.any():
        raise ValueError(f"{name} must hold probabilities in [0, 1], got {scores[wrong][0]:g}")
    return NestedMasks(PROBABILITIES, scores, array.shape)


def scores_of_path(path: BiasPath) -> FloatArray:
    """Return for each variable the largest bias at which it is 1, (N,)."""
    ends = np.concatenate([[-np.inf], path.breakpoints, [np.inf]])
    return np.asarray(ends[path.last + 1])


def scores_of_stack(masks: BoolArray, name: str) -> FloatArray:
    """Return for each element the number of nested masks (K, ...) that contain it."""
    if masks.ndim < 2 or 0 in masks.shape:
        raise ValueError(
            f"{name} must hold stacks of masks of shape (K, ...), none of them 0, got {masks.shape}"
        )
    rows = masks.reshape(len(masks), -1)
    lost = rows[:-1] & ~rows[1:]
    if lost.any():
        k = int(np.argwhere(lost)[0][0])
        raise ValueError(
            f"{name} must hold nested masks, each within the next, got mask {k} with elements that "
            f"mask {k + 1} lacks"
        )
    return np.asarray(rows.sum(axis=0), np.float64)


def all_nested(
    items: list[Any],
    make: Callable[[Any], Any],
    name: str,
    max_bias: float | None,
    resolution: float,
    threads: int,
) -> list[NestedMasks]:
    """Return the families of ``make(item)`` for all items, over threads."""

    def one(item: Any) -> NestedMasks:
        return as_nested(make(item), name, max_bias, resolution, 1)

    if threads == 1 or len(items) < 2:
        return [one(item) for item in items]
    with Pool(min(threads, len(items))) as pool:
        return pool.map(one, items)


@dataclass(frozen=True, eq=False)
class Profile:
    """The counts of object and background elements of one example at each of its scores.

    Attributes
    ----------
    scores : increasing array of shape (U,)
    objects, others : arrays of shape (U,)
        The numbers of elements of each score inside and outside the truth.
    """

    scores: FloatArray
    objects: IntArray
    others: IntArray

    @classmethod
    def of(cls, masks: NestedMasks, truth: NDArray[Any], ignore: int | None) -> Profile:
        """Count the elements of an example, without those of the label ``ignore``."""
        truth = as_array(truth, "y")
        if truth.shape != masks.shape and truth.shape != (masks.scores.size,):
            raise ValueError(
                f"y must hold a mask of shape {masks.shape} for this X, got {truth.shape}"
            )
        flat, scores = truth.ravel(), masks.scores
        if ignore is not None:
            counts = flat != ignore
            flat, scores = flat[counts], scores[counts]
        inside = as_truth(flat)
        own, number = np.unique(scores, return_inverse=True)
        total = np.bincount(number, minlength=len(own))
        objects = np.bincount(number[inside], minlength=len(own))
        return cls(own, objects, total - objects)

    @property
    def complement(self) -> Profile:
        """The profile with the background in place of the object, with negated scores."""
        return Profile(-self.scores[::-1], self.others[::-1], self.objects[::-1])

    @property
    def empty(self) -> bool:
        """Whether the truth is empty."""
        return not self.objects.any()

    def counts_at(self, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the numbers of object and of other elements in the masks at levels (K,)."""
        place = np.searchsorted(self.scores, levels, side="left")
        sums = (np.concatenate([[0], np.cumsum(c[::-1])]) for c in (self.objects, self.others))
        hits, extra = (s[len(self.scores) - place].astype(np.float64) for s in sums)
        return hits, extra


def as_truth(labels: NDArray[Any]) -> BoolArray:
    """Return which elements are positive, of labels in {0, 1}, {-1, 1} or bool."""
    if labels.dtype == np.bool_:
        return labels
    if labels.dtype.kind not in "iuf":
        raise TypeError(f"y must hold masks of bool, {{0, 1}} or {{-1, 1}}, got {labels.dtype}")
    other = ~np.isin(labels, (-1, 0, 1))
    if other.any():
        raise ValueError(f"y must hold masks of {{0, 1}} or {{-1, 1}}, got {labels[other][0]:g}")
    return np.asarray(labels == 1)
