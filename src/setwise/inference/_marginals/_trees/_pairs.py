"""The pairs of a field, each once, and their energies under the marginals of trees."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.fields._edges import Grid, grid_of
from setwise.fields._terms import PottsTerm, TableTerm

# The logarithm of a probability of 0; its exponential is 0 in double precision.
NEVER = -750.0


@dataclass(frozen=True, eq=False)
class Pairs:
    """The merged pairs of a field, first Potts terms and then tables."""

    edges: IntArray
    """(E, 2)"""
    weights: FloatArray
    """(P,): the weights of the first P edges"""
    tables: FloatArray
    """(E - P, L, L): the tables of the other edges"""
    grid: Grid | None

    @property
    def heights(self) -> FloatArray:
        """The largest difference between two energies of each pair, (E,)."""
        tables = self.tables
        spread = tables.max(axis=(1, 2)) - tables.min(axis=(1, 2)) if len(tables) else np.zeros(0)
        return np.concatenate([self.weights, spread])


def pairs_of(terms: Iterable[tuple[Any, Any]], shape: tuple[int, ...]) -> Pairs:
    """Collect the Potts terms and tables among the terms of a field of shape (N, L).

    Repeated edges are merged, and edges without weight are omitted.
    """
    n, n_labels = shape
    potts = [term for _, term in terms if isinstance(term, PottsTerm)]
    tables = [term for _, term in terms if isinstance(term, TableTerm)]
    none: FloatArray = np.zeros((0, n_labels, n_labels))
    if len(potts) == 1 and not tables and (potts[0].weights > 0).all():
        grid = grid_of(potts[0].edges)
        if grid is not None:  # a grid has no edge twice
            return Pairs(potts[0].edges, potts[0].weights, none, grid)
    edges = np.concatenate([np.zeros((0, 2), np.int64), *(term.edges for term in potts + tables)])
    turned = edges[:, 0] > edges[:, 1]
    keys = edges.min(axis=1, initial=n) * n + edges.max(axis=1, initial=-1)
    pairs, place = np.unique(keys, return_inverse=True)
    ends: IntArray = np.stack(np.divmod(pairs, max(n, 1)), axis=1)
    n_potts = sum(len(term.edges) for term in potts)
    weights: FloatArray = np.bincount(
        place[:n_potts],
        np.concatenate([np.zeros(0), *(term.weights for term in potts)]),
        minlength=len(pairs),
    ).astype(np.float64)
    has_table = np.zeros(len(pairs), np.bool_)
    has_table[place[n_potts:]] = True
    dense: IntArray = np.cumsum(has_table) - 1
    heights = weights[has_table][:, None, None] * (1.0 - np.eye(n_labels))
    if tables:
        values = np.concatenate([term.tables for term in tables])
        flipped = turned[n_potts:, None, None]
        values = np.where(flipped, values.transpose(0, 2, 1), values)
        np.add.at(heights, dense[place[n_potts:]], values)
    plain = ~has_table & (weights > 0)
    grids = {grid_of(term.edges) for term in potts + tables}
    return Pairs(
        np.ascontiguousarray(np.concatenate([ends[plain], ends[has_table]])),
        weights[plain],
        heights,
        grids.pop() if len(grids) == 1 else None,
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
        energies[at] = (term.tables[at] * marginals).sum(axis=(1, 2))
    return energies


def keys_of(edges: IntArray, n: int) -> IntArray:
    """Return a number for the ends of each edge, (E,), independent of their order."""
    return np.asarray(edges.min(axis=1, initial=n) * n + edges.max(axis=1, initial=-1))


def logs_of(p: FloatArray) -> FloatArray:
    """Return the logarithms of p, with NEVER for 0."""
    logs = np.full(p.shape, NEVER)
    np.log(p, out=logs, where=p > 0)
    return logs
