"""The pairs of a field, each pair of variables once, with the sum of its terms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise.fields._terms._base import Term
from setwise.fields._terms._pairs import PottsTerm
from setwise.fields._terms._tables import TableTerm


@dataclass(frozen=True, eq=False)
class MergedPairs:
    """Pairs of variables, each once, with a Potts weight or a weight times a table.

    Edges with a shared table keep sharing it. Only tables that are added up are stored per edge.
    """

    edges: IntArray
    """(E, 2): variables low < high, sorted"""
    weights: FloatArray
    """(E,): Potts weights, or the factors of tables"""
    table: IntArray
    """(E,): the position in ``tables``, -1 for Potts"""
    tables: FloatArray
    """(T, L, L): [label of low, label of high]"""

    @property
    def low(self) -> IntArray:
        return np.ascontiguousarray(self.edges[:, 0])

    @property
    def high(self) -> IntArray:
        return np.ascontiguousarray(self.edges[:, 1])

    @property
    def spread(self) -> float:
        """The mean over pairs of the standard deviation of a pair's energy over its labels."""
        labels = self.tables.shape[1]
        spreads = np.append(self.tables.std(axis=(1, 2)), np.sqrt(labels - 1.0) / labels)
        return float((self.weights * spreads[self.table]).mean()) if len(self.table) else 0.0

    def energies(self) -> FloatArray:
        """Return the energies of all pairs, (E, L, L)."""
        labels = self.tables.shape[1]
        tables = np.concatenate([self.tables, 1.0 - np.eye(labels)[None]])
        return np.asarray(self.weights[:, None, None] * tables[self.table])

    def renumbered(self, rank: IntArray) -> MergedPairs:
        """Return the pairs with variables numbered by ``rank``, sorted."""
        ends = rank[self.edges]
        turned = (ends[:, 0] > ends[:, 1]) & (self.table >= 0)
        tables, table = turn(self.tables, self.table, turned)
        ends.sort(axis=1)
        order = np.lexsort((ends[:, 1], ends[:, 0]))
        return MergedPairs(
            np.ascontiguousarray(ends[order]), self.weights[order], table[order], tables
        )


def turn(tables: FloatArray, table: IntArray, turned: BoolArray) -> tuple[FloatArray, IntArray]:
    """Transpose the tables of some edges; return the tables, and those of the edges, (E,)."""
    if not turned.any():
        return tables, table
    used = np.unique(table[turned])
    used = used[(tables[used] != tables[used].transpose(0, 2, 1)).any(axis=(1, 2))]
    if not len(used):
        return tables, table
    stays = np.zeros(len(tables), np.bool_)
    stays[table[~turned & (table >= 0)]] = True
    alone, shared = used[~stays[used]], used[stays[used]]
    tables = np.concatenate([tables, tables[shared].transpose(0, 2, 1)])
    tables[alone] = tables[alone].transpose(0, 2, 1)
    place = np.arange(len(tables))
    place[shared] = len(tables) - len(shared) + np.arange(len(shared))
    return tables, np.where(turned, place[table], table)


def merge_pairs(terms: Iterable[Term], n: int, n_labels: int) -> MergedPairs:
    """Merge the pairs among terms of a field of N variables: those of equal ends are added."""
    given = list(terms)
    potts = [term for term in given if isinstance(term, PottsTerm)]
    parts = [term for term in given if isinstance(term, TableTerm)]
    none = np.zeros((0, 2), np.int64)
    ends = np.concatenate([none, *(term.edges for term in potts), *(term.edges for term in parts)])
    turned = ends[:, 0] > ends[:, 1]
    ends = np.sort(ends, axis=1)
    keys, place = np.unique(ends[:, 0] * n + ends[:, 1], return_inverse=True)
    edges: IntArray = np.stack(np.divmod(keys, max(n, 1)), axis=1)
    split = sum(len(term.edges) for term in potts)
    heights = np.concatenate([np.zeros(0), *(term.weights for term in potts)])
    weights = np.bincount(place[:split], heights, minlength=len(keys)).astype(np.float64)
    table: IntArray = np.full(len(keys), -1)
    if not parts:
        return MergedPairs(edges, weights, table, np.zeros((0, n_labels, n_labels)))
    tables, of = _tables_of(parts, turned[split:])
    factors, place = np.concatenate([term.weights for term in parts]), place[split:]
    counts = np.bincount(place, minlength=len(keys)) + (weights > 0.0)
    alone = counts[place] == 1
    sums = np.unique(place[~alone])  # pairs with several terms, the last ones in ``tables``
    table[place[alone]], weights[place[alone]] = of[alone], factors[alone]
    if len(sums):
        added = weights[sums][:, None, None] * (1.0 - np.eye(n_labels))
        products = factors[~alone, None, None] * tables[of[~alone]]
        np.add.at(added, np.searchsorted(sums, place[~alone]), products)
        kept = np.zeros(len(tables), np.bool_)
        kept[of[alone]] = True
        number = np.cumsum(kept) - 1
        table[place[alone]] = number[of[alone]]
        table[sums], weights[sums] = np.count_nonzero(kept) + np.arange(len(sums)), 1.0
        tables = np.concatenate([tables[kept], added])
    return MergedPairs(edges, weights, table, tables)


def _tables_of(parts: list[TableTerm], turned: BoolArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct tables of terms, and the number of the table of each edge."""
    starts = np.cumsum([0, *(len(term._distinct) for term in parts)])
    of = np.concatenate([term._which + at for term, at in zip(parts, starts, strict=False)])
    return turn(np.concatenate([term._distinct for term in parts]), of, turned)
