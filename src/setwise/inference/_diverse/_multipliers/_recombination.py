"""Recombination of two good labellings, by the connected parts of their difference."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.diversities._base import distances
from setwise.fields._field import Field
from setwise.fields._terms import PottsTerm, TableTerm
from setwise.inference._relaxation._count_tables import CountTables

# In each round, the best of the parts that lower the sum are switched, one in _AT_ONCE of them, and
# the others are evaluated again. A value of 32, with more rounds, changes no list of grids with up
# to 2,025 pixels. A value of 2 changes some.
_AT_ONCE = 8


class Recombination:
    r"""Labellings between two others, best under an energy plus functions of counts.

    The variables in which y and z differ form connected parts. With pairwise terms the energy is a
    sum over the parts that are switched from y to z, and so is every Hamming distance. If y and z
    are both optimal for the same multipliers, switching a part does not change the Lagrangian. All
    subsets of the parts are then equally good for it, and one of them may be best for the functions
    themselves. This closes most of the gap that a search over multipliers leaves between two cuts.
    """

    def __init__(self, field: Field) -> None:
        self._field = field
        _, self._unary, terms = field._folded()
        potts: list[PottsTerm] = []
        self._tables: list[TableTerm] = []
        for _, term in terms:
            if isinstance(term, PottsTerm):
                potts.append(term)
            elif isinstance(term, TableTerm):
                self._tables.append(term)
        none = np.zeros((0, 2), np.int64)
        self._edges = np.concatenate([none, *(term.edges for term in potts)])
        self._weights = np.concatenate([np.zeros(0), *(term.weights for term in potts)])

    def between(
        self, y: IntArray, z: IntArray, centers: IntArray, tables: CountTables
    ) -> IntArray | None:
        """Return y with those parts switched to z that lower the sum, or None if no part does.

        Terms other than pairs are omitted from the sums; the caller compares energies.
        """
        changed = np.flatnonzero(y != z)
        if len(changed) == 0:
            return None
        part, rises = self._parts(y, z, changed)
        before = centers[:, changed] != y[changed]
        after = centers[:, changed] != z[changed]
        change = after.astype(np.int64) - before
        moved = np.zeros((len(rises), len(centers)), np.int64)
        np.add.at(moved, part, change.T)
        counts = distances(y, centers)
        height = tables.heights(counts).sum()
        taken = np.zeros(len(rises), np.bool_)
        while True:
            gains = rises + tables.heights(counts + moved).sum(axis=1) - height
            best = np.argsort(gains)[: max(1, np.count_nonzero(gains < 0.0) // _AT_ONCE)]
            if gains[best[0]] >= 0.0:
                break
            taken[best] = True
            counts = counts + moved[best].sum(axis=0)
            rises[best], moved[best] = np.inf, 0  # so that the part is not chosen again
            height = tables.heights(counts).sum()
        if not taken.any():
            return None
        switched = y.copy()
        chosen = changed[taken[part]]
        switched[chosen] = z[chosen]
        return switched

    def parts(self, y: IntArray, z: IntArray) -> list[IntArray]:
        """Return the variables of each part of the difference of two labellings."""
        changed = np.flatnonzero(y != z)
        if len(changed) == 0:
            return []
        part, rises = self._parts(y, z, changed)
        order = np.argsort(part, kind="stable")
        return np.split(changed[order], np.cumsum(np.bincount(part, minlength=len(rises)))[:-1])

    def _parts(self, y: IntArray, z: IntArray, changed: IntArray) -> tuple[IntArray, FloatArray]:
        """Return the part of each changed variable, and the cost of switching each part."""
        place = np.full(len(y), -1)
        place[changed] = np.arange(len(changed))
        touched = [self._touched(self._edges, place)]
        touched += [self._touched(term.edges, place) for term in self._tables]
        links = np.concatenate(
            [place[edges[which]] for edges, which in zip(self._every_edges(), touched, strict=True)]
        )
        links = links[(links >= 0).all(axis=1)]
        n = len(changed)
        graph = coo_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(n, n))
        n_parts, part = connected_components(graph, directed=False)
        rise = self._unary[changed, z[changed]] - self._unary[changed, y[changed]]
        rises: FloatArray = np.bincount(part, rise, n_parts).astype(np.float64)
        first = touched[0]
        a, b = self._edges[first].T
        cut = (z[a] != z[b]).astype(np.float64) - (y[a] != y[b])
        rises += np.bincount(
            part[np.maximum(place[a], place[b])], self._weights[first] * cut, n_parts
        )
        for term, which in zip(self._tables, touched[1:], strict=True):
            a, b = term.edges[which].T
            more = term.tables[which, z[a], z[b]] - term.tables[which, y[a], y[b]]
            more *= term.weights[which]
            rises += np.bincount(part[np.maximum(place[a], place[b])], more, n_parts)
        return part, rises

    def _every_edges(self) -> list[IntArray]:
        return [self._edges, *(term.edges for term in self._tables)]

    @staticmethod
    def _touched(edges: IntArray, place: IntArray) -> IntArray:
        return np.flatnonzero((place[edges[:, 0]] >= 0) | (place[edges[:, 1]] >= 0))
