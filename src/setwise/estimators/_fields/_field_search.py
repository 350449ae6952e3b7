"""Searches for the weak learners of a field: any for nodes, nonnegative ones for couplings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.learning._boosting._problem import Column, WeakLearnerSearch
from setwise.learning._weak_learners._rows import respond


class FieldSearch:
    """A search for the best weak learners of the nodes and of each part of the couplings.

    The nodes have the first segments, a single one or one per label; edges and regions have one
    each after them. Every round uses all searches, equations (27) and (28) of the paper.

    Parameters
    ----------
    nodes : WeakLearnerSearch
        The search over all segments of the nodes at once.
    couplings : sequence of WeakLearnerSearch or None
        None for a part without features.
    offsets : (n_segments + 1,)
        The segments of the scores.
    """

    def __init__(
        self,
        nodes: WeakLearnerSearch,
        couplings: Sequence[WeakLearnerSearch | None],
        offsets: IntArray,
    ) -> None:
        self._nodes, self._couplings = nodes, couplings
        self._kinds = len(offsets) - 1 - len(couplings)
        self._cuts = offsets[self._kinds : -1]

    @property
    def exact(self) -> bool:
        """Whether all searches are exact."""
        return self._nodes.exact and all(
            search is None or search.exact for search in self._couplings
        )

    @property
    def n_columns(self) -> int:
        """The number of columns that a call returns."""
        return 1 + sum(search is not None for search in self._couplings)

    def __call__(self, weights: FloatArray) -> list[Column]:
        of_nodes, *others = np.split(weights, self._cuts)
        by_kind = of_nodes.reshape(self._kinds, -1)
        found = [(c.response @ by_kind[c.segment], c) for c in self._nodes(of_nodes)]
        for k, (search, of_part) in enumerate(zip(self._couplings, others, strict=True)):
            for column in [] if search is None else search(of_part):
                own = Column(column.learner, self._kinds + k, column.response)
                found.append((column.response @ of_part, own))
        return [column for _, column in sorted(found, key=lambda pair: -pair[0])]


@dataclass(frozen=True)
class Indicator:
    """A weak learner with responses 0 and 1, made from one with responses -1 and +1."""

    learner: Any

    def predict(self, X: Any) -> FloatArray:
        """Return (1 + h) / 2 on each row."""
        halves: FloatArray = 0.5 * (1.0 + respond(self.learner, X))
        return halves

    def importances(self, n_features: int) -> FloatArray:
        """Return the importances of the learner."""
        shares: FloatArray = self.learner.importances(n_features)
        return shares


class Indicators:
    """A search among 0-1 learners by a search among learners with responses -1 and +1.

    The edge of (1 + h) / 2 is half that of h plus a constant, so the best h gives the best
    indicator.
    """

    def __init__(self, search: WeakLearnerSearch) -> None:
        self._search = search

    @property
    def exact(self) -> bool:
        """Whether the underlying search is exact."""
        return self._search.exact

    def __call__(self, weights: FloatArray) -> list[Column]:
        return [
            Column(Indicator(column.learner), column.segment, 0.5 * (1.0 + column.response))
            for column in self._search(weights)
        ]


@dataclass(frozen=True)
class Feature:
    """A feature or its negative, as a weak learner."""

    feature: int
    sign: int

    def predict(self, X: Any) -> FloatArray:
        """Return ``sign`` times the feature, (n,)."""
        return np.asarray(self.sign * np.asarray(X, np.float64)[:, self.feature])

    def importances(self, n_features: int) -> FloatArray:
        """Return importances (n_features,): 1 for this feature."""
        shares = np.zeros(n_features)
        shares[self.feature] = 1.0
        return shares


class PlainFeatures:
    """A search among the features themselves and, if ``signed``, their negatives, in O(m d).

    With K segments of weights, (K m,), it covers those of every segment.
    """

    exact = True

    def __init__(self, X: FloatArray, *, signed: bool) -> None:
        self._X, self._signed = X, signed

    def __call__(self, weights: FloatArray) -> list[Column]:
        gains = weights.reshape(-1, len(self._X)) @ self._X
        sizes = np.abs(gains) if self._signed else gains
        segment, best = np.unravel_index(int(np.argmax(sizes)), gains.shape)
        sign = -1 if self._signed and gains[segment, best] < 0 else 1
        learner = Feature(int(best), sign)
        return [Column(learner, int(segment), learner.predict(self._X))]
