"""Terms of pairs of variables: weights of edges, and costs of pairs of adjacent labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from setwise import _core
from setwise._foundation._arguments import (
    FloatArray,
    IntArray,
    as_array,
    as_function,
    as_numbers,
    call_on_arrays,
)
from setwise.fields._edges import as_edges, check_edges
from setwise.fields._terms._base import Numbers, Term, largest, rounding_of_heights

Concave = Callable[[FloatArray], FloatArray]


class PottsTerm(Term):
    r"""A price for each edge whose ends differ, :math:`\sum_e w_e [x_i \ne x_j]`, w >= 0.

    Parameters
    ----------
    edges : array-like of int, shape (E, 2)
        Pairs of different variables; repeated edges are added.
    weights : float or array-like of shape (E,)
        Not negative.

    Examples
    --------
    >>> import setwise as sw
    >>> sw.fields.PottsTerm([[0, 1], [1, 2]], [0.5, 1.0]).weights
    array([0.5, 1. ])
    """

    __match_args__ = ("edges", "weights")

    edges: IntArray
    weights: FloatArray

    def __init__(self, edges: ArrayLike, weights: ArrayLike) -> None:
        pairs = as_edges(edges)
        self._set(edges=pairs, weights=as_weights(weights, len(pairs)))

    @property
    def is_submodular(self) -> bool:
        return True

    def _check(self, n_variables: int, n_labels: int) -> None:
        check_edges(self.edges, n_variables)

    def _energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        energies = np.empty(len(labels))
        _core.potts_energies(labels, n_labels, self.edges, self.weights, energies)
        return energies

    def _least(self, n_variables: int, n_labels: int) -> float:
        return 0.0

    def _most(self, n_labels: int) -> float:
        return float(self.weights.sum())

    def _magnitude(self, by_cut: bool) -> float:
        # A cut does not do arithmetic with the weights of edges.
        return 0.0 if by_cut else largest(self.weights)

    def _n_summands(self, n_variables: int) -> int:
        return len(self.edges)

    def _limited(self, limit: float) -> Term:
        return PottsTerm._of(self.edges, np.minimum(self.weights, limit))

    def _numbers(self, n_labels: int) -> Numbers:
        return self.weights[:, None], 1

    def _pair_tables(self, n_labels: int) -> Iterator[tuple[list[int], FloatArray]]:
        unequal = 1.0 - np.eye(n_labels)
        for edge, weight in zip(self.edges.tolist(), self.weights, strict=True):
            yield edge, weight * unequal


class TransitionTerm(Term):
    r"""A price for each pair of adjacent labels, :math:`\sum_{a < b} c_{ab} h(n_{ab})`.

    :math:`n_{ab}` is the number of edges that join a and b; h is concave and increasing with
    h(0) = 0.

    Parameters
    ----------
    edges : array-like of int, shape (E, 2)
        Pairs of different variables; repeated edges count repeatedly.
    costs : array-like of shape (L, L)
        Symmetric, not negative, zero on the diagonal.
    concave : callable, optional
        h, of an array of counts; None means min(1, n).

    Examples
    --------
    >>> import setwise as sw
    >>> sw.fields.TransitionTerm([[0, 1]], [[0.0, 2.0], [2.0, 0.0]]).is_submodular
    False
    """

    __match_args__ = ("edges", "costs", "concave")

    edges: IntArray
    costs: FloatArray
    concave: Concave | None

    def __init__(self, edges: ArrayLike, costs: ArrayLike, concave: Concave | None = None) -> None:
        pairs = as_edges(edges)
        self._set(edges=pairs, costs=as_transition_costs(costs), concave=concave)
        as_heights(concave, len(pairs))

    @property
    def is_submodular(self) -> bool:
        return False

    def _heights(self, counts: FloatArray) -> FloatArray:
        """Return h of counts."""
        return np.minimum(counts, 1.0) if self.concave is None else self.concave(counts)

    def _check(self, n_variables: int, n_labels: int) -> None:
        check_edges(self.edges, n_variables)
        check_labels("costs", n_labels, len(self.costs))

    def _energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        energies = np.empty(len(labels))
        heights = as_heights(self.concave, len(self.edges))
        _core.transition_energies(labels, self.edges, self.costs, heights, energies)
        return energies

    def _least(self, n_variables: int, n_labels: int) -> float:
        return 0.0

    def _most(self, n_labels: int) -> float:
        return float(self.costs.sum()) * float(self._heights(np.array([float(len(self.edges))]))[0])

    def _magnitude(self, by_cut: bool) -> float:
        return largest(self.costs)

    def _limited(self, limit: float) -> Term:
        first = float(self._heights(np.ones(1))[0]) if len(self.edges) else 0.0
        if first <= 0.0:
            return self
        return TransitionTerm._of(self.edges, np.minimum(self.costs, limit / first), self.concave)

    def _n_summands(self, n_variables: int) -> int:
        return len(self.edges)

    def _numbers(self, n_labels: int) -> Numbers | None:
        return (self.costs.reshape(-1, 1), 1) if self.concave is None else None


def as_weights(weights: ArrayLike, count: int) -> FloatArray:
    """Read a nonnegative weight for each of ``count`` edges; a single number is repeated."""
    array = as_array(weights, "weights")
    if array.dtype == np.float64 and array.shape == (count,) and array.flags.c_contiguous:
        copy = np.empty(count)
        if _core.copy_weights(array, copy):
            return copy
    shape: tuple[int, ...] = () if array.ndim == 0 else (count,)
    heights = as_numbers(weights, "weights", shape=shape, nonnegative=True, largest=np.inf)
    return np.array(np.broadcast_to(heights, count))


def as_transition_costs(costs: ArrayLike) -> FloatArray:
    """Return costs (L, L): symmetric, not negative, zero on the diagonal."""
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
    return prices


def as_heights(concave: Concave | None, most: int) -> FloatArray:
    """Read h(0), ..., h(most), and check that they define a cooperative cut."""
    counts = np.arange(most + 1, dtype=np.float64)
    if concave is None:
        return np.minimum(counts, 1.0)
    if not callable(concave):
        raise TypeError(f"concave must be a callable or None, got {type(concave).__name__}")
    as_function(concave, "concave", "counts")
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


def check_labels(name: str, n_labels: int, got: int) -> None:
    """Raise a ``ValueError`` if tables are for another number of labels."""
    if got != n_labels:
        raise ValueError(
            f"{name} must have a row and a column for each of the field's {n_labels} labels, "
            f"got {got}"
        )
