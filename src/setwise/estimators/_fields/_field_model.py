"""What every learner of fields can be asked once it is fitted."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._interrupts import whole
from setwise.estimators._fields._graphs import (
    Graphs,
    read_graphs,
    read_node_weights,
    read_of_nodes,
    refuse_missing,
)
from setwise.estimators._threads import threads
from setwise.fields import Field, Potts
from setwise.inference import solve_map
from setwise.learning import Executor, Serial, Threads


class FieldModel(BaseEstimator):  # type: ignore[misc]
    """Scores of nodes and edges, and the field that they make.

    A subclass sets ``classes_``, ``n_features_in_`` and ``n_edge_features_in_`` and gives
    ``_scores``. X is no matrix, so scikit-learn's ``check_estimator`` does not apply; parameters,
    cloning, searches over parameters and pickles do.
    """

    classes_: NDArray[Any]
    n_features_in_: int
    n_edge_features_in_: int
    n_jobs: int | None

    def _scores(self, graphs: Graphs) -> tuple[FloatArray, FloatArray]:
        """Scores of the nodes, (K, M) with K = 1 for two labels, and of the edges, (E,)."""
        raise NotImplementedError

    def decision_function(self, X: Any) -> list[FloatArray]:
        """The scores of the nodes alone, without their neighbours.

        For two labels (N,) a graph, positive for the second class; for more (N, L).
        """
        graphs = self._read(X)
        nodes, _ = self._scores(graphs)
        return graphs.of_nodes(nodes[0] if len(nodes) == 1 else np.ascontiguousarray(nodes.T))

    def to_field(self, x: Any) -> Field:
        """The learnt energy of one graph, as a field: for marginals, bounds and the rest.

        Parameters
        ----------
        x : tuple (node_features, edges, edge_features)

        Returns
        -------
        Field
            Unaries and one ``Potts``; label k stands for ``classes_[k]``. ``predict`` is its best
            labelling.
        """
        graphs = self._read([x], "x")
        return self._fields(graphs, self._scores(graphs))[0]

    def predict(self, X: Any) -> list[NDArray[Any]]:
        """Labels of least energy, (N,) for each graph: exact for two labels."""
        graphs = self._read(X)
        return self._best_labels(self._fields(graphs, self._scores(graphs)))

    def _best_labels(self, fields: list[Field]) -> list[NDArray[Any]]:
        def best(field: Field) -> NDArray[Any]:
            found = whole(solve_map(field, tol=np.inf, n_jobs=1))
            labels: NDArray[Any] = self.classes_[found.labels]
            return labels

        executor = threads_of(self.n_jobs)
        try:
            return executor.map(best, fields)
        finally:
            executor.close()

    def score(self, X: Any, Y: Any, node_weights: Any = None) -> float:
        """The share of all nodes that are right, each counted with its weight."""
        graphs = self._read(X)
        predicted = self._best_labels(self._fields(graphs, self._scores(graphs)))
        right = read_of_nodes(Y, graphs, "Y") == np.concatenate(predicted)
        weights = read_node_weights(node_weights, graphs)
        if weights.sum() == 0:
            raise ValueError("node_weights must not be zero for every node, got only zeros")
        return float(np.average(right, weights=weights))

    def _read(self, X: Any, name: str = "X[{}]") -> Graphs:
        check_is_fitted(self)
        graphs = read_graphs(X, (self.n_features_in_, self.n_edge_features_in_), name)
        if not self._takes_missing():
            refuse_missing(graphs, name)
        return graphs

    def _takes_missing(self) -> bool:
        """Whether features of nodes may be NaN."""
        return False

    def _learn_labels(self, graphs: Graphs, Y: Any, most: int | None = None) -> IntArray:
        """The labels as 0..L-1; remembers the classes and the numbers of features."""
        values = read_of_nodes(Y, graphs, "Y")
        if values.dtype.kind == "f" and not np.array_equal(values, np.round(values)):
            raise ValueError("Y must hold labels, got numbers that are not whole")
        try:
            self.classes_, labels = np.unique(values, return_inverse=True)
        except TypeError:  # of no common order
            kinds = ", ".join(sorted({type(label).__name__ for label in values}))
            raise TypeError(f"Y must hold labels of one kind, got {kinds}") from None
        n_labels = len(self.classes_)
        if n_labels < 2:
            raise ValueError(f"Y must hold at least two labels, got {self.classes_.tolist()}")
        if most is not None and n_labels > most:
            raise ValueError(
                f"Y must hold {most} labels for {type(self).__name__}, got {n_labels}: use FieldSVM"
            )
        self.n_features_in_ = graphs.nodes.shape[1]
        self.n_edge_features_in_ = graphs.pairs.shape[1]
        return labels.reshape(-1).astype(np.int64)

    def _fields(self, graphs: Graphs, scores: tuple[FloatArray, FloatArray]) -> list[Field]:
        nodes, edges = scores
        unary = np.zeros((len(graphs.nodes), len(self.classes_)))
        unary[:, -len(nodes) :] = -nodes.T
        weights = np.maximum(edges, 0.0)
        fields = []
        starts = zip(pairwise(graphs.node_starts), pairwise(graphs.edge_starts), strict=True)
        for (first, last), (begin, end) in starts:
            potts = Potts(graphs.edges[begin:end] - first, weights[begin:end])
            fields.append(Field(unary[first:last]) + potts)
        return fields


def threads_of(n_jobs: int | None) -> Executor:
    """None is one thread, -1 all cores."""
    count = threads(n_jobs)
    return Serial() if count == 1 else Threads(count)
