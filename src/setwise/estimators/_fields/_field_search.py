"""Weak learners of a field: those of the nodes, and non-negative ones of the edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.learning._boosting._problem import Column, WeakLearnerSearch
from setwise.learning._weak_learners._rows import respond


class FieldSearch:
    """The best weak learners of nodes (segment 0) and of edges (segment 1), best first.

    Both searches answer every time, equations (27) and (28) of the paper.
    """

    def __init__(
        self, nodes: WeakLearnerSearch, edges: WeakLearnerSearch | None, n_nodes: int
    ) -> None:
        self._nodes, self._edges, self._n_nodes = nodes, edges, n_nodes

    @property
    def exact(self) -> bool:
        """Whether both searches are."""
        return self._nodes.exact and (self._edges is None or self._edges.exact)

    def __call__(self, weights: FloatArray) -> list[Column]:
        of_nodes, of_edges = weights[: self._n_nodes], weights[self._n_nodes :]
        found = [(column.response @ of_nodes, column) for column in self._nodes(of_nodes)]
        if self._edges is not None:
            found += [
                (column.response @ of_edges, Column(column.learner, 1, column.response))
                for column in self._edges(of_edges)
            ]
        return [column for _, column in sorted(found, key=lambda pair: -pair[0])]


@dataclass(frozen=True)
class Indicator:
    """A weak learner with answers 0 and 1, of one with answers -1 and +1."""

    learner: Any

    def predict(self, X: Any) -> FloatArray:
        """(1 + h) / 2 on each row."""
        halves: FloatArray = 0.5 * (1.0 + respond(self.learner, X))
        return halves

    def importances(self, n_features: int) -> FloatArray:
        """Those of the learner."""
        shares: FloatArray = self.learner.importances(n_features)
        return shares


class Indicators:
    """Searches among 0-1 learners by a search among those with answers -1 and +1.

    The value of (1 + h) / 2 is half that of h and a number that all of them share, so the best h
    makes the best indicator.
    """

    def __init__(self, search: WeakLearnerSearch) -> None:
        self._search = search

    @property
    def exact(self) -> bool:
        """Whether the search beneath is."""
        return self._search.exact

    def __call__(self, weights: FloatArray) -> list[Column]:
        return [
            Column(Indicator(column.learner), column.segment, 0.5 * (1.0 + column.response))
            for column in self._search(weights)
        ]


@dataclass(frozen=True)
class Feature:
    """A feature as it is, or its negative."""

    feature: int
    sign: int

    def predict(self, X: Any) -> FloatArray:
        """``sign`` times the feature, (n,)."""
        return np.asarray(self.sign * np.asarray(X, np.float64)[:, self.feature])

    def importances(self, n_features: int) -> FloatArray:
        """All is this feature's."""
        shares = np.zeros(n_features)
        shares[self.feature] = 1.0
        return shares


class Features:
    """Searches among the features themselves and, if ``signed``, their negatives: O(m d)."""

    exact = True

    def __init__(self, X: FloatArray, *, signed: bool) -> None:
        self._X, self._signed = X, signed

    def __call__(self, weights: FloatArray) -> list[Column]:
        gains = weights @ self._X
        best = int(np.argmax(np.abs(gains) if self._signed else gains))
        learner = Feature(best, -1 if self._signed and gains[best] < 0 else 1)
        return [Column(learner, 0, learner.predict(self._X))]
