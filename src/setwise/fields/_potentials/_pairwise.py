"""Pairwise: a table of energies for each edge."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise import _core
from setwise._foundation._arguments import LARGEST, FloatArray, IntArray, as_array, as_numbers
from setwise.fields._base import Potential
from setwise.fields._edges import as_edges, check_edges
from setwise.fields._terms._pairs import check_labels
from setwise.fields._terms._tables import TableTerm


class Pairwise(Potential):
    r"""An energy for each pair of labels of each edge.

    .. math:: \varphi(x) = \sum_{e = (i, j)} \theta_e(x_i, x_j)

    The tables may have any finite numbers. Their structure is detected: a table that equals unaries
    plus a Potts weight, :math:`\theta(a, b) = u_a + v_b + w [a \ne b]` with :math:`w \ge 0`, is
    treated as such. With two labels, these are exactly the submodular tables, :math:`\theta(0, 1) +
    \theta(1, 0) \ge \theta(0, 0) + \theta(1, 1)`; with one label, all tables are of this form.

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
        return self._term().is_submodular

    def check(self, n_variables: int, n_labels: int) -> None:
        check_edges(self.edges, n_variables)
        check_labels("tables", n_labels, self.n_labels)

    def energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        energies = np.empty(len(labels))
        shared = self.tables.ndim == 2
        _core.table_energies(labels, n_labels, self.edges, self.tables.ravel(), shared, energies)
        return energies

    def _term(self) -> TableTerm:
        shape = (len(self.edges), self.n_labels, self.n_labels)
        return self._remember(
            "term", lambda: TableTerm._of(self.edges, np.broadcast_to(self.tables, shape))
        )

    def terms(self, n_variables: int, n_labels: int) -> tuple[TableTerm, ...]:
        return (self._term(),) if len(self.edges) else ()

    def __repr__(self) -> str:
        return f"Pairwise(edges={len(self.edges)}, labels={self.n_labels})"


def _copied(tables: ArrayLike, shape: tuple[int | None, ...]) -> FloatArray:
    """Return a new array of finite numbers of this shape, made in one pass if they are valid."""
    array = as_array(tables, "tables")
    right = array.dtype == np.float64 and array.flags.c_contiguous and array.ndim == len(shape)
    if right and shape[0] in (None, len(array)):
        copy = np.empty(array.shape)
        if _core.copy_finite(array.reshape(-1), LARGEST, copy.reshape(-1)):
            return copy
    return as_numbers(tables, "tables", shape=shape)
