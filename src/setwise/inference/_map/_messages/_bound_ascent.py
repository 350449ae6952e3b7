"""The ascent of the bound of a message search, by coordinate ascent, cycles and supergradients."""

from __future__ import annotations

import numpy as np

from setwise._core import MessageSearch
from setwise._foundation._arguments import IntArray
from setwise.fields._field import Field
from setwise.fields._terms import TableTerm
from setwise.inference._map._messages._cycles import short_cycles
from setwise.inference._map._messages._factor_graph import Factors

# The number of passes over which progress is measured. Not tuned.
_WINDOW = 10
# Cycles are not searched if there are more paths of two edges than this. They are not used if their
# tables have more cells than this, so that tables take at most 80 MB. Not tuned.
_MOST_CYCLES = 1e7


class Ascent:
    """Passes that raise the dual, by stronger steps when progress slows.

    The first passes are plain coordinate ascent. When ten passes close less than a tenth of the
    gap, triangles and squares of the pairs become factors (Sontag et al., 2008). The bound can then
    exceed that of the relaxation in which pairs agree on single variables. When that slows too,
    every third pass starts with a step along a supergradient, because coordinate ascent can end
    below the highest bound. The step is shortened whenever ten passes have made no progress.
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
    edges = factors.pairs.edges
    if (np.bincount(edges.ravel()).astype(float) ** 2).sum() > _MOST_CYCLES:
        return
    rank = np.argsort(order)
    cycles = [rank[cycles] for cycles in short_cycles(edges, n)]
    if sum(len(c) for c in cycles) * n_labels**3 > _MOST_CYCLES:
        return
    lengths = np.repeat([3, 4], [len(c) for c in cycles])
    search.add_cycles(np.append(0, np.cumsum(lengths)), np.concatenate([c.ravel() for c in cycles]))
