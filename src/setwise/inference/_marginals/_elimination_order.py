"""In which order a bound by trees eliminates variables: leaves first, exact on a forest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise.fields._edges import Grid, grid_of
from setwise.fields._terms import PottsTerm, TableTerm

TILE = 1024  # variables, about, that one thread eliminates at a time


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of a field, each pair of variables once: Potts terms, then tables."""

    edges: IntArray
    """(E, 2)"""
    weights: FloatArray
    """(P,): of the first P edges"""
    tables: FloatArray
    """(E - P, L, L): of the others"""
    grid: Grid | None

    @property
    def heights(self) -> FloatArray:
        """(E,): how far apart the energies of a pair can be."""
        tables = self.tables
        spread = tables.max(axis=(1, 2)) - tables.min(axis=(1, 2)) if len(tables) else np.zeros(0)
        return np.concatenate([self.weights, spread])


def pairs_of(terms: Iterable[tuple[Any, Any]], shape: tuple[int, ...]) -> Pairs:
    """The Potts terms and tables among the terms of a field of a shape (N, L).

    Edges that are listed more than once become one, and edges without weight none.
    """
    n, n_labels = shape
    potts = [term for _, term in terms if isinstance(term, PottsTerm)]
    tables = [term for _, term in terms if isinstance(term, TableTerm)]
    none: FloatArray = np.zeros((0, n_labels, n_labels))
    if len(potts) == 1 and not tables and (potts[0].weights > 0).all():
        grid = grid_of(potts[0].edges)
        if grid is not None:  # no edge twice
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


@dataclass(frozen=True, eq=False)
class Order:
    """Variables in the order of their elimination, in blocks."""

    variables: IntArray
    """(N,)"""
    starts: IntArray
    """(B + 1,): where the blocks start; many of them can be done at once"""

    def first(self, edges: IntArray) -> IntArray:
        """(E,): which end of each edge is eliminated first."""
        position = np.empty(len(self.variables), np.int64)
        position[self.variables] = np.arange(len(self.variables))
        places = position[edges]
        return np.asarray(np.where(places[:, 0] < places[:, 1], edges[:, 0], edges[:, 1]))


def order_of(pairs: Pairs, n: int) -> Order:
    """Tiles of a grid, one after the other; else as numbered, or those with fewest edges first.

    A variable with d edges to later ones gives each a share of 1 / d: the fewer the better.
    """
    grid = pairs.grid
    if grid is not None and prod(grid.sides) == n:
        tiles = _tiles(grid)
        if tiles is not None:
            return tiles
    whole = np.array([0, n] if n else [0])
    natural = np.arange(n)
    if len(pairs.edges) == 0:
        return Order(natural, whole)
    fewest = np.empty(n, np.int64)
    _core.fewest_edges_first(pairs.edges, n, fewest)
    orders = [Order(natural, whole), Order(fewest, whole)]
    counts = [np.bincount(order.first(pairs.edges), minlength=n) for order in orders]
    return orders[0] if counts[0].max() <= counts[1].max() else orders[1]


def _tiles(grid: Grid) -> Order | None:
    """Tiles of a grid, each scanned in C order; None where its directions run against each other.

    In an image the columns are skewed so that no direction leads back into an earlier tile: (r, c)
    goes with (r, c + a r).
    """
    steps = np.array(grid.steps, np.int64).reshape(-1, len(grid.sides))
    place = np.indices(grid.sides).reshape(len(grid.sides), -1)
    if (steps < 0).any():
        if len(grid.sides) != 2 or (steps[:, 0] < 0).any() or (steps[steps[:, 0] == 0] < 0).any():
            return None
        down = steps[steps[:, 0] > 0]
        place[1] += place[0] * int(max(0, np.max(-(down[:, 1] // down[:, 0]), initial=0)))
    side = max(2, round(TILE ** (1 / len(grid.sides))))
    tile = place // side
    keys = np.ravel_multi_index(tuple(tile), tuple(tile.max(axis=1) + 1))
    variables = np.argsort(keys, kind="stable")
    counts = np.bincount(keys)
    return Order(variables, np.concatenate([[0], np.cumsum(counts[counts > 0])]))
