"""Pairwise: a table of energies for each edge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum

import numpy as np
from numpy.typing import ArrayLike

from setwise import _core
from setwise._foundation._arguments import (
    LARGEST,
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    as_numbers,
)
from setwise.fields._base import Numbers, Potential
from setwise.fields._edges import as_edges, check_edges
from setwise.fields._terms._base import Term
from setwise.fields._terms._pairs import PottsTerm, TableTerm, check_labels
from setwise.fields._terms._singles import ConstantTerm, UnaryTerm

# A table counts as unaries plus Potts if the difference is at most this share of its largest entry,
# which allows for the rounding of a table that was computed as such a sum.
_ROUNDING = 1e-14


class Pairwise(Potential):
    r"""An energy for each pair of labels of each edge.

    .. math:: \varphi(x) = \sum_{e = (i, j)} \theta_e(x_i, x_j)

    The tables may have any finite numbers. Their structure is detected: a table that equals unaries
    plus a Potts weight, :math:`\theta(a, b) = u_a + v_b + w [a \ne b]` with :math:`w \ge 0`, is
    treated as such. With two labels these are the submodular tables, :math:`\theta(0, 1) +
    \theta(1, 0) \ge \theta(0, 0) + \theta(1, 1)`; with one label all tables are.

    An energy costs O(E), compiled.

    Parameters
    ----------
    edges : array-like of int, shape (E, 2)
        Pairs of different variables; repeated edges are added.
    tables : array-like of shape (E, L, L), or (L, L) for all edges
        ``tables[e, a, b]`` is the energy if the first end of edge e takes label a and the second b.

    Examples
    --------
    >>> import setwise as sw
    >>> near = [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]  # |a - b|
    >>> pairwise = sw.fields.Pairwise([[0, 1], [1, 2]], near)
    >>> (sw.fields.Field([[0.0, 0.0, 0.0]] * 3) + pairwise).energy([0, 2, 1])
    3.0
    >>> pairwise, pairwise.is_submodular
    (Pairwise(edges=2, labels=3), False)
    >>> sw.fields.Pairwise([[0, 1]], [[0.0, 2.0], [1.0, 0.5]]).is_submodular
    True
    """

    edges: IntArray
    tables: FloatArray

    def __init__(self, edges: ArrayLike, tables: ArrayLike) -> None:
        pairs = as_edges(edges)
        shape = (None, None) if as_array(tables, "tables").ndim == 2 else (len(pairs), None, None)
        heights = _copied(tables, shape)
        if heights.shape[-1] != heights.shape[-2] or heights.shape[-1] == 0:
            raise ValueError(
                f"tables must have shape (E, L, L) or (L, L) with L at least 1, got {heights.shape}"
            )
        self._set(edges=pairs, tables=heights)

    @property
    def n_labels(self) -> int:
        """The number of labels L."""
        return int(self.tables.shape[-1])

    @property
    def is_submodular(self) -> bool:
        return bool(self._sums().fits.all())

    def check(self, n_variables: int, n_labels: int) -> None:
        check_edges(self.edges, n_variables)
        check_labels("tables", n_labels, self.n_labels)

    def energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        energies = np.empty(len(labels))
        shared = self.tables.ndim == 2
        _core.table_energies(labels, n_labels, self.edges, self.tables.ravel(), shared, energies)
        return energies

    def _grounded(self) -> tuple[Potential, float]:
        """Return each table with a least entry of 0."""
        return self._remember("grounded", self._ground)

    def _ground(self) -> tuple[Potential, float]:
        least = self.tables.min(axis=(-2, -1), keepdims=True)
        if not least.any():
            return self, 0.0
        grounded = Pairwise.__new__(Pairwise)
        grounded._set(edges=self.edges, tables=self.tables - least)
        uses = len(self.edges) if self.tables.ndim == 2 else 1
        return grounded, uses * fsum(least.ravel())

    def _largest_price(self, by_cut: bool) -> float:
        return float(np.abs(self.tables).max(initial=0.0))

    def _limited(self, limit: float, n_labels: int) -> Pairwise:
        highest = limit * (2.0 - np.eye(self.n_labels))
        return Pairwise(self.edges, np.minimum(self.tables, highest))

    def _least(self) -> float:
        return self._over_edges(self.tables.min(axis=(-2, -1)))

    def _as_given(self) -> float:
        high, low = self.tables.max(axis=(-2, -1)), self.tables.min(axis=(-2, -1))
        return self._over_edges(np.maximum(high, -low))

    def _numbers(self, n_variables: int, n_labels: int) -> Numbers:
        uses = len(self.edges) if self.tables.ndim == 2 else 1
        return [(self.tables.reshape(-1, n_labels**2), uses)]

    def _has_fractions(self, n_labels: int) -> bool:
        return n_labels > 2

    def _over_edges(self, numbers: FloatArray) -> float:
        """Return the sum over all edges of a number for each table."""
        if len(self.edges) == 0:
            return 0.0
        return float(numbers.sum()) * (len(self.edges) if self.tables.ndim == 2 else 1)

    def _pair_tables(
        self, n_variables: int, n_labels: int
    ) -> Iterator[tuple[list[int], FloatArray]]:
        shape = (len(self.edges), n_labels, n_labels)
        return zip(self.edges.tolist(), np.broadcast_to(self.tables, shape), strict=True)

    def _sums(self) -> _Sums:
        """Return the tables as unaries plus Potts; a single table if all edges share it."""
        return self._remember("sums", lambda: _as_sums(self.tables.reshape(-1, *self._shape)))

    @property
    def _shape(self) -> tuple[int, int]:
        return self.n_labels, self.n_labels

    def terms(self, n_variables: int, n_labels: int) -> tuple[Term, ...]:
        if len(self.edges) == 0:
            return ()
        sums = self._sums()
        table = (
            np.arange(len(self.edges))
            if self.tables.ndim == 3
            else np.zeros(len(self.edges), np.int64)
        )
        terms: list[Term] = []
        easy = sums.fits[table]
        if easy.any():
            of, (first, second) = table[easy], self.edges[easy].T
            unary = np.zeros((n_variables, n_labels))
            np.add.at(unary, first, sums.first[of])
            np.add.at(unary, second, sums.second[of])
            if unary.any():
                terms.append(UnaryTerm._of(unary))
            constant = float(sums.constant[of].sum())
            if constant:
                terms.append(ConstantTerm._of(constant))
            joined = easy & (sums.weights[table] > 0)
            if joined.any():
                terms.append(PottsTerm._of(self.edges[joined], sums.weights[table[joined]]))
        if not easy.all():
            tables = self.tables.reshape(-1, *self._shape)[table[~easy]]
            terms.append(TableTerm._of(self.edges[~easy], tables))
        return tuple(terms)

    def __repr__(self) -> str:
        return f"Pairwise(edges={len(self.edges)}, labels={self.n_labels})"


def _copied(tables: ArrayLike, shape: tuple[int | None, ...]) -> FloatArray:
    """Copy finite numbers of a shape to a new array; valid ones by one pass over them."""
    array = as_array(tables, "tables")
    right = array.dtype == np.float64 and array.flags.c_contiguous and array.ndim == len(shape)
    if right and shape[0] in (None, len(array)):
        copy = np.empty(array.shape)
        if _core.copy_finite(array.reshape(-1), LARGEST, copy.reshape(-1)):
            return copy
    return as_numbers(tables, "tables", shape=shape)


@dataclass(frozen=True, eq=False)
class _Sums:
    """Tables theta(a, b) = first[a] + second[b] + weight [a != b] + constant, if that fits."""

    fits: BoolArray
    """(T,)"""
    first: FloatArray
    """(T, L)"""
    second: FloatArray
    """(T, L)"""
    weights: FloatArray
    """(T,), >= 0"""
    constant: FloatArray
    """(T,)"""


def _as_sums(tables: FloatArray) -> _Sums:
    """Compute the nearest sums to tables (T, L, L): O(T L^2)."""
    n, n_labels = tables.shape[:2]
    # theta(a, b) + theta(b, a) - theta(a, a) - theta(b, b) is 2 w for every a != b.
    diagonal = np.trace(tables, axis1=1, axis2=2)
    total = tables.sum(axis=(1, 2))
    pairs = max(n_labels * (n_labels - 1), 1)
    weights = (total - n_labels * diagonal) / pairs if n_labels > 1 else np.zeros(n)
    slack = _ROUNDING * np.abs(tables).max(axis=(1, 2), initial=0.0)
    clipped = np.maximum(weights, 0.0)
    # Without the Potts part the rest is a sum over rows and columns, given by its means.
    rest = tables + clipped[:, None, None] * np.eye(n_labels)
    constant = rest.mean(axis=(1, 2))
    first = rest.mean(axis=2) - constant[:, None]
    second = rest.mean(axis=1) - constant[:, None]
    rebuilt = first[:, :, None] + second[:, None, :] + constant[:, None, None]
    fits = (np.abs(rest - rebuilt).max(axis=(1, 2), initial=0.0) <= slack) & (weights >= -slack)
    return _Sums(fits, first, second, clipped, constant - clipped)


def extend_tables(tables: FloatArray, n_labels: int) -> FloatArray:
    """Return tables (T, a, b) as (T, L, L), for further labels that are forbidden anyway.

    The entries of these labels do not matter; the chosen ones preserve the form of unaries plus
    Potts.
    """
    n, a, b = tables.shape
    if a == b == n_labels:
        return tables
    extended = np.zeros((n, n_labels, n_labels))
    extended[:, :a, :b] = tables
    if a == b:
        sums = _as_sums(tables)
        whole = (sums.constant + sums.weights)[:, None]
        extended[:, a:, :b] = (sums.second + whole)[:, None, :]
        extended[:, :a, b:] = (sums.first + whole)[:, :, None]
        extended[:, a:, b:] = whole[:, :, None] - sums.weights[:, None, None] * np.eye(n_labels - a)
    return extended
