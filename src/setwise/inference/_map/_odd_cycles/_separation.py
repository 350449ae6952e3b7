r"""Odd-cycle inequalities that a fractional cut violates.

A cut crosses each cycle an even number of times. So for every cycle C and every subset F of an odd
number of its edges

.. math:: \sum_{e \in F} (1 - y_e) + \sum_{e \in C \setminus F} y_e \ge 1.

Of a given cycle, the inequality that is violated most has F = {y > 1/2}, with the edge nearest to
1/2 added or removed if F is even. All cycles are searched by shortest paths (Barahona and Mahjoub,
1986): in two copies of the graph, y_e is the length of an edge within a copy, and 1 - y_e between
the copies. A path from a node to its own copy of length below 1 is a violated inequality.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise import _core
from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise.inference._map._messages._cycles import short_cycles
from setwise.inference._map._odd_cycles._signed_graph import SignedGraph

# Inequalities that are violated by less count as satisfied: far above the accuracy of the linear
# program. Not tuned.
_LEAST = 1e-5
# The estimated time of a search from one node, in the unit of _WORK: pivots times rows and columns.
# Not tuned.
_PER_NODE = 2000.0


@dataclass(frozen=True, eq=False)
class Inequalities:
    """Inequalities as lists of edges, one after the other, and which of them are in F."""

    starts: IntArray
    edges: IntArray
    in_f: BoolArray
    violations: FloatArray

    def __len__(self) -> int:
        return len(self.violations)

    def taken(self, rows: IntArray) -> Inequalities:
        """Return the inequalities with the given numbers."""
        sizes = np.diff(self.starts)[rows]
        starts = np.append(0, np.cumsum(sizes))
        at = np.repeat(self.starts[rows] - starts[:-1], sizes) + np.arange(starts[-1])
        return Inequalities(starts, self.edges[at], self.in_f[at], self.violations[rows])


class Separation:
    """The search for violated inequalities of a graph."""

    def __init__(self, graph: SignedGraph) -> None:
        self._graph, self.work = graph, 0.0
        n, edges = graph.n, graph.edges
        inner = edges[(edges < n - 1).all(axis=1)]
        cycles = [c for c in short_cycles(inner, n) if len(c)] if len(inner) else []
        tied = np.zeros(n, bool)
        tied[edges[(edges == n - 1).any(axis=1)].min(axis=1)] = True
        fans = inner[tied[inner].all(axis=1)]
        if len(fans):
            cycles.append(np.column_stack([fans, np.full(len(fans), n - 1)]))
        self._cycles = [graph.between(c, np.roll(c, -1, axis=1)) for c in cycles]

    def short(self, y: FloatArray) -> Inequalities:
        """Return violated inequalities of triangles and squares, by decreasing violation."""
        found = []
        for cycles in self._cycles:
            z = y[cycles]
            in_f = z > 0.5
            even = np.flatnonzero(in_f.sum(axis=1) % 2 == 0)
            nearest = np.abs(z[even] - 0.5).argmin(axis=1)
            in_f[even, nearest] ^= True
            violations = 1.0 - np.where(in_f, 1.0 - z, z).sum(axis=1)
            rows = violations > _LEAST
            size = cycles.shape[1]
            count = int(rows.sum())
            found.append(
                Inequalities(
                    size * np.arange(count + 1),
                    cycles[rows].ravel(),
                    in_f[rows].ravel(),
                    violations[rows],
                )
            )
        return _joined(found, len(y))

    def any(self, y: FloatArray) -> Inequalities:
        """Return violated inequalities of any cycles: one for each node on a violated cycle."""
        graph = self._graph
        self.work += _PER_NODE * graph.n
        sizes = np.empty(graph.n, np.int64)
        walks = np.empty(graph.n * graph.n, np.int64)
        total = _core.odd_cycles(
            np.ascontiguousarray(graph.edges),
            graph.n,
            np.clip(y, 0.0, 1.0),
            1.0 - _LEAST,
            sizes,
            walks,
        )
        starts = np.append(0, np.cumsum(sizes[sizes > 0]))
        edges, in_f = np.divmod(walks[:total], 2)
        z = np.where(in_f > 0, 1.0 - y[edges], y[edges])
        violations = 1.0 - np.add.reduceat(z, starts[:-1]) if len(starts) > 1 else np.zeros(0)
        return _joined([Inequalities(starts, edges, in_f > 0, violations)], len(y))


def _joined(parts: list[Inequalities], most: int) -> Inequalities:
    """Return at most ``most`` distinct inequalities, by decreasing violation."""
    starts, rows = [np.zeros(1, np.int64)], 0
    for part in parts:
        starts.append(part.starts[1:] + rows)
        rows += int(part.starts[-1])
    none: IntArray = np.zeros(0, np.int64)
    joined = Inequalities(
        np.concatenate(starts),
        np.concatenate([none, *(part.edges for part in parts)]),
        np.concatenate([none > 0, *(part.in_f for part in parts)]),
        np.concatenate([np.zeros(0), *(part.violations for part in parts)]),
    )
    order = np.argsort(-joined.violations, kind="stable")
    seen: set[bytes] = set()
    once: list[int] = []
    numbers = 2 * joined.edges + joined.in_f
    for row in order.tolist():
        if len(once) == most:
            break
        key = np.sort(numbers[joined.starts[row] : joined.starts[row + 1]]).tobytes()
        if key not in seen:
            seen.add(key)
            once.append(row)
    return joined.taken(np.array(once, np.int64))
