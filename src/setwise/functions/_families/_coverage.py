"""Coverage functions: the weight of the items that the elements of a set cover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import (
    BoolArray,
    FloatArray,
    IntArray,
    as_integers,
    as_list,
    as_numbers,
)
from setwise._foundation._imports import load
from setwise.functions._base import SetFunction
from setwise.functions._numbers import Numbers, errors_of_sums, numbers_of_weights


class Coverage(SetFunction):
    r"""The weight of the items that the elements of a set cover.

    Element i covers the items :math:`S_i`, and

    .. math:: F(A) = \sum_{t \,\in\, \bigcup_{i \in A} S_i} w_t, \qquad w_t \ge 0.

    It is submodular, increasing, and zero on the empty set. It is supermodular only if no item of
    positive weight is covered twice; then it is modular.

    A greedy pass costs O(items + total size of the sets in the order), compiled; a value costs
    the same over its elements.

    Parameters
    ----------
    sets : sequence of n arrays of int, or sparse matrix of shape (n, items)
        The items that each element covers: their numbers, or the non-zero entries of its row. An
        item that is listed twice for one element counts once.
    weights : array-like of shape (items,), optional
        Not negative; 1 for every item if not given.

    Examples
    --------
    >>> import setwise as sw
    >>> F = sw.functions.Coverage([[0, 1], [1, 2, 3], []], weights=[5.0, 1.0, 1.0, 1.0])
    >>> F([True, True, False])
    8.0
    >>> F.gains([1, 0, 2]).tolist()
    [3.0, 5.0, 0.0]
    """

    indptr: IntArray
    items: IntArray
    weights: FloatArray

    def __init__(self, sets: Sequence[ArrayLike] | Any, weights: ArrayLike | None = None) -> None:
        given = None if weights is None else as_numbers(weights, "weights", nonnegative=True)
        rows = (
            _from_matrix(sets) if load("scipy.sparse").issparse(sets) else _from_lists(sets, given)
        )
        if given is None:
            given = np.ones(rows.shape[1])
        elif len(given) != rows.shape[1]:
            raise ValueError(
                f"weights must have one entry for each of the {rows.shape[1]} columns of sets, "
                f"got {len(given)}"
            )
        self._set(
            n=rows.shape[0],
            indptr=rows.indptr.astype(np.int64),
            items=rows.indices.astype(np.int64),
            weights=given,
        )

    def _values(self, masks: BoolArray) -> FloatArray:
        # A compiled pass over the elements of each mask is faster than a product of matrices, which
        # would also read the sets of elements outside the mask.
        return np.array([self._gains(np.flatnonzero(mask)).sum() for mask in masks], np.float64)

    def _gains(self, order: IntArray) -> FloatArray:
        gains = np.empty(len(order))
        chain = np.ascontiguousarray(order)
        _core.coverage_gains(self.indptr, self.items, self.weights, chain, gains)
        return gains

    @property
    def is_submodular(self) -> bool:
        return True

    @property
    def is_supermodular(self) -> bool:
        times = np.bincount(self.items, minlength=len(self.weights))
        return not (times[self.weights > 0] > 1).any()

    @property
    def is_increasing(self) -> bool:
        return True

    def _numbers(self) -> Numbers:
        return numbers_of_weights(self.weights, 2)

    def _gain_errors(self, order: IntArray, gains: FloatArray) -> FloatArray:
        def errors() -> FloatArray:
            covering = np.repeat(np.arange(self.n), np.diff(self.indptr))
            return errors_of_sums(covering, self.weights[self.items], self.n)

        return self._remember("errors", errors)[order]

    def __repr__(self) -> str:
        return f"Coverage(n={self.n}, items={len(self.weights)})"


def _from_matrix(matrix: Any) -> Any:
    if matrix.ndim != 2:
        raise ValueError(f"sets must have shape (n, items) when sparse, got {matrix.shape}")
    rows = load("scipy.sparse").csr_array(matrix, copy=True)
    # Sum duplicates first: an entry of a sparse matrix is the sum of its stored values. A stored
    # zero covers nothing.
    rows.sum_duplicates()
    rows.data = (rows.data != 0).astype(np.float64)
    rows.eliminate_zeros()
    return rows


def _from_lists(sets: Sequence[ArrayLike], weights: FloatArray | None) -> Any:
    given = as_list(sets, "sets", "integer arrays or a sparse matrix")
    below = np.iinfo(np.int64).max if weights is None else len(weights)
    parts = [as_integers(part, f"sets[{i}]", below=below) for i, part in enumerate(given)]
    for i, part in enumerate(parts):
        if part.ndim != 1:
            raise ValueError(f"sets[{i}] must be one-dimensional, got shape {part.shape}")
    items = np.concatenate([np.zeros(0, np.int64), *parts])
    indptr = np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)])
    n_items = (int(items.max(initial=-1)) + 1) if weights is None else len(weights)
    rows = load("scipy.sparse").csr_array(
        (np.ones(len(items)), items, indptr), shape=(len(parts), n_items)
    )
    rows.sum_duplicates()
    return rows
