"""The pairs of a field, each once, and their energies under the marginals of trees."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.fields._edges import Grid, grid_of
from setwise.fields._terms import PottsTerm, TableTerm, merge_pairs

# The logarithm of a probability of 0; its exponential is 0 in double precision.
NEVER = -750.0


@dataclass(frozen=True, eq=False)
class Pairs:
    """The merged pairs of a field, first Potts terms and then tables."""

    edges: IntArray
    """(E, 2)"""
    weights: FloatArray
    """(E,): Potts weights, or the factors of tables"""
    table: IntArray
    """(E - P,): the position in ``tables`` of the last edges; the first P have none"""
    tables: FloatArray
    """(T, L, L)"""
    grid: Grid | None

    @property
    def n_potts(self) -> int:
        """The number P of edges without a table."""
        return len(self.edges) - len(self.table)

    @property
    def heights(self) -> FloatArray:
        """The largest difference between two energies of each pair, (E,)."""
        if not len(self.table):
            return self.weights
        spreads = self.tables.max(axis=(1, 2)) - self.tables.min(axis=(1, 2))
        heights = self.weights.copy()
        heights[self.n_potts :] *= spreads[self.table]
        return heights

    def add_to(self, kernel: Any, temperature: float) -> None:
        """Add the pairs to a kernel, over the temperature."""
        p, weights = self.n_potts, self.weights / temperature
        kernel.add_potts(self.edges[:p], weights[:p])
        kernel.add_tables(self.edges[p:], self.tables, self.table, weights[p:])


def pairs_of(terms: Iterable[tuple[Any, Any]], shape: tuple[int, ...]) -> Pairs:
    """Collect the Potts terms and tables among the terms of a field of shape (N, L).

    Repeated edges are merged, and edges without weight are omitted.
    """
    found = [term for _, term in terms if isinstance(term, PottsTerm | TableTerm)]
    grids = {grid_of(term.edges) for term in found}
    grid = grids.pop() if len(grids) == 1 else None
    if grid is not None and len(found) == 1:  # a grid has no edge twice
        term = found[0]
        if isinstance(term, TableTerm):
            tables, weights = term._arrays()
            return Pairs(term.edges, weights, term._which, tables, grid)
        if (term.weights > 0).all():
            none: FloatArray = np.zeros((0, shape[1], shape[1]))
            return Pairs(term.edges, term.weights, np.zeros(0, np.int64), none, grid)
    pairs = merge_pairs(found, *shape)
    has_table = pairs.table >= 0
    kept = np.flatnonzero(has_table | (pairs.weights > 0))
    order = kept[np.argsort(has_table[kept], kind="stable")]
    return Pairs(
        np.ascontiguousarray(pairs.edges[order]),
        pairs.weights[order],
        pairs.table[has_table],
        pairs.tables,
        grid,
    )


def expected_energies(
    kernel: Any, edges: IntArray, term: PottsTerm | TableTerm, p: FloatArray
) -> FloatArray:
    """Return the expected energy of each edge of a term, (E,), under the kernel's marginals."""
    logs = logs_of(p)
    n, n_labels = p.shape
    keys = keys_of(edges, n)
    order = np.argsort(keys, kind="stable")
    wanted = keys_of(term.edges, n)
    energies: FloatArray = np.zeros(len(wanted))
    weighted = np.flatnonzero(np.isin(wanted, keys))  # edges without weight have no pair
    places = order[np.searchsorted(keys, wanted[weighted], sorter=order)]
    chunk = max(1, 1_000_000 // n_labels**2)
    for start in range(0, len(weighted), chunk):
        at, pairs = weighted[start : start + chunk], places[start : start + chunk]
        marginals = np.empty((len(at), n_labels, n_labels))
        kernel.pair_marginals(logs, np.ascontiguousarray(pairs), marginals)
        if isinstance(term, PottsTerm):
            same = np.trace(marginals, axis1=1, axis2=2)
            energies[at] = term.weights[at] * np.maximum(1.0 - same, 0.0)
            continue
        turned = (term.edges[at, 0] != edges[pairs, 0])[:, None, None]
        marginals = np.where(turned, marginals.transpose(0, 2, 1), marginals)
        energies[at] = (term._tables_of(at) * marginals).sum(axis=(1, 2))
    return energies


def keys_of(edges: IntArray, n: int) -> IntArray:
    """Return a number for the ends of each edge, (E,), independent of their order."""
    return np.asarray(edges.min(axis=1, initial=n) * n + edges.max(axis=1, initial=-1))


def logs_of(p: FloatArray) -> FloatArray:
    """Return the logarithms of p, with NEVER for 0."""
    logs = np.full(p.shape, NEVER)
    np.log(p, out=logs, where=p > 0)
    return logs
