"""Short cycles of a graph."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import IntArray


def short_cycles(edges: IntArray, n: int) -> list[IntArray]:
    """Return triangles (T, 3) and squares (S, 4) of a graph, each once, in cyclic order.

    Of the squares over one diagonal with m nodes between its ends, m - 1 squares that generate the
    others are returned. The cost is the sum of the squared degrees.
    """
    first, middle, last = _paths(edges, n)
    keys = np.unique(edges.min(axis=1) * n + edges.max(axis=1))
    closed = np.isin(first * n + last, keys) & (middle > last)
    triangles = np.stack([first, last, middle], axis=1)[closed]
    # Two paths with the same ends form a square, which is found once from each diagonal.
    order = np.lexsort((middle, last, first))
    first, middle, last = first[order], middle[order], last[order]
    same = np.flatnonzero((first[1:] == first[:-1]) & (last[1:] == last[:-1]))
    squares = np.stack([first[same], middle[same], last[same], middle[same + 1]], axis=1)
    _, once = np.unique(np.sort(squares, axis=1), axis=0, return_index=True)
    return [triangles, squares[np.sort(once)]]


def _paths(edges: IntArray, n: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return paths of two edges, by their ends (first < last) and the middle node."""
    ends = np.unique(np.sort(edges, axis=1), axis=0)
    middle, end = np.concatenate([ends, ends[:, ::-1]]).reshape(-1, 2).T
    order = np.lexsort((end, middle))
    middle, end = middle[order], end[order]
    degree = np.bincount(middle, minlength=n)
    start = np.cumsum(degree) - degree
    # Pair each end with every later end of the same middle node.
    later = degree[middle] - 1 - (np.arange(len(middle)) - start[middle])
    one = np.repeat(np.arange(len(middle)), later)
    other = one + 1 + np.arange(len(one)) - np.repeat(np.cumsum(later) - later, later)
    return end[one], middle[one], end[other]
