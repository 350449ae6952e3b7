"""Cardinality potentials: any function of the number of variables that leave a given labelling."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray, as_numbers
from setwise.fields._base import Potential
from setwise.fields._terms._label_counts import CardinalityTerm, as_center, check_center


class CardinalityPotential(Potential):
    r"""Any function of the number of variables that differ from a given labelling.

    .. math:: \varphi(x) = t_k, \qquad k = |\{i : x_i \ne c_i\}|

    With two labels and a center of zeros it is a function of the number of ones. A distance to the
    center, a prior on the size of an object, and a penalty on the similarity to an earlier solution
    (:math:`t_k = \lambda e^{-\gamma k}`) have this form. It is submodular if the table is concave.
    An energy costs O(N), compiled.

    Parameters
    ----------
    center : array-like of int, shape (N,)
        A labelling.
    table : array-like of shape (N + 1,)
        Finite; ``table[k]`` is the energy when k variables differ from the center.

    Examples
    --------
    >>> import setwise as sw
    >>> even = sw.fields.CardinalityPotential([0, 0, 0], [0.0, 5.0, 0.0, 5.0])
    >>> field = sw.fields.Field([[0.0, 0.0]] * 3) + even
    >>> field.energy([[1, 0, 0], [1, 0, 1]]).tolist()
    [5.0, 0.0]
    >>> even, even.is_submodular
    (CardinalityPotential(variables=3), False)
    """

    center: IntArray
    table: FloatArray

    def __init__(self, center: ArrayLike, table: ArrayLike) -> None:
        labels = as_center(center)
        self._set(center=labels, table=as_numbers(table, "table", shape=(len(labels) + 1,)))

    @property
    def is_submodular(self) -> bool:
        term = CardinalityTerm._of(self.center, self.table)
        return self._remember("is_submodular", lambda: term.is_submodular)

    def _around(self, center: IntArray) -> CardinalityPotential:
        """Return the potential with the same table around another valid labelling."""
        other = CardinalityPotential.__new__(CardinalityPotential)
        # Copied, as rows may be strided.
        other._set(center=np.array(center, np.int64), table=self.table)
        other._remember("is_submodular", lambda: self.is_submodular)
        return other

    def check(self, n_variables: int, n_labels: int) -> None:
        check_center(self.center, n_variables, n_labels)

    def energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        energies = np.empty(len(labels))
        _core.cardinality_energies(labels, n_labels, self.center, self.table, energies)
        return energies

    def terms(self, n_variables: int, n_labels: int) -> tuple[CardinalityTerm, ...]:
        term = CardinalityTerm._of(self.center, self.table)
        term._remember("is_submodular", lambda: self.is_submodular)
        return (term,)

    def __repr__(self) -> str:
        return f"CardinalityPotential(variables={len(self.center)})"
