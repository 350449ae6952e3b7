"""Partitions of edges into few groups of vertex-disjoint paths, each projected in one call."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Paths:
    """Paths that share no vertex.

    Attributes
    ----------
    vertices : array of shape (P,)
        The vertices, ordered by path and along each path.
    starts : array of shape (B + 1,)
        The starts of the paths in ``vertices``.
    weights : array of shape (P,)
        The weight of the edge from each vertex to the next, 0 at the end of a path.
    """

    vertices: IntArray
    starts: IntArray
    weights: FloatArray


def paths_of(edges: IntArray, weights: FloatArray, n: int) -> list[Paths]:
    """Return groups of paths that contain each edge once.

    Repeated edges are summed, and edges of weight 0 are omitted. Edges (i, i + d) with the same d
    form paths, so a grid in C order is divided into its rows and columns, and its diagonals if it
    has some. This is used if it needs about as few groups as possible (half of the edges at a
    vertex plus one). Any other graph is divided by first fit, in O(E groups).

    >>> [
    ...     group.vertices.tolist()
    ...     for group in paths_of(np.array([[0, 1], [2, 3], [0, 2], [1, 3]]), np.ones(4), 4)
    ... ]
    [[0, 1, 2, 3], [0, 2, 1, 3]]
    """
    edges, weights = _merged(edges, weights, n)
    if len(edges) == 0:
        return []
    steps, classes = np.unique(edges[:, 1] - edges[:, 0], return_inverse=True)
    most = int(np.bincount(edges.ravel(), minlength=n).max())
    count = len(steps)
    if count > (most + 2) // 2:
        classes = np.empty(len(edges), np.int64)
        count = _core.path_classes(edges, n, classes)
    order = np.argsort(classes, kind="stable")
    ends = np.cumsum(np.bincount(classes, minlength=count))[:-1]
    return [_walked(edges[part], weights[part], n) for part in np.split(order, ends)]


def _merged(edges: IntArray, weights: FloatArray, n: int) -> tuple[IntArray, FloatArray]:
    """Return each pair once, its smaller end first, ordered by the first end."""
    low, high = edges.min(axis=1, initial=n), edges.max(axis=1, initial=-1)
    keys, place = np.unique(low * n + high, return_inverse=True)
    sums = np.bincount(place, weights, minlength=len(keys))
    kept = sums > 0
    pairs: IntArray = np.empty((int(kept.sum()), 2), np.int64)
    pairs[:, 0], pairs[:, 1] = np.divmod(keys[kept], max(n, 1))
    return pairs, sums[kept].astype(np.float64)


def _walked(edges: IntArray, weights: FloatArray, n: int) -> Paths:
    # A forest of B paths with E edges has E + B vertices, and B is at most E.
    vertices = np.empty(2 * len(edges), np.int64)
    starts, steps = np.empty(len(edges) + 1, np.int64), np.empty(len(vertices))
    count = _core.walk_paths(edges, weights, n, vertices, starts, steps)
    size = len(edges) + count
    return Paths(vertices[:size], starts[: count + 1], steps[:size])
