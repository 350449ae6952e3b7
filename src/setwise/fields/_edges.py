"""Edges between variables, as every pairwise potential takes them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import IntArray, as_array


def as_edges(edges: ArrayLike) -> IntArray:
    """Pairs of different variables, (E, 2); ``[]`` is no edge."""
    array = as_array(edges, "edges")
    if array.shape == (0,):
        array = np.zeros((0, 2), np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"edges must have shape (E, 2), got {array.shape}")
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"edges must hold integers, got dtype {array.dtype}")
    if array.size and (array.min() < 0 or array.max() > np.iinfo(np.int64).max):
        bad = array.min() if array.min() < 0 else array.max()
        raise ValueError(f"edges must join variables, which are numbered from 0, got {bad}")
    pairs = np.array(array, dtype=np.int64, order="C")
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if len(loops):
        i = pairs[loops[0], 0]
        raise ValueError(f"edges must join two different variables, got ({i}, {i})")
    return pairs


def check_edges(edges: IntArray, n_variables: int) -> None:
    """Raise a ``ValueError`` when an edge leaves the field."""
    if edges.size and edges.max() >= n_variables:
        raise ValueError(
            f"edges must join the field's {n_variables} variables, numbered from 0, "
            f"got {edges.max()}"
        )
