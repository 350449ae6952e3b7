"""Pairwise: a table of energies for each edge, or one table times a weight for each edge."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise import _core
from setwise._foundation._arguments import (
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    as_numbers,
)
from setwise.fields._base import Potential, range_in_repr
from setwise.fields._edges import as_edges, check_edges
from setwise.fields._terms._pairs import check_labels
from setwise.fields._terms._tables import TableTerm, as_tables, of_tables


class Pairwise(Potential):
    r"""An energy for each pair of labels of each edge.

    .. math:: \varphi(x) = \sum_{e = (i, j)} w_e \, \theta_e(x_i, x_j)

    The tables may have any finite numbers. Their structure is detected: a table that equals unaries
    plus a Potts weight, :math:`\theta(a, b) = u_a + v_b + w [a \ne b]` with :math:`w \ge 0`, is
    treated as such. With two labels, these are exactly the submodular tables, :math:`\theta(0, 1) +
    \theta(1, 0) \ge \theta(0, 0) + \theta(1, 1)`; with one label, all tables are of this form.

    A table that all edges share is stored once, so that memory is E + L^2 numbers. An energy costs
    O(E), compiled.

    Parameters
    ----------
    edges : array-like of int, shape (E, 2)
        Pairs of different variables; repeated edges are added.
    tables : array-like of shape (E, L, L), or (L, L) for all edges
        ``tables[e, a, b]`` is the energy if the first end of edge e takes label a and the second b.
    weights : float or array-like of shape (E,), default=1
        Finite factors of the tables.

    Examples
    --------
    >>> import setwise as sw
    >>> near = [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]  # |a - b|
    >>> pairwise = sw.fields.Pairwise([[0, 1], [1, 2]], near, weights=[1.0, 0.5])
    >>> (sw.fields.Field([[0.0, 0.0, 0.0]] * 3) + pairwise).energy([0, 2, 1])
    2.5
    >>> pairwise, pairwise.is_submodular
    (Pairwise(edges=2, labels=3, weights=0.5..1), False)
    >>> sw.fields.Pairwise([[0, 1]], [[0.0, 2.0], [1.0, 0.5]]).is_submodular
    True
    """

    edges: IntArray
    tables: FloatArray
    weights: FloatArray

    def __init__(self, edges: ArrayLike, tables: ArrayLike, weights: ArrayLike = 1.0) -> None:
        pairs = as_edges(edges)
        heights = as_tables(tables, len(pairs))
        shape: tuple[int, ...] = () if as_array(weights, "weights").ndim == 0 else (len(pairs),)
        factors = as_numbers(weights, "weights", shape=shape)
        whole = np.broadcast_to(factors, len(pairs)) if factors.ndim == 0 else factors
        self._set(edges=pairs, tables=heights, weights=whole)

    @property
    def n_labels(self) -> int:
        """The number of labels L."""
        return int(self.tables.shape[-1])

    @property
    def is_submodular(self) -> bool:
        return all(term.is_submodular for term in self._each())

    def check(self, n_variables: int, n_labels: int) -> None:
        check_edges(self.edges, n_variables)
        check_labels("tables", n_labels, self.n_labels)

    def energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        energies = np.empty(len(labels))
        tables, weights = self.tables.ravel(), np.ascontiguousarray(self.weights)
        _core.table_energies(labels, n_labels, self.edges, tables, weights, energies)
        return energies

    def _each(self) -> tuple[TableTerm, ...]:
        return self._remember("terms", self._split)

    def _split(self) -> tuple[TableTerm, ...]:
        """Return the edges of positive and of negative weight, whose tables change their sign."""
        below = self.weights < 0.0
        if not below.any():
            return (of_tables(self.edges, self.tables, self.weights),)

        def part(chosen: BoolArray, sign: float) -> TableTerm:
            tables = sign * (self.tables if self.tables.ndim == 2 else self.tables[chosen])
            return of_tables(self.edges[chosen], tables, sign * self.weights[chosen])

        parts = (part(~below, 1.0), part(below, -1.0))
        return tuple(term for term in parts if len(term.edges))

    def terms(self, n_variables: int, n_labels: int) -> tuple[TableTerm, ...]:
        return self._each() if len(self.edges) else ()

    def __repr__(self) -> str:
        weights = "" if (self.weights == 1.0).all() else f", weights={range_in_repr(self.weights)}"
        return f"Pairwise(edges={len(self.edges)}, labels={self.n_labels}{weights})"
