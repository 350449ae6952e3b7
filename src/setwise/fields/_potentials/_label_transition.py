"""Label transitions: a price for each pair of adjacent labels, with a discount on length."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise.fields._base import Potential
from setwise.fields._edges import as_edges, check_edges
from setwise.fields._terms._pairs import (
    TransitionTerm,
    as_heights,
    as_transition_costs,
    check_labels,
)


class LabelTransition(Potential):
    r"""A price for each pair of adjacent labels, with a discount on long borders.

    .. math:: \varphi(x) = \sum_{a < b} c_{ab} \, h(n_{ab}), \qquad
              n_{ab} = |\{(i, j) \in E : \{x_i, x_j\} = \{a, b\}\}|

    with h concave, increasing and zero at zero: the cooperative cut of Prasad, Jegelka and Batra,
    *Submodular meets Structured*. With h(n) = min(1, n), the default, the price of a pair of labels
    is charged once; with h(n) = n this is a Potts model with a weight for each pair of labels. It
    is not submodular in general. An energy costs O(E + L^2), compiled.

    Parameters
    ----------
    edges : array-like of int, shape (E, 2)
        Pairs of different variables; repeated edges count repeatedly.
    costs : array-like of shape (L, L)
        Symmetric, not negative, zero on the diagonal.
    concave : callable, optional
        h, of an array of counts; called once with 0, 1, ..., E, and checked on them.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> costs = [[0.0, 1.0, 5.0], [1.0, 0.0, 2.0], [5.0, 2.0, 0.0]]
    >>> chain = [[0, 1], [1, 2], [2, 3], [3, 4]]
    >>> field = sw.fields.Field([[0.0, 0.0, 0.0]] * 5)
    >>> (field + sw.fields.LabelTransition(chain, costs)).energy([0, 1, 0, 1, 2])
    3.0
    >>> roots = sw.fields.LabelTransition(chain, costs, concave=np.sqrt)
    >>> round((field + roots).energy([0, 1, 0, 1, 2]), 6)
    3.732051
    >>> roots
    LabelTransition(edges=4, labels=3, concave=sqrt)
    """

    edges: IntArray
    costs: FloatArray
    concave: Callable[[FloatArray], FloatArray] | None
    heights: FloatArray
    """h(0), ..., h(E)."""

    def __init__(
        self,
        edges: ArrayLike,
        costs: ArrayLike,
        concave: Callable[[FloatArray], FloatArray] | None = None,
    ) -> None:
        pairs = as_edges(edges)
        prices = as_transition_costs(costs)
        self._set(
            edges=pairs, costs=prices, concave=concave, heights=as_heights(concave, len(pairs))
        )

    @property
    def n_labels(self) -> int:
        """The number of labels L."""
        return len(self.costs)

    @property
    def is_submodular(self) -> bool:
        return self._is_zero

    @property
    def _is_zero(self) -> bool:
        return not (self.costs.any() and self.heights.any())

    def check(self, n_variables: int, n_labels: int) -> None:
        check_edges(self.edges, n_variables)
        check_labels("costs", n_labels, self.n_labels)

    def energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        energies = np.empty(len(labels))
        _core.transition_energies(labels, self.edges, self.costs, self.heights, energies)
        return energies

    def terms(self, n_variables: int, n_labels: int) -> tuple[TransitionTerm, ...]:
        if self._is_zero:
            return ()
        return (TransitionTerm._of(self.edges, self.costs, self.concave),)

    def __repr__(self) -> str:
        name = getattr(self.concave, "__name__", repr(self.concave))
        shape = "" if self.concave is None else f", concave={name}"
        return f"LabelTransition(edges={len(self.edges)}, labels={self.n_labels}{shape})"
