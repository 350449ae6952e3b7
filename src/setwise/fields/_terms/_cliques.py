"""Terms of a few variables each: a table per clique, with ``inf`` for forbidden labellings."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, prod

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    LARGEST,
    MOST_AXES,
    FloatArray,
    IntArray,
    as_array,
    as_float64,
)
from setwise.fields._terms._base import Numbers, Term, distinct
from setwise.fields._terms._pairs import check_labels


class CliqueTerm(Term):
    r"""A table for each clique of k variables, :math:`\sum_c \theta_c(x_{c_1}, \dots, x_{c_k})`.

    Parameters
    ----------
    cliques : array-like of int, shape (C, k)
        Different variables, at least 1 per clique; the energies of repeated cliques are added.
    tables : array-like of shape (C, L, ..., L)
        Tables with k axes of L labels; ``+inf`` forbids, and each table needs a finite entry.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> sw.fields.CliqueTerm([[0, 1, 2]], np.zeros((1, 2, 2, 2)))
    CliqueTerm(cliques=array of shape (1, 3), tables=array of shape (1, 2, 2, 2))
    """

    __match_args__ = ("cliques", "tables")

    cliques: IntArray
    tables: FloatArray

    def __init__(self, cliques: ArrayLike, tables: ArrayLike) -> None:
        scopes = as_cliques(cliques)
        heights = as_clique_tables(tables, scopes.shape[1])
        if heights.ndim == scopes.shape[1]:
            heights = np.repeat(heights[None], len(scopes), axis=0)
        if len(heights) != len(scopes):
            raise ValueError(
                f"tables must have one for each of {len(scopes)} cliques, got {len(heights)}"
            )
        self._set(cliques=scopes, tables=heights)

    @property
    def sides(self) -> IntArray:
        """The number of labels of each axis of a table, (k,).

        Tables of a model file may have fewer labels than the field, which forbids the others.
        """
        return np.array(self.tables.shape[1:], np.int64)

    @property
    def is_submodular(self) -> bool:
        return False

    @property
    def is_hard(self) -> bool:
        """Whether any labelling is forbidden."""
        return self._remember("hard", lambda: not bool(np.isfinite(self.tables).all()))

    def _check(self, n_variables: int, n_labels: int) -> None:
        check_cliques(self.cliques, n_variables)
        for side in self.tables.shape[1:]:
            check_labels("tables", n_labels, side)

    def _energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        return clique_energies(labels, n_labels, self.cliques, self.tables)

    def _flat(self) -> FloatArray:
        """Return the tables as rows, (C, L^k)."""
        return self.tables.reshape(len(self.tables), prod(self.tables.shape[1:]))

    def _rows(self) -> tuple[FloatArray, int]:
        """Return the distinct tables as rows, and their multiplicities."""
        tables, uses = distinct(self.tables)
        return tables.reshape(len(tables), prod(tables.shape[1:])), uses

    def _sizes(self) -> FloatArray:
        """Return the largest finite absolute entry of each distinct table."""
        rows, _ = self._rows()
        sizes = np.abs(np.where(np.isfinite(rows), rows, 0.0))
        return np.asarray(sizes.max(axis=1, initial=0.0))

    def _least(self, n_variables: int, n_labels: int) -> float:
        rows, uses = self._rows()
        return float(rows.min(axis=1).sum()) * uses

    def _most(self, n_labels: int) -> float:
        return float(self._sizes().sum()) * self._rows()[1]

    def _split_size(self) -> float:
        return self._most(1)

    def _magnitude(self, by_cut: bool) -> float:
        return float(self._sizes().max(initial=0.0))

    def _reduced(self, n_variables: int, n_labels: int) -> tuple[Term, float]:
        rows, uses = self._rows()
        least = rows.min(axis=1, keepdims=True)
        if not least.any():
            return self, 0.0
        return self._with(rows - least), uses * fsum(least.ravel())

    def _limited(self, limit: float) -> Term:
        rows, _ = self._rows()
        return self._with(np.where(np.isinf(rows), np.inf, np.minimum(rows, limit)))

    def _with(self, rows: FloatArray) -> CliqueTerm:
        """Return the term with its distinct tables replaced."""
        tables = rows.reshape(len(rows), *self.tables.shape[1:])
        return CliqueTerm._of(self.cliques, np.broadcast_to(tables, self.tables.shape))

    def _split(self, n_variables: int, n_labels: int) -> Sequence[Term]:
        if self.tables.flags.c_contiguous:
            return (self,)
        tables = self._remember("contiguous", lambda: np.ascontiguousarray(self.tables))
        return (CliqueTerm._of(self.cliques, tables),)

    def _n_summands(self, n_variables: int) -> int:
        return len(self.cliques)

    def _numbers(self, n_labels: int) -> Numbers:
        return self._rows()

    def _has_fractions(self, n_labels: int) -> bool:
        return n_labels > 2


def as_cliques(cliques: ArrayLike) -> IntArray:
    """Return different variables in each row, (C, k), as a new array."""
    array = as_array(cliques, "cliques")
    if array.ndim != 2 or not 1 <= array.shape[1] <= MOST_AXES:
        raise ValueError(
            f"cliques must have shape (C, k) with k from 1 to {MOST_AXES}, got {array.shape}"
        )
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"cliques must hold integers, got dtype {array.dtype}")
    if array.size and (array.min() < 0 or array.max() > np.iinfo(np.int64).max):
        bad = array.min() if array.min() < 0 else array.max()
        raise ValueError(f"cliques must hold variables, which are numbered from 0, got {bad}")
    scopes = np.array(array, np.int64, order="C")
    ordered = np.sort(scopes, axis=1)
    twice = np.argwhere(ordered[:, 1:] == ordered[:, :-1])
    if len(twice):
        c, k = twice[0]
        raise ValueError(
            f"cliques must hold different variables each, clique {c} has {ordered[c, k]} twice"
        )
    return scopes


def as_clique_tables(tables: ArrayLike, k: int) -> FloatArray:
    """Read numbers or ``+inf`` of shape (C, L, ..., L), or (L, ..., L) for all; a new array."""
    array = as_array(tables, "tables")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"tables must hold real numbers, got dtype {array.dtype}")
    sides = array.shape[array.ndim - k :] if array.ndim in (k, k + 1) else ()
    if len(sides) != k or len(set(sides)) != 1 or 0 in sides:
        axes = ", ".join("L" * k)
        raise ValueError(
            f"tables must have shape (C, {axes}) or ({axes}) with L at least 1, got {array.shape}"
        )
    heights = as_float64(array)
    bad = ~(heights > -np.inf)  # NaN and -inf
    if bad.any():
        raise ValueError(f"tables must hold numbers or +inf, got {heights[bad][0]}")
    most = float(np.abs(heights).max(initial=0.0, where=np.isfinite(heights)))
    if most > LARGEST:
        raise ValueError(f"tables must be at most {LARGEST:g} in size, got {most:g}")
    flat = heights.reshape(1 if heights.ndim == k else len(heights), prod(sides))
    empty = np.flatnonzero(np.isinf(flat).all(axis=1))
    if len(empty):
        raise ValueError(f"tables must have a finite entry each, got none in table {empty[0]}")
    return heights


def check_cliques(cliques: IntArray, n_variables: int) -> None:
    """Raise a ``ValueError`` if a clique has variables outside the field."""
    last = int(cliques.max(initial=-1))
    if last >= n_variables:
        raise ValueError(
            f"cliques must hold the field's {n_variables} variables, numbered from 0, got {last}"
        )


def clique_energies(
    labels: IntArray, n_labels: int, cliques: IntArray, tables: FloatArray
) -> FloatArray:
    """Return energies (m,) of labellings (m, N), given one table per clique or one for all."""
    k = cliques.shape[1]
    energies = np.zeros(len(labels))
    if len(cliques) == 0:
        return energies
    flat = tables.reshape(1 if tables.ndim == k else len(tables), -1)
    rows = np.arange(len(cliques)) if len(flat) > 1 else np.zeros(len(cliques), np.int64)
    step = max(1, (1 << 20) // len(cliques))
    for begin in range(0, len(labels), step):
        chunk = labels[begin : begin + step]
        cells = np.zeros((len(chunk), len(cliques)), np.int64)
        beyond = np.zeros(len(chunk), np.bool_)
        for axis, side in enumerate(tables.shape[-k:]):
            taken = chunk[:, cliques[:, axis]]
            if side < n_labels:
                beyond |= (taken >= side).any(axis=1)
                taken = np.minimum(taken, side - 1)
            cells *= side
            cells += taken
        heights = flat[rows, cells].sum(axis=1)
        energies[begin : begin + step] = np.where(beyond, np.inf, heights)
    return energies
