"""Label transitions: a price for each pair of labels that meet, with a discount on length."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray, as_numbers, call_on_arrays
from setwise.fields._base import Potential
from setwise.fields._potentials._edges import as_edges, check_edges
from setwise.fields._terms import TransitionTerm, rounding_of_heights


class LabelTransition(Potential):
    r"""A price for each pair of labels that meet, with a discount on long borders.

    .. math:: \varphi(x) = \sum_{a < b} c_{ab} \, h(n_{ab}), \qquad
              n_{ab} = |\{(i, j) \in E : \{x_i, x_j\} = \{a, b\}\}|

    with h concave, increasing and zero at zero: the cooperative cut of Prasad, Jegelka and Batra,
    *Submodular meets Structured*. With h(n) = min(1, n), the default, a pair of labels is paid for
    once; with h(n) = n this is a Potts model with a weight for each pair. Not submodular, in
    general. An energy costs O(E + L^2), compiled.

    Parameters
    ----------
    edges : array-like of int, shape (E, 2)
        Pairs of different variables; a repeated one counts as often as it is given.
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
        prices = as_numbers(costs, "costs", shape=(None, None), nonnegative=True)
        if prices.shape[0] != prices.shape[1] or prices.shape[0] == 0:
            raise ValueError(f"costs must have shape (L, L) with L at least 1, got {prices.shape}")
        if (prices != prices.T).any():
            a, b = np.argwhere(prices != prices.T)[0]
            raise ValueError(
                f"costs must be symmetric, got {prices[a, b]:g} for ({a}, {b}) "
                f"and {prices[b, a]:g} for ({b}, {a})"
            )
        if prices.diagonal().any():
            a = int(np.flatnonzero(prices.diagonal())[0])
            raise ValueError(f"costs must be 0 on the diagonal, got {prices[a, a]:g} for label {a}")
        self._set(edges=pairs, costs=prices, concave=concave, heights=_heights(concave, len(pairs)))

    @property
    def n_labels(self) -> int:
        """L."""
        return len(self.costs)

    @property
    def is_submodular(self) -> bool:
        return self._is_zero

    @property
    def _is_zero(self) -> bool:
        return not (self.costs.any() and self.heights.any())

    def _check(self, n_variables: int, n_labels: int) -> None:
        check_edges(self.edges, n_variables)
        if n_labels != self.n_labels:
            raise ValueError(
                f"costs must have a row and a column for each of the field's {n_labels} labels, "
                f"got {self.n_labels}"
            )

    def _energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        energies = np.empty(len(labels))
        _core.transition_energies(labels, self.edges, self.costs, self.heights, energies)
        return energies

    def _terms(self, n_variables: int, n_labels: int) -> tuple[TransitionTerm, ...]:
        if self._is_zero:
            return ()
        return (TransitionTerm(self.edges, self.costs, self.concave),)

    def __repr__(self) -> str:
        name = getattr(self.concave, "__name__", repr(self.concave))
        shape = "" if self.concave is None else f", concave={name}"
        return f"LabelTransition(edges={len(self.edges)}, labels={self.n_labels}{shape})"


def _heights(concave: Callable[[FloatArray], FloatArray] | None, most: int) -> FloatArray:
    """h(0), ..., h(most), checked for what makes the potential a cooperative cut."""
    counts = np.arange(most + 1, dtype=np.float64)
    if concave is None:
        return np.minimum(counts, 1.0)
    if not callable(concave):
        raise TypeError(f"concave must be a callable or None, got {type(concave).__name__}")
    heights = call_on_arrays(concave, "concave", counts)
    slack = rounding_of_heights(heights)
    if abs(heights[0]) > slack:
        raise ValueError(f"concave must be 0 at 0, got {heights[0]:g}")
    falls = np.flatnonzero(np.diff(heights) < -slack)
    if len(falls):
        raise ValueError(
            f"concave must be increasing, got a fall from {falls[0]} to {falls[0] + 1}"
        )
    bends = np.flatnonzero(np.diff(heights, 2) > slack)
    if len(bends):
        raise ValueError(f"concave must be concave, got an upward bend at {bends[0] + 1}")
    return heights
