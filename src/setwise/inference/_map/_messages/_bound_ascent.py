"""The ascent of the bound of a message search, by coordinate ascent, cycles and supergradients."""

from __future__ import annotations

import numpy as np

from setwise._core import MessageSearch
from setwise._foundation._arguments import IntArray
from setwise.fields._field import Field
from setwise.fields._terms import TableTerm
from setwise.inference._map._messages._factor_graph import Factors

_WINDOW = 10  # passes over which the progress is measured
# Cycles are not searched above this number of paths of two edges, and not used above this number of
# cells in their tables.
_MOST_CYCLES = 1e7


class Ascent:
    """Passes of the dual, whose kind changes when progress slows.

    The first passes are plain coordinate ascent. When ten passes close less than a tenth of the
    gap, triangles and squares of the pairs become factors (Sontag et al., 2008). The bound can then
    exceed that of the relaxation in which pairs agree on single variables. When that slows too,
    every third pass starts with a step along a supergradient, because coordinate ascent can end
    below the highest bound. The step is shortened whenever ten passes made no progress.
    """

    def __init__(self, search: MessageSearch, factors: Factors, order: IntArray) -> None:
        self._search = search
        self._factors = factors
        self._order = order
        self._bounds: list[float] = []
        self._changed = 0  # the pass of the last change of kind
        # The share of the gap that a step would close if the bound were linear.
        self._fraction = 0.0
        self._is_tight = False

    def advance(self, value: float) -> float:
        """Make one pass. Return the best bound so far."""
        self._adapt(value)
        if self._fraction and len(self._bounds) % 3 == 0:
            self._search.step(self._fraction * (value - self._bounds[-1]))
        self._search.dual_pass()
        self._bounds.append(max([self._search.bound(), *self._bounds[-1:]]))
        return self._bounds[-1]

    def _adapt(self, value: float) -> None:
        passes = len(self._bounds)
        if passes - self._changed <= _WINDOW:
            return
        gap = value - self._bounds[-1]
        rise = self._bounds[-1] - self._bounds[-1 - _WINDOW]
        if not self._is_tight and rise <= 0.1 * gap:
            self._is_tight, self._changed = True, passes
            tighten(self._search, self._factors, self._order)
        elif self._is_tight and not self._fraction and rise <= 0.03 * gap:
            self._fraction, self._changed = 0.7, passes
        elif self._fraction and rise <= 1e-4 * gap:
            self._fraction, self._changed = 0.6 * self._fraction, passes


def is_within_tightening(field: Field) -> bool:
    """Return whether the squares of a grid of this size are few enough to be factors."""
    n, n_labels = field.unary.shape
    edges = sum(len(term.edges) for _, term in field._terms() if isinstance(term, TableTerm))
    return bool((edges - n) * n_labels**3 <= _MOST_CYCLES)


def tighten(search: MessageSearch, factors: Factors, order: IntArray) -> None:
    """Add the triangles and squares of the pairs to a search, unless there are too many."""
    n, n_labels = factors.unary.shape
    edges = np.stack([factors.pairs.low, factors.pairs.high], axis=1)
    if (np.bincount(edges.ravel()).astype(float) ** 2).sum() > _MOST_CYCLES:
        return
    rank = np.argsort(order)
    cycles = [rank[cycles] for cycles in short_cycles(edges, n)]
    if sum(len(c) for c in cycles) * n_labels**3 > _MOST_CYCLES:
        return
    lengths = np.repeat([3, 4], [len(c) for c in cycles])
    search.add_cycles(np.append(0, np.cumsum(lengths)), np.concatenate([c.ravel() for c in cycles]))


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
