"""Sweeps of tree-reweighted messages over the variables of a field of pairs."""

from __future__ import annotations

import numpy as np

from setwise._core import TreeReweighted
from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._certificate import EPS
from setwise.fields._field import Field
from setwise.fields._terms import PottsTerm, TableTerm
from setwise.inference._conditioning._conditioned import Sums
from setwise.inference._conditioning._magnitude import largest_of_terms
from setwise.inference._map._messages._factor_graph import Factors, factors_of


def has_pairs_only(field: Field) -> bool:
    """Return whether all terms of a field are unaries, Potts terms and tables."""
    _, _, terms = field._folded()
    return all(isinstance(term, PottsTerm | TableTerm) for _, term in terms)


class TreeSweeps:
    """The compiled sweeps over a field of unaries and pairs."""

    def __init__(self, field: Field, largest_excess: float) -> None:
        factors = factors_of(field)
        pairs, (n, n_labels) = factors.pairs, factors.unary.shape
        tables, table = pairs.tables, pairs.table
        if len(tables) > 1 and (tables == tables[0]).all():  # a single table stays in the cache
            tables, table = tables[:1], np.minimum(table, 0)
        self._labels: IntArray = np.empty(n, np.int64)
        ends = np.bincount(pairs.low, minlength=n) + np.bincount(pairs.high, minlength=n)
        self._degree = int(ends.max(initial=0))
        self._prices = largest_of_terms(field)
        self._sweeps = TreeReweighted(
            n=n,
            labels=n_labels,
            constant=factors.constant,
            unary=_within(factors, largest_excess).ravel(),
            low=pairs.low,
            high=pairs.high,
            weight=pairs.weights,
            table=table,
            tables=np.ascontiguousarray(tables).ravel(),
        )

    def advance(self) -> float:
        """Make one pass. Return its bound."""
        return self._sweeps.dual_pass()

    def magnitude(self) -> float:
        """Return the sum of the absolute summands of the bound."""
        return self._sweeps.magnitude()

    def sums(self) -> Sums:
        """Return the summands of the bound; messages are sums over the edges of a variable."""
        return Sums(self.magnitude(), EPS * self._degree * self._prices, self._degree)

    def decode(self) -> IntArray:
        """Return labels, each the best given earlier labels and messages of later variables."""
        labels: IntArray = np.empty_like(self._labels)
        self._sweeps.decode(labels)
        return labels


def _within(factors: Factors, largest_excess: float) -> FloatArray:
    """Return the unaries, infinite for labels whose excess is above the given limit."""
    if largest_excess == np.inf:
        return factors.unary
    least = factors.unary.min(axis=1, keepdims=True)
    return np.where(factors.unary - least <= largest_excess, factors.unary, np.inf)
