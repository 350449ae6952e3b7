"""Clique potentials: tables of energies for a few variables each, including hard constraints."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.fields._base import Potential
from setwise.fields._terms._base import Term
from setwise.fields._terms._cliques import (
    CliqueTerm,
    as_clique_tables,
    as_cliques,
    check_cliques,
    clique_energies,
)
from setwise.fields._terms._pairs import check_labels
from setwise.fields._terms._singles import UnaryTerm
from setwise.fields._terms._tables import TableTerm


class CliquePotential(Potential):
    r"""An energy for each labelling of each clique of k variables; ``+inf`` forbids a labelling.

    .. math:: \varphi(x) = \sum_c \theta_c(x_{c_1}, \dots, x_{c_k})

    Tables may be any functions of a few variables, including hard constraints: a labelling of
    energy ``+inf`` has probability 0 and is never an answer. Finite tables of one or two variables
    are equivalent to ``Field(unary)`` and ``Pairwise``, and supported by the same methods. Tables
    of three or more variables, and tables with ``+inf``, are supported by ``enumerate``,
    ``elimination`` (both exact), ``mean_field``, ``belief_propagation`` and ``perturb``; without
    ``+inf`` also by ``messages`` and ``convex``. Other methods raise an error.

    A table has :math:`L^k` entries, and an energy costs O(C k).

    Parameters
    ----------
    cliques : array-like of int, shape (C, k)
        Different variables in each row; the energies of repeated cliques are added.
    tables : array-like of shape (C, L, ..., L), or (L, ..., L) for all cliques
        ``tables[c, a, b, ...]`` is the energy if the first variable of clique c takes label a, the
        second b, and so on. Entries are numbers or ``+inf``, with at least one number per table.

    Examples
    --------
    Exactly one of three variables is 1:

    >>> import numpy as np
    >>> import setwise as sw
    >>> table = np.full((2, 2, 2), np.inf)
    >>> table[1, 0, 0] = table[0, 1, 0] = table[0, 0, 1] = 0.0
    >>> field = sw.fields.Field([[0.0, 3.0], [0.0, 1.0], [0.0, 2.0]])
    >>> field = field + sw.fields.CliquePotential([[0, 1, 2]], table)
    >>> field.energy([[0, 1, 0], [1, 1, 0]]).tolist()
    [1.0, inf]
    >>> best = sw.solve_map(field)
    >>> best.labels.tolist(), best.value, best.exact
    ([0, 1, 0], 1.0, True)
    >>> sw.marginals(field).probabilities[:, 1].round(2).tolist()
    [0.09, 0.67, 0.24]
    """

    cliques: IntArray
    tables: FloatArray
    _is_short: bool

    def __init__(self, cliques: ArrayLike, tables: ArrayLike) -> None:
        scopes = as_cliques(cliques)
        heights = as_clique_tables(tables, scopes.shape[1])
        if heights.ndim > scopes.shape[1] and len(heights) != len(scopes):
            raise ValueError(
                f"tables must have one for each of {len(scopes)} cliques, got {len(heights)}"
            )
        self._set(cliques=scopes, tables=heights, _is_short=False)

    @classmethod
    def _of(
        cls, cliques: IntArray, tables: FloatArray, *, is_short: bool = True
    ) -> CliquePotential:
        """Make a potential of valid arrays; axes may omit trailing labels that a field forbids."""
        potential = cls.__new__(cls)
        potential._set(cliques=cliques, tables=tables, _is_short=is_short)
        return potential

    @property
    def n_labels(self) -> int:
        """The number of labels L, or the length of the longest axis."""
        return int(max(self.tables.shape[-self.cliques.shape[1] :]))

    @property
    def is_submodular(self) -> bool | None:
        return None

    @property
    def _is_hard(self) -> bool:
        return self._remember("hard", lambda: not bool(np.isfinite(self.tables).all()))

    def check(self, n_variables: int, n_labels: int) -> None:
        check_cliques(self.cliques, n_variables)
        if not (self._is_short and self.n_labels <= n_labels):
            check_labels("tables", n_labels, self.n_labels)

    def energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        return clique_energies(labels, n_labels, self.cliques, self.tables)

    def terms(self, n_variables: int, n_labels: int) -> tuple[Term, ...]:
        count, k = self.cliques.shape
        if count == 0:
            return ()
        if k > 2 or self._is_hard or self._is_short:
            return (CliqueTerm._of(self.cliques, self._each()),)
        if k == 2:
            return (TableTerm._of(self.cliques, self._each(), np.broadcast_to(1.0, count)),)
        unary = np.zeros((n_variables, n_labels))
        np.add.at(unary, self.cliques[:, 0], self._each())
        return (UnaryTerm._of(unary),)

    def _each(self) -> FloatArray:
        """Return the tables of all cliques, (C, L, ..., L), without a copy."""
        count, k = self.cliques.shape
        return np.broadcast_to(self.tables, (count, *self.tables.shape[-k:]))

    def __repr__(self) -> str:
        count, k = self.cliques.shape
        return f"CliquePotential(cliques={count}, variables={k}, labels={self.n_labels})"
