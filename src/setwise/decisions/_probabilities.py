"""The probabilities of one set, of a batch of rows, of groups, or of sets of different sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse, vstack

from setwise._foundation._arguments import (
    BATCH,
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    as_choice,
)
from setwise.decisions._presence import Law, believed
from setwise.losses._labels import _read_offsets, as_csr


@dataclass(frozen=True, eq=False)
class SetProbabilities:
    """The probability of each element, flat: set i is at [offsets[i], offsets[i + 1]).

    ``order`` is the position of each flat entry in the given array, or None if the order is the
    same.
    ``single`` is true for a single set. ``scale`` and ``presence`` belong to each set's
    distribution (``_presence.py``), None for independent elements. For a sparse matrix the flat
    entries are those that are stored, ``pattern`` is the matrix in CSR format, and ``kind`` says
    which of its entries form a set; elements that are not stored have the probability 0.
    """

    flat: FloatArray
    offsets: IntArray
    shape: tuple[int, ...]
    single: bool
    order: IntArray | None = None
    scale: FloatArray | None = None
    presence: FloatArray | None = None
    pattern: Any = None
    kind: str = "rows"

    @property
    def n(self) -> int:
        """The number of sets."""
        return len(self.offsets) - 1

    @property
    def sizes(self) -> IntArray:
        """The number of elements of each set, including those that are not stored."""
        if self.pattern is None:
            return np.diff(self.offsets)
        rows, columns = self.shape
        return np.full(self.n, {"rows": columns, "columns": rows}.get(self.kind, rows * columns))

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

    def as_given(self, mask: BoolArray) -> Any:
        """Return a flat mask in the caller's shape and order; in CSR format for a sparse matrix."""
        if self.order is not None:
            placed = np.empty_like(mask)
            placed[self.order] = mask
            mask = placed
        if self.pattern is None:
            return mask.reshape(self.shape)
        ends = np.concatenate([[0], np.cumsum(mask)])[self.pattern.indptr]
        entries = np.ones(ends[-1], np.bool_), self.pattern.indices[mask], ends
        return type(self.pattern)(entries, shape=self.shape)

    def dense_parts(self) -> Iterator[SetProbabilities]:
        """Yield the sets of a sparse matrix a few at a time, with all of their elements."""
        across = self.pattern
        if self.kind == "columns":
            across = across.T.tocsr()
        if self.kind == "cells":
            across = across.reshape((1, -1)).tocsr()
        step = max(1, BATCH // max(1, across.shape[1]))
        for first in range(0, self.n, step):
            some = slice(first, first + step)
            # The entries are replaced by those of the law, which ``with_presence`` may change.
            part = across[some].copy()
            part.data = self.flat[self.offsets[first] : self.offsets[min(first + step, self.n)]]
            values = part.toarray()
            yield SetProbabilities(
                values.reshape(-1),
                np.arange(len(values) + 1) * values.shape[1],
                values.shape,
                self.single,
                scale=None if self.scale is None else self.scale[some],
                presence=None if self.presence is None else self.presence[some],
            )

    def joined(self, masks: list[BoolArray]) -> Any:
        """Return the masks of the dense parts as one matrix in CSR format."""
        kind = type(self.pattern)
        across = vstack([kind(mask) for mask in masks], format="csr")
        if self.kind == "columns":
            across = across.T.tocsr()
        return kind(across.reshape(self.shape).tocsr())


def read_probabilities(
    probabilities: ArrayLike,
    *,
    offsets: ArrayLike | None,
    groups: ArrayLike | None,
    sets: str,
) -> SetProbabilities:
    """Read numbers in [0, 1]: (p,), (n, p), CSR, flat with offsets, or flat with groups."""
    if issparse(probabilities):
        return _of_sparse(probabilities, offsets, groups, sets)
    array = as_array(probabilities, "probabilities")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"probabilities must hold real numbers, got dtype {array.dtype}")
    if array.ndim not in (1, 2):
        raise ValueError(f"probabilities must have shape (p,) or (n, p), got {array.shape}")
    flat = np.ascontiguousarray(array, np.float64).reshape(-1)
    _check(flat)
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


def _check(flat: FloatArray) -> None:
    wrong = ~((flat >= 0) & (flat <= 1))
    if wrong.any():
        raise ValueError(f"probabilities must lie in [0, 1], got {flat[wrong][0]:g}")


def _of_sparse(
    matrix: Any, offsets: ArrayLike | None, groups: ArrayLike | None, sets: str
) -> SetProbabilities:
    """Read a sparse matrix (n, p), of which the entries that are not stored are 0."""
    matrix = as_csr(matrix, "probabilities")
    if matrix.dtype.kind not in "fiub":
        raise TypeError(f"probabilities must hold real numbers, got dtype {matrix.dtype}")
    sets = as_choice(sets, "sets", ("auto", "rows", "columns", "cells"))
    for name, value in (("offsets", offsets), ("groups", groups)):
        if value is not None:
            raise ValueError(f"{name} must be None for a sparse matrix, got {value!r:.60}")
    flat = matrix.data.astype(np.float64)
    _check(flat)
    n, p = matrix.shape
    if sets == "cells":
        ends = np.array([0, flat.size])
        return SetProbabilities(flat, ends, (n, p), True, pattern=matrix, kind=sets)
    if sets == "columns":
        order = np.argsort(matrix.indices, kind="stable")
        ends = np.concatenate([[0], np.cumsum(np.bincount(matrix.indices, minlength=p))])
        return SetProbabilities(flat[order], ends, (n, p), False, order, pattern=matrix, kind=sets)
    return SetProbabilities(flat, matrix.indptr.astype(np.int64), (n, p), False, pattern=matrix)


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
