"""A field of two labels and pairs as a signed graph, whose cuts are the labellings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import fsum

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise.fields._field import Field
from setwise.inference._map._messages._factor_graph import factors_of

# The largest number of chains of changes, and the largest number of changes of a chain after its
# best prefix. They bound the work of improving a labelling. Not tuned.
_MOST_CHAINS = 20
_LONGEST_CHAIN = 50


@dataclass(frozen=True, eq=False)
class SignedGraph:
    r"""A graph with :math:`E(x) = c + \sum_e J_e [x_i \ne x_j]`, where J may have any sign.

    Its last node is the ground, whose label is 0: the unaries are edges to it. Variables with one
    allowed label are parts of the constant and of the unaries of the others.
    """

    n: int
    """the number of nodes, with the ground"""
    edges: IntArray
    """(E, 2), each pair once"""
    weights: FloatArray
    constant: float
    free: IntArray
    """the variables of the field that the nodes before the ground are"""
    sure: IntArray
    """(N,): the labels of the variables that have only one"""

    @classmethod
    def of(cls, field: Field) -> SignedGraph:
        """Return the graph of a field of two labels with pairs only."""
        factors = factors_of(field)
        pairs, n = factors.pairs, field.n_variables
        ends = pairs.edges
        tables = pairs.energies()
        finite = np.isfinite(factors.unary)
        sure = np.where(finite[:, 0], 0, 1)
        is_free: BoolArray = np.asarray(finite.all(axis=1))
        # The two entries per axis of a pair's table that its variables can take.
        number = np.cumsum(is_free) - 1
        ground = int(is_free.sum())
        constants = [factors.constant]
        slopes: FloatArray = np.zeros(n)
        unary = np.where(finite, factors.unary, 0.0)
        constants.append(float(unary[~is_free, sure[~is_free]].sum()))
        constants.append(float(unary[is_free, 0].sum()))
        slopes[is_free] = unary[is_free, 1] - unary[is_free, 0]
        free = is_free[ends]
        both, first, second = free.all(axis=1), free[:, 0] & ~free[:, 1], ~free[:, 0] & free[:, 1]
        neither = ~free.any(axis=1)
        low, high = sure[ends[:, 0]], sure[ends[:, 1]]
        at = np.arange(len(ends))
        constants.append(float(tables[neither, low[neither], high[neither]].sum()))
        for alone, column in ((first, 0), (second, 1)):
            rows = (
                tables[at[alone], :, high[alone]] if column == 0 else tables[at[alone], low[alone]]
            )
            constants.append(float(rows[:, 0].sum()))
            np.add.at(slopes, ends[alone, column], rows[:, 1] - rows[:, 0])
        t = tables[both]
        weights = 0.5 * ((t[:, 0, 1] + t[:, 1, 0]) - (t[:, 0, 0] + t[:, 1, 1]))
        constants.append(float(t[:, 0, 0].sum()))
        # The unary difference of the first end is t[1, 0] - t[0, 0] minus the weight of the edge.
        np.add.at(
            slopes, ends[both, 0], 0.5 * ((t[:, 1, 0] - t[:, 0, 1]) + (t[:, 1, 1] - t[:, 0, 0]))
        )
        np.add.at(
            slopes, ends[both, 1], 0.5 * ((t[:, 0, 1] - t[:, 1, 0]) + (t[:, 1, 1] - t[:, 0, 0]))
        )
        kept = weights != 0.0
        tied = is_free & (slopes != 0.0)
        between = number[ends[both]][kept]
        to_ground = np.stack([number[tied], np.full(int(tied.sum()), ground)], axis=1)
        return cls(
            ground + 1,
            np.concatenate([between, to_ground]),
            np.concatenate([weights[kept], slopes[tied]]),
            fsum(constants),
            np.flatnonzero(is_free),
            sure,
        )

    def labels(self, sides: IntArray) -> IntArray:
        """Return the labels (N,) of a cut, given the sides (n,) of the nodes."""
        labels = self.sure.copy()
        labels[self.free] = sides[:-1] ^ sides[-1]
        return labels

    def between(self, first: IntArray, second: IntArray) -> IntArray:
        """Return the edges between nodes that are neighbours."""
        keys, order = self._keys
        wanted = np.minimum(first, second) * self.n + np.maximum(first, second)
        found: IntArray = order[np.searchsorted(keys, wanted)]
        return found

    @cached_property
    def _keys(self) -> tuple[IntArray, IntArray]:
        """The sorted keys of the edges, numbers made from the two ends, and the edge of each."""
        keys = self.edges.min(axis=1) * self.n + self.edges.max(axis=1)
        order = np.argsort(keys)
        return keys[order], order

    def settled(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return tighter bounds (lower, upper) of the edges, which follow from the decided edges.

        An edge is decided if its bounds are equal. Nodes that are joined by decided edges have
        known sides relative to each other, which decides all edges between them. Return None if
        the decided edges contradict each other.
        """
        root, side = list(range(self.n)), [0] * self.n
        members = [[i] for i in range(self.n)]
        for e in np.flatnonzero(lower == upper).tolist():
            i, j = self.edges[e].tolist()
            turn = side[i] ^ side[j] ^ int(lower[e])
            a, b = root[i], root[j]
            if a == b:
                if turn:
                    return None
                continue
            if len(members[a]) < len(members[b]):
                a, b = b, a
            for node in members[b]:
                root[node] = a
                side[node] ^= turn
            members[a] += members[b]
        roots, sides = np.array(root, np.int64), np.array(side, np.int64)
        i, j = self.edges.T
        known, differ = roots[i] == roots[j], (sides[i] ^ sides[j]).astype(np.float64)
        return np.where(known, differ, lower), np.where(known, differ, upper)

    @cached_property
    def _neighbours(self) -> list[list[tuple[int, float]]]:
        """The neighbours of each node, with the weights of their edges."""
        found: list[list[tuple[int, float]]] = [[] for _ in range(self.n)]
        for (i, j), w in zip(self.edges.tolist(), self.weights.tolist(), strict=True):
            found[i].append((j, w))
            found[j].append((i, w))
        return found

    def rounded(self, y: FloatArray) -> IntArray:
        """Return the sides (n,) that agree with a cut vector along its surest edges.

        These are the edges of a spanning forest of the largest sum of abs(y - 1/2).
        """
        i, j = self.edges.T
        # Positive, because an entry of 0 would be no edge.
        uncertainty = 2.0 - np.abs(2.0 * y - 1.0)
        matrix = csr_array((uncertainty, (i, j)), shape=(self.n, self.n))
        forest = minimum_spanning_tree(matrix)
        _, part = connected_components(forest, directed=False)
        sides: IntArray = np.zeros(self.n, np.int64)
        for first in np.unique(part, return_index=True)[1].tolist():
            order, before = breadth_first_order(forest, first, directed=False)
            later = order[1:].astype(np.int64)
            crossed = y[self.between(later, before[later])] > 0.5
            for node, turn in zip(later.tolist(), crossed.tolist(), strict=True):
                sides[node] = sides[before[node]] ^ turn
        return sides

    def improved(self, sides: IntArray) -> IntArray:
        """Return the sides after chains of changes, as long as these lower the energy.

        In a chain each node changes its side at most once. The next node is always the one that
        lowers the energy most or raises it least, and the best prefix is kept (Kernighan and Lin,
        1970).
        """
        signs = 1.0 - 2.0 * sides
        i, j = self.edges.T
        least = 1e-12 * np.abs(self.weights).sum()
        for _ in range(_MOST_CHAINS):
            # The change of the energy if a node changes its side.
            agree = self.weights * signs[i] * signs[j]
            change = np.zeros(self.n)
            np.add.at(change, i, agree)
            np.add.at(change, j, agree)
            turned: list[int] = []
            total, best, kept = 0.0, -least, 0
            now = signs.copy()
            while len(turned) < self.n and len(turned) - kept < _LONGEST_CHAIN:
                node = int(change.argmin())
                if change[node] == np.inf:
                    break
                total += float(change[node])
                turned.append(node)
                now[node] = -now[node]
                change[node] = np.inf
                for other, w in self._neighbours[node]:
                    change[other] += 2.0 * w * now[node] * now[other]
                if total < best:
                    best, kept = total, len(turned)
            if kept == 0:
                break
            signs[turned[:kept]] *= -1.0
        return (signs < 0.0).astype(np.int64)
