"""Diversity by pairs of adjacent labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import MOST_ENTRIES, BoolArray, FloatArray, IntArray
from setwise.diversities._addition import Addition
from setwise.diversities._groups import Concave, CountedLabels
from setwise.fields._edges import as_edges, check_edges
from setwise.fields._potentials._label_transition import LabelTransition


class TransitionDiversity(CountedLabels):
    r"""A reward for items with pairs of adjacent labels that few earlier items have.

    .. math:: d(S) = \lambda \sum_{a < b} \Bigl( h(n_{ab}(S)) - h(0) - w \, n_{ab}(S) \Bigr)

    with :math:`n_{ab}(S)` the number of items in which some edge joins the labels a and b. The step
    is a ``LabelTransition``, a cooperative cut that charges :math:`\lambda (w - h(n_{ab} + 1) +
    h(n_{ab}))` for each adjacent pair. Swap moves replace h by a tangent and never increase the
    energy; a chord of h gives the bound. It is submodular, and monotone without parsimony. The cost
    is O(m (E + L^2)).

    Parameters
    ----------
    edges : array-like of int, shape (E, 2)
        The pairs of neighbours; usually those of the field's Potts term.
    h : {"min1", "sqrt", "log1p"} or callable
        Increasing and concave, of an array of counts; a callable is checked on the counts used.
    weight : float
        :math:`\lambda \ge 0`.
    parsimony : float, optional
        w; by default the larger of 1 and h(1) - h(0); 0 for a monotone diversity. Below h(1) -
        h(0) pairs may be rewarded: ``diverse`` then tries all labellings, or, if these are more
        than about 1e6, charges h(1) - h(0), and the gap says how much may be lost by it.
    background : int, optional
        A label whose pairs do not count.

    Examples
    --------
    >>> import setwise as sw
    >>> d = sw.diversities.TransitionDiversity([[0, 1], [1, 2]], "min1", weight=2.0)
    >>> d.gain([0, 0, 1], [[0, 1, 1]]), d.gain([0, 2, 2], [[0, 1, 1]])
    (-2.0, 0.0)
    """

    edges: IntArray

    def __init__(
        self,
        edges: ArrayLike,
        h: Concave = "min1",
        weight: float = 1.0,
        *,
        parsimony: float | None = None,
        background: int | None = None,
    ) -> None:
        self._set(edges=as_edges(edges))
        self._set_labels(h, weight, parsimony, background)

    def _members(self, labelings: IntArray, n_labels: int) -> BoolArray:
        check_edges(self.edges, labelings.shape[1])
        if len(labelings) * n_labels**2 > MOST_ENTRIES:
            raise ValueError(
                f"n_labels must leave at most {MOST_ENTRIES} pairs of labels to count, got "
                f"{n_labels} labels for {len(labelings)} items"
            )
        touch = np.zeros((len(labelings), n_labels, n_labels), np.bool_)
        rows = np.repeat(np.arange(len(labelings)), len(self.edges))
        first, second = labelings[:, self.edges[:, 0]], labelings[:, self.edges[:, 1]]
        touch[rows, np.minimum(first, second).ravel(), np.maximum(first, second).ravel()] = True
        hidden = self._hidden(n_labels)
        touch[:, hidden, :] = touch[:, :, hidden] = False
        above = np.triu(np.ones((n_labels, n_labels), np.bool_), 1)
        return touch[:, above]

    def _lacks_potential(self) -> bool:
        return self._rewards

    def addition(self, labelings: IntArray, n_labels: int) -> Addition:
        costs: FloatArray = np.zeros((n_labels, n_labels))
        above = np.triu_indices(n_labels, 1)
        costs[above] = self._costs(labelings, n_labels)
        if self._rewards:
            raise ValueError(
                f"parsimony must be at least h(1) - h(0) = {self.h.steps(0)[0]:g} for a potential, "
                f"which can take costs and no rewards, got {self.parsimony:g}"
            )
        np.maximum(costs, 0.0, out=costs)
        hidden = self._hidden(n_labels)
        costs[hidden, :] = costs[:, hidden] = 0.0
        if not costs.any():
            return Addition()
        return Addition(potentials=[LabelTransition(self.edges, costs + costs.T)])

    def __repr__(self) -> str:
        return f"TransitionDiversity(edges={len(self.edges)}, {self._options()})"
