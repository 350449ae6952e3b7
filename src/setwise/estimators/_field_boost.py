"""Boosting for the potentials of a field."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from setwise.estimators._field_model import FieldModel
from setwise.estimators._field_risk import FieldRisk
from setwise.estimators._field_search import Features, FieldSearch, Indicators
from setwise.estimators._graphs import Graphs, read_graphs, read_node_weights
from setwise.estimators._potts_maps import Cuts
from setwise.estimators._progress import progress_callback
from setwise.estimators._set_classifier import _threads
from setwise.functions._arguments import FloatArray, as_choice
from setwise.learning import BoostFit, BoostProgress, Search, Stumps, struct_boost

Learners = str | Callable[[FloatArray], Search]


class FieldBoost(FieldModel):
    r"""Learns the potentials of a field by boosting: StructBoost for random fields of two labels.

    With weak learners h of node features and :math:`g \ge 0` of edge features, the energy is

    .. math:: E(z) = -\sum_p \sum_j w_j h_j(x_p) [z_p = 1]
        + \sum_{e = (p, q)} \sum_j v_j g_j(\phi_e) [z_p \ne z_q] , \qquad w, v \ge 0 ,

    which stays submodular, so that minimum cuts find the best labels. The fit minimises

    .. math:: 1^\top w + 1^\top v + \frac{C}{n} \sum_i \max_z \Big( \sum_p c_p [z_p \ne y_p]
        + E_i(y_i) - E_i(z) \Big)

    over all weak learners, by column generation over cutting planes: equation (25) of the paper.
    Each round asks for the best learner of the nodes and of the edges.

    Parameters
    ----------
    node_learners : {"stump", "feature"} or callable, default="stump"
        Decision stumps with answers -1 and +1; the features as they are and their negatives, which
        is linear as ``FieldSVM`` is but sparse; or what makes a ``Search`` of an array (M, d) of
        all nodes, ``sw.learning.Trees`` for one.
    edge_learners : {"stump", "feature"} or callable, default="stump"
        The same for edges: stumps with answers 0 and 1, the features as they are. The learners of
        a callable must not answer with negative numbers.
    C : float, default=100.0
        Weight of the mean over the graphs against the sum of all weights.
    n_estimators : int, default=200
        The most weak learners.
    tol : float, default=1e-3
        Relative gap at which the fit stops.
    n_jobs : int, default=None
        Threads for the cuts; None is one, -1 all cores. The answer does not depend on it.
    verbose : bool, default=False
        Show a progress bar with the gap.
    callback : callable, default=None
        Called with a ``BoostProgress`` after each round; the fit stops when it returns True.

    Attributes
    ----------
    estimators_ : list
        The weak learners, with ``predict``.
    estimator_weights_ : array of shape (n,)
        Not negative.
    estimator_segments_ : array of shape (n,)
        0 for a learner of the nodes, 1 for one of the edges.
    stage_weights_ : sparse array of shape (rounds, n)
        The weights after each round.
    feature_importances_ : array of shape (d + k,)
        The weight that went to each feature, of the nodes and then of the edges; the sum is 1.
    classes_ : array of shape (2,)
    gap_ : float
        The relative gap.
    certified_ : bool
        Whether the search for weak learners is exact, so that ``gap_`` holds for all of them.
    n_iter_ : int
        Rounds.
    history_ : BoostHistory
    n_features_in_, n_edge_features_in_ : int

    References
    ----------
    C. Shen, G. Lin, A. van den Hengel, StructBoost: boosting methods for predicting structured
    output variables, 2014, Section 3.6.

    Examples
    --------
    A chain of four nodes whose third measurement is off:

    >>> import numpy as np
    >>> import setwise as sw
    >>> chain = np.array([[0, 1], [1, 2], [2, 3]])
    >>> x = (np.array([[1.0], [2.0], [-0.5], [1.0]]), chain, np.ones((3, 1)))
    >>> z = (np.array([[-1.0], [-2.0], [-1.5], [-1.0]]), chain, np.ones((3, 1)))
    >>> model = sw.FieldBoost(C=10.0).fit([x, z], [[1, 1, 1, 1], [0, 0, 0, 0]])
    >>> model.predict([x])[0].tolist(), model.certified_
    ([1, 1, 1, 1], True)
    """

    def __init__(
        self,
        node_learners: Learners = "stump",
        edge_learners: Learners = "stump",
        C: float = 100.0,
        *,
        n_estimators: int = 200,
        tol: float = 1e-3,
        n_jobs: int | None = None,
        verbose: bool = False,
        callback: Callable[[BoostProgress], object] | None = None,
    ) -> None:
        self.node_learners = node_learners
        self.edge_learners = edge_learners
        self.C = C
        self.n_estimators = n_estimators
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, Y: Any, node_weights: Any = None) -> Self:
        """Fit the potentials.

        Parameters
        ----------
        X : sequence of tuples (node_features, edges, edge_features)
            Of shapes (N, d), (E, 2) and (E, k); edge features must not be negative.
        Y : sequence of arrays of shape (N,)
            A label a node, one of two.
        node_weights : sequence of arrays of shape (N,), optional
            What a mistake costs, c; 1 by default. The pixels of a superpixel, say; divided by those
            of the image, every image counts alike.

        Returns
        -------
        self
        """
        n_jobs = _threads(self.n_jobs)
        for name in ("node_learners", "edge_learners"):
            if not callable(getattr(self, name)):
                as_choice(getattr(self, name), name, ["stump", "feature"])
        graphs = read_graphs(X)
        labels = self._learn_labels(graphs, Y, most=2)
        weights = read_node_weights(node_weights, graphs)
        risk = FieldRisk(graphs, labels, 2, weights, Cuts(graphs, n_jobs))
        with (
            threadpool_limits(1, user_api="blas"),
            progress_callback(self.verbose, self.tol, self.callback) as callback,
        ):
            fit = struct_boost(
                risk,
                self._search(graphs),
                self.C,
                n_estimators=self.n_estimators,
                tol=self.tol,
                callback=callback,
            )
        self._store(fit)
        return self

    def _search(self, graphs: Graphs) -> FieldSearch:
        nodes: Search
        if callable(self.node_learners):
            nodes = self.node_learners(graphs.nodes)
        elif self.node_learners == "stump":
            nodes = Stumps(graphs.nodes)
        else:
            nodes = Features(graphs.nodes, signed=True)
        if graphs.pairs.size == 0:
            return FieldSearch(nodes, None, len(graphs.nodes))
        edges: Search
        if callable(self.edge_learners):
            edges = self.edge_learners(graphs.pairs)
        elif self.edge_learners == "stump":
            edges = Indicators(Stumps(graphs.pairs))
        else:
            edges = Features(graphs.pairs, signed=False)
        return FieldSearch(nodes, edges, len(graphs.nodes))

    def _store(self, fit: BoostFit) -> None:
        if not fit.converged and not fit.interrupted and len(fit.columns) < self.n_estimators:
            warnings.warn(
                f"FieldBoost found no further weak learner at a relative gap of "
                f"{fit.relative_gap:.1e}, above tol={self.tol:g}",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.estimators_ = [column.learner for column in fit.columns]
        self.estimator_weights_ = np.array(fit.w)
        self.estimator_segments_ = np.array([column.segment for column in fit.columns], np.int64)
        self.stage_weights_ = fit.stages
        self.gap_ = fit.relative_gap
        self.certified_ = fit.certified
        self.n_iter_ = fit.n_iter
        self.history_ = fit.history

    @property
    def feature_importances_(self) -> FloatArray:
        """The weight that went to each feature, of the nodes and then of the edges."""
        check_is_fitted(self)
        of_nodes, of_edges = np.zeros(self.n_features_in_), np.zeros(self.n_edge_features_in_)
        parts = (of_nodes, of_edges)
        for learner, weight, segment in zip(
            self.estimators_, self.estimator_weights_, self.estimator_segments_, strict=True
        ):
            parts[segment][:] += weight * learner.importances(len(parts[segment]))
        total = np.concatenate(parts)
        return total / total.sum() if total.sum() > 0 else total

    def staged_predict(self, X: Any) -> Iterator[list[NDArray[Any]]]:
        """What ``predict`` would have said after each round."""
        graphs = self._read(X)
        nodes, edges = self._responses(graphs)
        for stage in range(self.stage_weights_.shape[0]):
            w = self.stage_weights_[[stage]].toarray()[0]
            scores = (w @ nodes)[None, :], w @ edges
            yield self._best_labels(self._fields(graphs, scores))

    def _responses(self, graphs: Graphs) -> tuple[FloatArray, FloatArray]:
        """(n, M) on the nodes and (n, E) on the edges; a learner of the others has zeros."""
        nodes = np.zeros((len(self.estimators_), len(graphs.nodes)))
        edges = np.zeros((len(self.estimators_), len(graphs.edges)))
        for j, (learner, segment) in enumerate(
            zip(self.estimators_, self.estimator_segments_, strict=True)
        ):
            (nodes, edges)[segment][j] = learner.predict((graphs.nodes, graphs.pairs)[segment])
        return nodes, edges

    def _scores(self, graphs: Graphs) -> tuple[FloatArray, FloatArray]:
        nodes, edges = self._responses(graphs)
        return (self.estimator_weights_ @ nodes)[None, :], self.estimator_weights_ @ edges
