"""Terms with a table for each edge, and the tables that are unaries plus Potts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise import _core
from setwise._foundation._arguments import (
    LARGEST,
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    as_numbers,
)
from setwise._foundation._certificate import EPS, MANY_ROUNDINGS
from setwise.fields._edges import as_edges, check_edges
from setwise.fields._terms._base import Numbers, Term, distinct, largest
from setwise.fields._terms._pairs import PottsTerm, as_weights, check_labels
from setwise.fields._terms._singles import ConstantTerm, UnaryTerm

# A table counts as unaries plus Potts if the difference is at most this share of its largest entry,
# which allows for the rounding of a table that was computed as such a sum.
SPLIT_ROUNDING = MANY_ROUNDINGS * EPS


class TableTerm(Term):
    r"""A table for each edge, or one for all, times weights: :math:`\sum_e w_e \theta_e(x_i, x_j)`.

    Inference treats a table that equals unaries plus a Potts weight, :math:`\theta(a, b) = u_a +
    v_b + w [a \ne b]` with :math:`w \ge 0`, as unaries and a Potts weight.

    Parameters
    ----------
    edges : array-like of int, shape (E, 2)
        Pairs of different variables; the tables of repeated edges are added.
    tables : array-like of shape (E, L, L), or (L, L) for all edges
        Finite.
    weights : float or array-like of shape (E,), default=1
        The factors of the tables, not negative.

    Examples
    --------
    >>> import setwise as sw
    >>> sw.fields.TableTerm([[0, 1], [1, 2]], [[0.0, 1.0], [2.0, 0.0]], [0.5, 1.0]).weights
    array([0.5, 1. ])
    """

    __match_args__ = ("edges", "tables", "weights")

    edges: IntArray
    tables: FloatArray
    """(E, L, L); all rows are the same memory where the edges share one table."""
    weights: FloatArray
    """(E,); all are 1 where the edges do not share a table."""

    def __init__(self, edges: ArrayLike, tables: ArrayLike, weights: ArrayLike = 1.0) -> None:
        pairs = as_edges(edges)
        term = of_tables(pairs, as_tables(tables, len(pairs)), as_weights(weights, len(pairs)))
        self._set(edges=pairs, tables=term.tables, weights=term.weights)

    @property
    def is_submodular(self) -> bool:
        return self._remember("is_submodular", lambda: bool(self._sums().fits.all()))

    def _check(self, n_variables: int, n_labels: int) -> None:
        check_edges(self.edges, n_variables)
        check_labels("tables", n_labels, self.tables.shape[1])

    def _energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        energies = np.empty(len(labels))
        tables, weights = self._arrays()
        _core.table_energies(labels, n_labels, self.edges, tables.ravel(), weights, energies)
        return energies

    def _least(self, n_variables: int, n_labels: int) -> float:
        return float((self.weights * self._distinct.min(axis=(1, 2))).sum())

    def _most(self, n_labels: int) -> float:
        tables = self._distinct
        sizes = np.maximum(tables.max(axis=(1, 2)), -tables.min(axis=(1, 2)))
        return float((self.weights * sizes).sum())

    def _split_size(self) -> float:
        return self._most(self.tables.shape[1])

    def _magnitude(self, by_cut: bool) -> float:
        return largest(self._distinct) * float(self.weights.max(initial=0.0))

    def _reduced(self, n_variables: int, n_labels: int) -> tuple[Term, float]:
        tables = self._distinct
        least = tables.min(axis=(1, 2))
        if not least.any():
            return self, 0.0
        rest = np.broadcast_to(tables - least[:, None, None], self.tables.shape)
        return TableTerm._of(self.edges, rest, self.weights), fsum(self.weights * least)

    def _limited(self, limit: float) -> Term:
        # Twice the limit off the diagonal keeps two labels submodular. Edges with different weights
        # need different tables.
        highest = limit * (2.0 - np.eye(self.tables.shape[1]))
        same = not len(self.weights) or (self.weights == self.weights[0]).all()
        tables = self._distinct if same else self._tables_of(slice(None))
        factors = self.weights if same else np.broadcast_to(1.0, len(self.edges))
        factor = float(factors[0]) if len(factors) else 1.0
        lowered = np.minimum(tables, highest / factor) if factor > 0.0 else tables
        return TableTerm._of(self.edges, np.broadcast_to(lowered, self.tables.shape), factors)

    @property
    def _distinct(self) -> FloatArray:
        """The distinct tables: (E, L, L), or (1, L, L) if the edges share one."""
        return distinct(self.tables)[0]

    @property
    def _which(self) -> IntArray:
        """The number of the table of each edge among the distinct ones, (E,)."""
        n = len(self.edges)
        return np.arange(n) if len(self._distinct) == n else np.zeros(n, np.int64)

    def _arrays(self) -> tuple[FloatArray, FloatArray]:
        """Return the distinct tables and the weights as contiguous arrays, for kernels."""
        return np.ascontiguousarray(self._distinct), np.ascontiguousarray(self.weights)

    def _tables_of(self, edges: IntArray | slice) -> FloatArray:
        """Return the tables of some edges times their weights, (k, L, L)."""
        return np.asarray(self.weights[edges, None, None] * self.tables[edges])

    def _n_summands(self, n_variables: int) -> int:
        return len(self.edges)

    def _numbers(self, n_labels: int) -> Numbers | None:
        tables = self._distinct
        if len(tables) == len(self.edges):
            return self._tables_of(slice(None)).reshape(-1, n_labels**2), 1
        if not tables.any():
            return np.zeros((1, 1)), 1
        # Products of a weight and the table are exact if those of the weight and the table's unit
        # are, and the largest product is.
        step, _ = _core.number_grid(tables.reshape(1, -1), False)
        entries = np.array([step, tables.min(), tables.max()])
        return (self.weights[:, None] * entries, 1) if step > 0.0 else None

    def _has_fractions(self, n_labels: int) -> bool:
        return n_labels > 2

    def _pair_tables(self, n_labels: int) -> Iterator[tuple[list[int], FloatArray]]:
        for edge, table, weight in zip(self.edges.tolist(), self.tables, self.weights, strict=True):
            yield edge, weight * table

    def _sums(self) -> _Sums:
        """Return the decompositions of the distinct tables into unaries plus Potts."""
        return self._remember("sums", lambda: _as_sums(self._distinct))

    def _split(self, n_variables: int, n_labels: int) -> Sequence[Term]:
        return self._remember(("split", n_variables), lambda: self._find_parts(n_variables))

    def _find_parts(self, n_variables: int) -> Sequence[Term]:
        """Return unaries, a constant, a Potts term, and the tables that are not of this form."""
        n_labels = self.tables.shape[1]
        if len(self.edges) == 0:
            return ()
        sums, table = self._sums(), self._which
        if not sums.fits.any():
            return (self,)
        terms: list[Term] = []
        easy = sums.fits[table]
        of, edges, factors = table, self.edges, self.weights
        if not easy.all():
            of, edges, factors = of[easy], edges[easy], factors[easy]
        unary = np.zeros((n_variables, n_labels))
        for ends, parts in zip(edges.T, (sums.first, sums.second), strict=True):
            if parts.any():
                np.add.at(unary, ends, factors[:, None] * parts[of])
        if unary.any():
            terms.append(UnaryTerm._of(unary))
        constant = float((factors * sums.constant[of]).sum())
        if constant:
            terms.append(ConstantTerm._of(constant))
        weights = factors * sums.weights[of]
        if (weights > 0).all():
            terms.append(PottsTerm._of(edges, weights))
        elif (weights > 0).any():
            terms.append(PottsTerm._of(edges[weights > 0], weights[weights > 0]))
        if not easy.all():  # these tables are not shared, and have weights of 1
            rest = TableTerm._of(self.edges[~easy], self.tables[~easy], self.weights[~easy])
            rest._remember("is_submodular", lambda: False)
            terms.append(rest)
        return terms


def as_tables(tables: ArrayLike, n_edges: int) -> FloatArray:
    """Read finite tables (E, L, L), or one table (L, L), as a new array."""
    array = as_array(tables, "tables")
    shape = (None, None) if array.ndim == 2 else (n_edges, None, None)
    heights = _copied(array, shape)
    if heights.shape[-1] != heights.shape[-2] or heights.shape[-1] == 0:
        raise ValueError(
            f"tables must have shape (E, L, L) or (L, L) with L at least 1, got {heights.shape}"
        )
    return heights


def of_tables(edges: IntArray, tables: FloatArray, weights: FloatArray) -> TableTerm:
    """Return the term of checked tables (E, L, L), or one (L, L), times weights (E,) >= 0."""
    n_labels = tables.shape[-1]
    if tables.ndim == 3:
        if not (weights == 1.0).all():
            tables = weights[:, None, None] * tables
        weights = np.broadcast_to(1.0, len(edges))
    return TableTerm._of(edges, np.broadcast_to(tables, (len(edges), n_labels, n_labels)), weights)


def _copied(array: NDArray[Any], shape: tuple[int | None, ...]) -> FloatArray:
    """Return a new array of finite numbers of this shape, made in one pass if they are valid."""
    right = array.dtype == np.float64 and array.flags.c_contiguous and array.ndim == len(shape)
    if right and shape[0] in (None, len(array)):
        copy = np.empty(array.shape)
        if _core.copy_finite(array.reshape(-1), LARGEST, copy.reshape(-1)):
            return copy
    return as_numbers(array, "tables", shape=shape)


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
