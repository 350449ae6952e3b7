"""The common base of learners of fields: preparation, tuning and predictions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from setwise._foundation._arguments import FloatArray, IntArray, as_choice, as_flag, as_number
from setwise._foundation._base_classes import Versioned
from setwise._foundation._clock import Deadline
from setwise._foundation._search import attempt, completed
from setwise.decisions import Decision
from setwise.decisions._decide import decide
from setwise.estimators._boosting._columns import takes_missing
from setwise.estimators._fields._couplings import Couplings
from setwise.estimators._fields._field_measure import TEMPERATURES, Measure, best_biases
from setwise.estimators._fields._graphs import (
    Graphs,
    read_graphs,
    read_node_weights,
    read_of_nodes,
    refuse_missing,
)
from setwise.estimators._fields._node_scores import (
    Folds,
    check_classifier,
    folds_of,
    learn_scores,
    scores_of,
)
from setwise.estimators._threads import executor_of
from setwise.fields import Field
from setwise.inference._map._solve_map import solve_map
from setwise.inference._marginals._marginals import marginals
from setwise.losses import Loss, get

DECISIONS = ("bias", "marginals")


class FieldModel(Versioned, BaseEstimator):  # type: ignore[misc]
    """A model of node scores and coupling weights, which define a field.

    A subclass gives ``_learn``, which fits checked graphs, and ``_scores``. X is no matrix, so
    scikit-learn's ``check_estimator`` does not apply; parameters, cloning, searches over parameters
    and pickles do.
    """

    classes_: NDArray[Any]
    n_features_in_: int
    n_edge_features_in_: int
    n_region_layers_in_: int
    interrupted_: bool
    scores: Any
    passthrough: bool
    measure: Loss | str | None
    decision: str
    cv: Any
    truncation: float
    n_jobs: int | None

    def _learn(
        self,
        graphs: Graphs,
        labels: IntArray,
        weights: FloatArray,
        deadline: Deadline,
        callback: Callable[[Any], object] | None = None,
    ) -> None:
        """Fit the potentials to labels 0..L-1 of graphs with the features that the field has."""
        raise NotImplementedError

    def _scores(self, graphs: Graphs) -> tuple[FloatArray, FloatArray]:
        """Return scores of nodes, (K, M), K = 1 for two labels, and weights of the couplings."""
        raise NotImplementedError

    def _of_a_share(self, share: float) -> dict[str, Any]:
        """Return the parameters that must change if only a share of the graphs is fitted."""
        return {}

    @property
    def _priced(self) -> bool:
        """Whether used labels have a cost."""
        return False

    def _couplings(self, graphs: Graphs) -> Couplings:
        return Couplings(
            graphs, len(self.classes_), float(self.truncation), label_costs=self._priced
        )

    # ------------------------------------------------------------------------------------- the fit

    def _fit(
        self,
        X: Any,
        Y: Any,
        node_weights: Any,
        deadline: Deadline,
        callback: Callable[[Any], object] | None,
    ) -> None:
        """Compute scores of a classifier if requested, fit, and tune for the measure."""
        loss = _as_measure(self.measure)
        as_choice(self.decision, "decision", DECISIONS)
        truncation = as_number(self.truncation, "truncation", positive=True)
        if truncation > 0.5:
            raise ValueError(f"truncation must be at most 0.5, got {truncation:g}")
        if self.scores is not None:
            check_classifier(self.scores)
        as_flag(self.passthrough, "passthrough")
        graphs = read_graphs(X)
        if not self._takes_missing():
            refuse_missing(graphs)
        labels = self._learn_labels(graphs, Y)
        n_labels = len(self.classes_)
        if loss is not None and self.decision == "marginals":
            self._check_two_labels("decision='marginals'")
        weights = read_node_weights(node_weights, graphs)
        asked = self.scores is not None or loss is not None
        folds = folds_of(self.cv, len(graphs)) if asked else []
        self.score_estimator_ = None
        if self.scores is not None:
            counted = None if node_weights is None else weights
            self.score_estimator_, found = learn_scores(
                self.scores, graphs, labels, n_labels, counted, folds
            )
            graphs = self._with_scores(graphs, found)
        self.bias_, self.temperature_ = np.zeros(n_labels), 1.0
        self._learn(graphs, labels, weights, deadline, callback)
        if loss is not None and not (self.interrupted_ or deadline.expired):
            times = None if node_weights is None else graphs.of_nodes(weights)
            measure = Measure(loss, graphs.of_nodes(labels), np.arange(n_labels), times)
            tune = partial(self._tune, graphs, labels, weights, folds, deadline, measure)
            self.interrupted_ = attempt(deadline.run, tune)[1] and not deadline.expired
        if loss is not None and deadline.expired:
            warnings.warn(
                f"{type(self).__name__} chose no bias for its measure: {deadline.sentence}",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _tune(
        self,
        graphs: Graphs,
        labels: IntArray,
        weights: FloatArray,
        folds: Folds,
        deadline: Deadline,
        measure: Measure,
    ) -> None:
        """Choose the biases, or the temperature, on held-out graphs."""
        fields: list[Any] = [None] * len(graphs)
        of_labels, of_weights = graphs.of_nodes(labels), graphs.of_nodes(weights)
        for train, test in folds:
            part = clone(self).set_params(verbose=False)
            part.set_params(**self._of_a_share(len(train) / len(graphs)))
            part.classes_, part.bias_ = self.classes_, np.zeros(len(self.classes_))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                part._learn(
                    graphs.take(train),
                    np.concatenate([of_labels[i] for i in train]),
                    np.concatenate([of_weights[i] for i in train]),
                    deadline,
                )
            if part.interrupted_ or deadline.expired:
                raise KeyboardInterrupt
            held = graphs.take(test)
            for i, field in zip(test, part._fields(held, part._scores(held)), strict=True):
                fields[i] = field
        if self.decision == "bias":
            self.bias_ = best_biases(fields, measure, self._solve_all)
            return
        values = [measure(self._decided_labels(fields, float(t))) for t in TEMPERATURES]
        self.temperature_ = float(TEMPERATURES[int(np.argmin(values))])

    def _with_scores(self, graphs: Graphs, scores: FloatArray) -> Graphs:
        nodes = np.column_stack([graphs.nodes, scores]) if self.passthrough else scores
        return replace(graphs, nodes=nodes)

    # ----------------------------------------------------------------------------------- questions

    def decision_function(self, X: Any) -> list[FloatArray]:
        """Return the scores of the nodes, including the bias but not the couplings.

        Each graph has scores of shape (N,) for two labels, positive for the second class, and (N,
        L) for more.
        """
        graphs = self._read(X)
        nodes, _ = self._scores(graphs)
        nodes = nodes + self.bias_[-len(nodes) :, None]
        return graphs.of_nodes(nodes[0] if len(nodes) == 1 else np.ascontiguousarray(nodes.T))

    def to_field(self, x: Any) -> Field:
        """Return the learnt energy of one graph as a field, for any inference.

        Parameters
        ----------
        x : tuple (node_features, edges, edge_features), or with regions

        Returns
        -------
        Field
            Unaries, including the bias, and one ``Potts``; one ``RobustPn`` per layer of regions; a
            ``LabelCost`` if there are label costs. Label k is ``classes_[k]``. ``predict`` is its
            best labelling, unless ``decision="marginals"``.
        """
        graphs = self._read([x], "x")
        return self._fields(graphs, self._scores(graphs))[0]

    def predict(self, X: Any) -> list[NDArray[Any]]:
        """Return labels of least energy, (N,) for each graph: exact for two labels.

        With a ``measure`` and ``decision="marginals"`` these are the labels of ``decide``.
        """
        graphs = self._read(X)
        return self._predicted(self._fields(graphs, self._scores(graphs)))

    def decide(
        self, X: Any, loss: Loss | str | None = None, temperature: float | None = None
    ) -> list[Decision]:
        """Find the set of nodes of the second class that is best for a loss under the marginals.

        Parameters
        ----------
        X : sequence of graphs
        loss : Loss or str, optional
            A set loss, or the name of one (``sw.losses.names()``); by default ``measure``.
        temperature : float, optional
            The temperature of the marginals; by default ``temperature_``.

        Returns
        -------
        list of Decision
            One decision per graph, with ``mask``, ``expected`` and ``bound`` (``sw.decide``), exact
            for the product of the marginals. For two labels only.
        """
        graphs = self._read(X)
        self._check_two_labels("decide")
        given = self.measure if loss is None else loss
        if given is None:
            raise ValueError("loss must be given where measure is None, got None")
        heat = self.temperature_
        if temperature is not None:
            heat = as_number(temperature, "temperature", positive=True)
        return self._decided(self._fields(graphs, self._scores(graphs)), get(given), heat)

    def _predicted(self, fields: list[Field]) -> list[NDArray[Any]]:
        if self.measure is not None and self.decision == "marginals":
            found = self._decided_labels(fields, self.temperature_)
        else:
            found = self._solve_all(fields)
        return [self.classes_[labels] for labels in found]

    def _decided_labels(self, fields: Sequence[Field], temperature: float) -> list[IntArray]:
        decisions = self._decided(fields, get(self.measure), temperature)  # type: ignore[arg-type]
        return [np.atleast_1d(one.mask).astype(np.int64) for one in decisions]

    def _decided(self, fields: Sequence[Field], loss: Loss, temperature: float) -> list[Decision]:
        def best(field: Field) -> Decision:
            # `decide` assumes a product of marginals, and projection optimises over such products.
            # On photographs its decisions were better than those from trees, whose pair marginals
            # are not used here, and took a tenth of the time.
            post = completed(marginals(field, "projection", temperature=temperature, n_jobs=1))
            return decide(post.probabilities[:, 1], loss, n_jobs=1)

        return self._for_each(best, fields)

    def _solve_all(self, fields: Sequence[Field]) -> list[IntArray]:
        def best(field: Field) -> IntArray:
            return completed(solve_map(field, tol=np.inf, n_jobs=1)).labels

        return self._for_each(best, fields)

    def _for_each(self, answer: Any, fields: Sequence[Field]) -> list[Any]:
        executor = executor_of(self.n_jobs)
        try:
            return executor.map(answer, fields)
        finally:
            executor.close()

    def score(self, X: Any, Y: Any, node_weights: Any = None) -> float:
        """Return the weighted share of all nodes whose label is right.

        With a ``measure``, return 1 - its mean over the graphs, relative to its value if all labels
        are wrong.
        """
        graphs = self._read(X)
        predicted = self._predicted(self._fields(graphs, self._scores(graphs)))
        truth = read_of_nodes(Y, graphs, "Y")
        weights = read_node_weights(node_weights, graphs)
        if weights.sum() == 0:
            raise ValueError("node_weights must not be zero for every node, got only zeros")
        loss = _as_measure(self.measure)
        if loss is None:
            return float(np.average(truth == np.concatenate(predicted), weights=weights))
        counted = None if node_weights is None else graphs.of_nodes(weights)
        measure = Measure(loss, graphs.of_nodes(truth), self.classes_, counted)
        return 1.0 - measure(predicted)

    def _read(self, X: Any, name: str = "X[{}]") -> Graphs:
        """Check graphs, which must have the features that the field has."""
        check_is_fitted(self)
        widths = self.n_features_in_, self.n_edge_features_in_, self.n_region_layers_in_
        graphs = read_graphs(X, widths, name)
        if not self._takes_missing():
            refuse_missing(graphs, name)
        if self.score_estimator_ is None:
            return graphs
        found = scores_of(self.score_estimator_, graphs.nodes, len(self.classes_))
        return self._with_scores(graphs, found)

    def _takes_missing(self) -> bool:
        """Return whether features of nodes may be NaN, for the classifier and for the field."""
        if self.scores is not None and not takes_missing(self.scores):
            return False
        return self._bears_missing() or not (self.scores is None or self.passthrough)

    def _bears_missing(self) -> bool:
        """Return whether the features of the field may be NaN."""
        return False

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_missing()
        return tags

    def _learn_labels(self, graphs: Graphs, Y: Any) -> IntArray:
        """Return the labels as 0..L-1; store the classes and the numbers of features."""
        values = read_of_nodes(Y, graphs, "Y")
        if values.dtype.kind == "f" and not np.array_equal(values, np.round(values)):
            raise ValueError("Y must hold labels, got numbers that are not whole")
        try:
            self.classes_, labels = np.unique(values, return_inverse=True)
        except TypeError:  # the labels cannot be compared
            kinds = ", ".join(sorted({type(label).__name__ for label in values}))
            raise TypeError(f"Y must hold labels of one kind, got {kinds}") from None
        n_labels = len(self.classes_)
        if n_labels < 2:
            raise ValueError(f"Y must hold at least two labels, got {self.classes_.tolist()}")
        self.n_features_in_, self.n_edge_features_in_, self.n_region_layers_in_ = graphs.widths
        return labels.reshape(-1).astype(np.int64)

    def _check_two_labels(self, what: str) -> None:
        if len(self.classes_) > 2:
            raise ValueError(f"Y must hold 2 labels for {what}, got {len(self.classes_)}")

    def _fields(self, graphs: Graphs, scores: tuple[FloatArray, FloatArray]) -> list[Field]:
        nodes, weights = scores
        unary = np.tile(-self.bias_, (len(graphs.nodes), 1))
        unary[:, -len(nodes) :] -= nodes.T
        couplings, weights = self._couplings(graphs), np.maximum(weights, 0.0)
        return [couplings.field(i, unary, weights) for i in range(len(graphs))]


def _as_measure(measure: Any) -> Loss | None:
    if measure is None:
        return None
    try:
        return get(measure)
    except (TypeError, ValueError) as error:
        raise type(error)(f"measure: {error}") from None
