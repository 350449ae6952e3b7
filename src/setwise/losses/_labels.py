"""Ground truths: one set, a batch of rows, or sets of different sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import BoolArray, FloatArray, IntArray, as_array

T = TypeVar("T")

Layout = Literal["single", "rows", "ragged"]

# Kernels that read labels return a sum of these bits, one for each kind of label that occurs.
HAS_MINUS, HAS_ZERO, HAS_OTHER = 1, 2, 8
_READABLE = {np.dtype(t) for t in ("?", "i1", "u1", "i4", "i8", "f4", "f8")}


@dataclass(frozen=True)
class Labels:
    """The positive elements, flat: set i is at [offsets[i], offsets[i + 1]).

    With ``kept``, results of losses and surrogates that depend on these truths only are cached, so
    that rounds of learning over the same sets compute them once.
    """

    positive: NDArray[np.uint8]
    offsets: IntArray
    layout: Layout
    shape: tuple[int, ...]
    kept: dict[tuple[int, str], tuple[object, Any]] | None = field(
        default=None, repr=False, compare=False
    )

    def keep(self, owner: object, name: str, compute: Callable[..., T], *arguments: Any) -> T:
        """Return ``compute(*arguments)``; if ``kept``, it is cached with its owner."""
        if self.kept is None:
            return compute(*arguments)
        key = (id(owner), name)
        if key not in self.kept:
            self.kept[key] = (owner, compute(*arguments))
        value: T = self.kept[key][1]
        return value

    @property
    def n(self) -> int:
        """The number of sets."""
        return len(self.offsets) - 1

    @property
    def sizes(self) -> IntArray:
        """The number of elements of each set."""
        return np.diff(self.offsets)

    @property
    def positives(self) -> IntArray:
        """The number of positives of each set."""
        return self.counts(self.positive)

    def counts(self, marks: NDArray[np.uint8] | BoolArray) -> IntArray:
        """Return the number of marks in each set."""
        if self.layout != "ragged":
            width = len(marks) // self.n if self.n else 0
            counts: IntArray = np.count_nonzero(marks.reshape(self.n, width), axis=1)
            return counts
        totals = np.concatenate([[0], np.cumsum(marks, dtype=np.int64)])
        return np.diff(totals[self.offsets])

    def row(self, i: int) -> BoolArray:
        """Return the mask of the positive elements of set i."""
        return self.positive[self.offsets[i] : self.offsets[i + 1]].view(np.bool_)

    def of_shape(self, values: FloatArray) -> float | FloatArray:
        """Return one number per set, which is a float for a single set."""
        return float(values[0]) if self.layout == "single" else values


def read_labels(y: ArrayLike, offsets: ArrayLike | None = None, name: str = "y") -> Labels:
    """Return labels in {-1, +1}, {0, 1} or bool; (p,), (n, p), or flat with n + 1 offsets."""
    array = as_array(y, name)
    positive = _encode(array, name)
    if offsets is not None:
        if array.ndim != 1:
            raise ValueError(f"{name} must be flat when offsets are given, got {array.shape}")
        return Labels(positive, _read_offsets(offsets, array.size), "ragged", array.shape)
    if array.ndim == 1:
        return Labels(positive, np.array([0, array.size]), "single", array.shape)
    if array.ndim == 2:
        n, p = array.shape
        return Labels(positive, np.arange(n + 1) * p, "rows", array.shape)
    raise ValueError(f"{name} must have shape (p,) or (n, p), got {array.shape}")


def is_sparse(values: object) -> bool:
    """Return whether the values are a sparse matrix of SciPy, which is not imported for that."""
    return hasattr(values, "tocsr")


def as_csr(matrix: Any, name: str) -> Any:
    """Return a sparse matrix in CSR format, with sorted indices and no entry twice."""
    if matrix.ndim != 2:
        raise ValueError(f"{name} must have shape (n, p) when it is sparse, got {matrix.shape}")
    rows = matrix.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy() if rows is matrix else rows
        rows.sum_duplicates()
    return rows


def read_sparse_labels(y: Any, name: str) -> Any:
    """Return the positive labels of a matrix (n, p), sparse or not, as a CSR matrix of ones."""
    from scipy.sparse import csr_array

    if is_sparse(y):
        rows = as_csr(y, name)
        if rows.dtype.kind not in "biuf":
            raise TypeError(f"{name} must hold labels in {{0, 1}}, got {rows.dtype}")
        other = rows.data[(rows.data != 0) & (rows.data != 1)]
        if other.size:
            raise ValueError(
                f"{name} must hold labels in {{0, 1}} when it is sparse, got {other[0]}"
            )
        ones = csr_array((rows.data.astype(np.int8), rows.indices, rows.indptr), shape=rows.shape)
    else:
        labels = read_labels(y, name=name)
        if labels.layout != "rows":
            raise ValueError(f"{name} must have shape (n, p), got {labels.shape}")
        ones = csr_array(labels.positive.reshape(labels.shape).astype(np.int8))
    ones = ones.copy()
    ones.eliminate_zeros()
    return ones


def _encode(array: NDArray[np.generic], name: str) -> NDArray[np.uint8]:
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold labels in {{-1, +1}} or {{0, 1}}, got {array.dtype}")
    if array.dtype == np.bool_:
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if array.dtype not in _READABLE:
        array = array.astype(np.float64)
    flat = np.ascontiguousarray(array).reshape(-1)
    positive = np.empty(flat.size, np.uint8)
    seen = _core.encode_labels(flat, positive)
    if seen & HAS_OTHER:
        other = flat[~np.isin(flat, (-1, 0, 1))][0]
        raise ValueError(f"{name} must hold labels in {{-1, +1}} or {{0, 1}}, got {other}")
    if seen & HAS_MINUS and seen & HAS_ZERO:
        raise ValueError(f"{name} must hold labels in {{-1, +1}} or in {{0, 1}}, got -1 and 0")
    return positive


def _read_offsets(offsets: ArrayLike, total: int) -> IntArray:
    array = as_array(offsets, "offsets")
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"offsets must hold n + 1 integers, got shape {array.shape}")
    if array.dtype.kind not in "iu":
        raise TypeError(f"offsets must hold integers, got dtype {array.dtype}")
    array = array.astype(np.int64)
    if array[0] != 0 or array[-1] != total:
        raise ValueError(f"offsets must go from 0 to {total}, got {array[0]} to {array[-1]}")
    if np.any(np.diff(array) < 0):
        raise ValueError("offsets must not decrease, got a set of negative size")
    return array
