"""Cuts of a graph: the weight of the edges between a set and the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import (
    BATCH,
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    as_count,
    as_integers,
    as_numbers,
)
from setwise._foundation._imports import load
from setwise.functions._base import SetFunction
from setwise.functions._numbers import Numbers, errors_of_sums, numbers_of_weights


class Cut(SetFunction):
    r"""The weight of the edges that a set cuts.

    .. math:: F(A) = \sum_{\{u, v\} \in E} w_{uv} \, [\, |A \cap \{u, v\}| = 1 \,]
       \qquad\text{or, directed,}\qquad
       F(A) = \sum_{(u, v) \in E} w_{uv} \, [\, u \in A, v \notin A \,].

    It is submodular, and zero on the empty set and on the whole ground set. It is increasing or
    supermodular only if every weight is zero. The weights of a repeated edge are added.

    A greedy pass costs O(n + edges at the elements of the order), compiled; a value costs
    O(edges).

    Parameters
    ----------
    edges : array-like of int, shape (E, 2)
        Pairs of different elements; a directed edge leads from the first to the second.
    weights : float or array-like of shape (E,)
        Not negative.
    n : int
        The number of elements.
    directed : bool
        Whether an edge counts only when its first end is in the set and its second is not.

    Examples
    --------
    >>> import setwise as sw
    >>> F = sw.functions.Cut([[0, 1], [1, 2]], [1.0, 3.0], n=3)
    >>> F([False, True, False])
    4.0
    >>> F.gains([1, 2, 0]).tolist()
    [4.0, -3.0, -1.0]
    >>> sw.functions.Cut([[0, 1], [1, 2]], [1.0, 3.0], n=3, directed=True)([False, True, False])
    3.0
    """

    edges: IntArray
    weights: FloatArray
    directed: bool

    def __init__(
        self, edges: ArrayLike, weights: ArrayLike = 1.0, *, n: int, directed: bool = False
    ) -> None:
        size = as_count(n, "n")
        if not isinstance(directed, bool | np.bool_):
            raise TypeError(f"directed must be True or False, got {type(directed).__name__}")
        pairs = as_integers(edges, "edges", below=size)
        if pairs.shape == (0,):
            pairs = pairs.reshape(0, 2)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(f"edges must have shape (E, 2), got {pairs.shape}")
        loops = pairs[pairs[:, 0] == pairs[:, 1]]
        if len(loops):
            raise ValueError(
                f"edges must join two different elements, got ({loops[0, 0]}, {loops[0, 1]})"
            )
        shape: tuple[int, ...] = () if as_array(weights, "weights").ndim == 0 else (len(pairs),)
        heights = as_numbers(weights, "weights", shape=shape, nonnegative=True)
        self._set(
            n=size,
            edges=pairs,
            weights=np.array(np.broadcast_to(heights, len(pairs))),
            directed=bool(directed),
        )

    def _values(self, masks: BoolArray) -> FloatArray:
        first, second = self.edges.T
        values = np.empty(len(masks))
        rows = max(1, BATCH // max(1, len(self.edges)))
        for start in range(0, len(masks), rows):
            part = masks[start : start + rows]
            inside, outside = part[:, first], ~part[:, second]
            cut = inside & outside if self.directed else inside == outside
            values[start : start + rows] = cut @ self.weights
        return values

    def _gains(self, order: IntArray) -> FloatArray:
        gains = np.empty(len(order))
        adjacency = self._remember("adjacency", self._adjacency)
        _core.cut_gains(*adjacency, np.ascontiguousarray(order), gains)
        return gains

    def _adjacency(self) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """Return rows of neighbours: indptr, neighbours, weights of arcs out of and into a row."""
        coo_array = load("scipy.sparse").coo_array
        first, second = self.edges.T
        rows, columns = np.concatenate([first, second]), np.concatenate([second, first])

        def summed(forward: FloatArray, backward: FloatArray) -> Any:
            both = np.concatenate([forward, backward])
            return coo_array((both, (rows, columns)), shape=(self.n, self.n)).tocsr()

        if self.directed:
            # Zeros stay stored, so that both matrices have the same pattern.
            absent = np.zeros(len(self.weights))
            leaving, entering = summed(self.weights, absent), summed(absent, self.weights)
        else:
            leaving = entering = summed(self.weights, self.weights)
        return (
            leaving.indptr.astype(np.int64),
            leaving.indices.astype(np.int64),
            leaving.data,
            entering.data,
        )

    @property
    def is_submodular(self) -> bool:
        return True

    @property
    def is_supermodular(self) -> bool:
        # An edge of positive weight makes F(u) + F(v) > F(u, v) + F(empty).
        return not self.weights.any()

    @property
    def is_increasing(self) -> bool:
        # F is nowhere negative and F(V) = 0, so only the zero function never falls.
        return not self.weights.any()

    def _numbers(self) -> Numbers:
        return numbers_of_weights(self.weights, 2)

    def _gain_errors(self, order: IntArray, gains: FloatArray) -> FloatArray:
        def errors() -> FloatArray:
            return errors_of_sums(self.edges.T.ravel(), np.tile(self.weights, 2), self.n)

        return self._remember("errors", errors)[order]

    def __repr__(self) -> str:
        directed = ", directed=True" if self.directed else ""
        return f"Cut(n={self.n}, edges={len(self.edges)}{directed})"
