"""Terms with a table for each edge, and the tables that are unaries plus Potts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np
from numpy.typing import ArrayLike

from setwise import _core
from setwise._foundation._arguments import BoolArray, FloatArray, IntArray, as_numbers
from setwise._foundation._certificate import EPS, MANY_ROUNDINGS
from setwise.fields._edges import as_edges, check_edges
from setwise.fields._terms._base import Numbers, Term, distinct, largest
from setwise.fields._terms._pairs import PottsTerm, check_labels
from setwise.fields._terms._singles import ConstantTerm, UnaryTerm

# A table counts as unaries plus Potts if the difference is at most this share of its largest entry,
# which allows for the rounding of a table that was computed as such a sum.
SPLIT_ROUNDING = MANY_ROUNDINGS * EPS


class TableTerm(Term):
    r"""A table for each edge, :math:`\sum_e \theta_e(x_i, x_j)`.

    Inference treats a table that equals unaries plus a Potts weight, :math:`\theta(a, b) = u_a +
    v_b + w [a \ne b]` with :math:`w \ge 0`, as unaries and a Potts weight.

    Parameters
    ----------
    edges : array-like of int, shape (E, 2)
        Pairs of different variables; the tables of repeated edges are added.
    tables : array-like of shape (E, L, L)
        Finite.

    Examples
    --------
    >>> import setwise as sw
    >>> sw.fields.TableTerm([[0, 1]], [[[0.0, -1.0], [2.0, 0.0]]])
    TableTerm(edges=array of shape (1, 2), tables=array of shape (1, 2, 2))
    """

    __match_args__ = ("edges", "tables")

    edges: IntArray
    tables: FloatArray
    """(E, L, L); all rows are the same memory where the edges share one table."""

    def __init__(self, edges: ArrayLike, tables: ArrayLike) -> None:
        pairs = as_edges(edges)
        heights = as_numbers(tables, "tables", shape=(len(pairs), None, None))
        if heights.shape[1] != heights.shape[2] or heights.shape[1] == 0:
            raise ValueError(
                f"tables must have shape (E, L, L) with L at least 1, got {heights.shape}"
            )
        self._set(edges=pairs, tables=heights)

    @property
    def is_submodular(self) -> bool:
        return self._remember("is_submodular", lambda: bool(self._sums().fits.all()))

    def _check(self, n_variables: int, n_labels: int) -> None:
        check_edges(self.edges, n_variables)
        check_labels("tables", n_labels, self.tables.shape[1])

    def _energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        energies = np.empty(len(labels))
        tables, uses = distinct(self.tables)
        _core.table_energies(labels, n_labels, self.edges, tables.ravel(), uses > 1, energies)
        return energies

    def _least(self, n_variables: int, n_labels: int) -> float:
        tables, uses = distinct(self.tables)
        return float(tables.min(axis=(1, 2)).sum()) * uses

    def _most(self, n_labels: int) -> float:
        tables, uses = distinct(self.tables)
        sizes = np.maximum(tables.max(axis=(1, 2)), -tables.min(axis=(1, 2)))
        return float(sizes.sum()) * uses

    def _split_size(self) -> float:
        return self._most(self.tables.shape[1])

    def _magnitude(self, by_cut: bool) -> float:
        return largest(distinct(self.tables)[0])

    def _reduced(self, n_variables: int, n_labels: int) -> tuple[Term, float]:
        tables, uses = distinct(self.tables)
        least = tables.min(axis=(1, 2), keepdims=True)
        if not least.any():
            return self, 0.0
        return self._with(tables - least), uses * fsum(least.ravel())

    def _limited(self, limit: float) -> Term:
        # Twice the limit off the diagonal keeps two labels submodular.
        highest = limit * (2.0 - np.eye(self.tables.shape[1]))
        return self._with(np.minimum(distinct(self.tables)[0], highest))

    def _with(self, tables: FloatArray) -> TableTerm:
        """Return the term with its distinct tables replaced."""
        return TableTerm._of(self.edges, np.broadcast_to(tables, self.tables.shape))

    def _n_summands(self, n_variables: int) -> int:
        return len(self.edges)

    def _numbers(self, n_labels: int) -> Numbers:
        tables, uses = distinct(self.tables)
        return tables.reshape(-1, n_labels**2), uses

    def _has_fractions(self, n_labels: int) -> bool:
        return n_labels > 2

    def _pair_tables(self, n_labels: int) -> Iterator[tuple[list[int], FloatArray]]:
        return zip(self.edges.tolist(), self.tables, strict=True)

    def _sums(self) -> _Sums:
        """Return the decompositions of the distinct tables into unaries plus Potts."""
        return self._remember("sums", lambda: _as_sums(distinct(self.tables)[0]))

    def _split(self, n_variables: int, n_labels: int) -> Sequence[Term]:
        return self._remember(("split", n_variables), lambda: self._find_parts(n_variables))

    def _find_parts(self, n_variables: int) -> Sequence[Term]:
        """Return unaries, a constant, a Potts term, and the tables that are not of this form."""
        n_labels = self.tables.shape[1]
        if len(self.edges) == 0:
            return ()
        sums, (tables, uses) = self._sums(), distinct(self.tables)
        table = np.zeros(uses, np.int64) if uses > 1 else np.arange(len(tables))
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
            rest = TableTerm._of(self.edges[~easy], tables[table[~easy]])
            rest._remember("is_submodular", lambda: False)
            terms.append(rest)
        return terms


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
    """Return the sums that are nearest to tables (T, L, L), in O(T L^2)."""
    n, n_labels = tables.shape[:2]
    # theta(a, b) + theta(b, a) - theta(a, a) - theta(b, b) is 2 w for every a != b.
    diagonal = np.trace(tables, axis1=1, axis2=2)
    total = tables.sum(axis=(1, 2))
    pairs = max(n_labels * (n_labels - 1), 1)
    weights = (total - n_labels * diagonal) / pairs if n_labels > 1 else np.zeros(n)
    slack = SPLIT_ROUNDING * np.abs(tables).max(axis=(1, 2), initial=0.0)
    clipped = np.maximum(weights, 0.0)
    # After subtracting the Potts part, the means of rows and columns give the unaries.
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
