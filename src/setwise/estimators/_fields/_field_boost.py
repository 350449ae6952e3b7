"""Boosting for the potentials of a field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from setwise._foundation._arguments import FloatArray
from setwise._foundation._deadline import Deadline
from setwise._foundation._display import check_display
from setwise.estimators._boosting._boosted import (
    SEARCHES,
    Boosted,
    check_estimator,
    importances,
    make_search,
    weighted_scores,
)
from setwise.estimators._boosting._columns import takes_missing
from setwise.estimators._fields._field_model import FieldModel
from setwise.estimators._fields._field_risk import FieldRisk
from setwise.estimators._fields._field_search import Features, FieldSearch, Indicators
from setwise.estimators._fields._graphs import (
    Graphs,
    read_graphs,
    read_node_weights,
    refuse_missing,
)
from setwise.estimators._fields._potts_maps import BatchMaps
from setwise.estimators._threads import threads
from setwise.learning import BoostProgress
from setwise.learning._boosting._problem import WeakLearnerSearch


class FieldBoost(Boosted, FieldModel):
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
    estimator : str or scikit-learn classifier, default="stump"
        The weak learners of the nodes: "stump", "tree", "perceptron", "linear", or a classifier, as
        in ``StructBoostClassifier``; or "feature", the node features as they are and their
        negatives, which is linear as ``FieldSVM`` is, but sparse (and has no intercept: give a
        column of ones for one).
    edge_estimator : str or scikit-learn classifier, default="stump"
        The same for the edges. An answer h becomes (1 + h) / 2, which is not negative; "feature"
        takes the edge features as they are.
    n_estimators : int, default=200
        The most weak learners.
    time_limit : float, default=None
        The most seconds that ``fit`` may take, None for no limit. It then ends with the best
        weights so far and warns (``ConvergenceWarning``); ``gap_`` holds. The first round, without
        weak learners, one weak learner of scikit-learn and one linear program are not cut short.
        What was learned then depends on the machine and on what else it does.
    C : float, default=1.0
        Weight of the mean over the graphs against the sum of all weights. The risk of a graph grows
        with its nodes.
    tol : float, default=1e-3
        Relative gap at which the fit stops; one that ends above it, at ``n_estimators`` say, warns
        (``ConvergenceWarning``).
    random_state : int, RandomState or None, default=None
        For weak learners that draw at random.
    n_jobs : int, default=None
        Threads for the cuts and for stumps; None is one, -1 all cores. The answer does not depend
        on it.
    verbose : bool, default=False
        Show a progress bar with the gap.
    callback : callable, default=None
        Called with a ``BoostProgress`` after each round; any true answer stops the fit.

    Attributes
    ----------
    estimators_ : list
        The weak learners, with ``predict``.
    estimator_weights_ : array of shape (n,)
        Not negative.
    estimator_segments_ : array of shape (n,)
        0 for a learner of the nodes, 1 for one of the edges.
    stages_ : sparse array of shape (rounds, n)
        The weights after each round.
    feature_importances_ : array of shape (d + k,)
        The weight that went to each feature, of the nodes and then of the edges; the sum is 1.
    classes_ : array of shape (2,)
    gap_ : float
        The relative gap: objective - bound as a share of what there was to gain (the objective
        without learners - bound) or of the objective, whichever is less.
    certified_ : bool
        Whether the bound is a proof: the search for weak learners is exact, so that ``gap_`` holds
        for all of them, not for those alone that were met. How near the fit came is ``gap_``.
    n_iter_ : int
        Rounds.
    interrupted_ : bool
        Whether Ctrl-C or the callback ended the fit, with the best weights so far.
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
        estimator: Any = "stump",
        edge_estimator: Any = "stump",
        *,
        n_estimators: int = 200,
        C: float = 1.0,
        tol: float = 1e-3,
        random_state: Any = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: bool = False,
        callback: Callable[[BoostProgress], object] | None = None,
    ) -> None:
        self.estimator = estimator
        self.edge_estimator = edge_estimator
        self.n_estimators = n_estimators
        self.C = C
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, Y: Any, node_weights: Any = None) -> Self:
        """Fit the potentials.

        Parameters
        ----------
        X : sequence of tuples (node_features, edges, edge_features)
            Of shapes (N, d), (E, 2) and (E, k); edge features must not be negative. Node features
            may be NaN, missing, where the weak learners take it: "stump" and "tree" do.
        Y : sequence of arrays of shape (N,)
            A label a node, one of two.
        node_weights : sequence of arrays of shape (N,) or number, optional
            What a mistake costs, c; 1 by default, as in the paper. The pixels of a superpixel
            over their mean, say. It is the margin too: small weights make small energies.

        Returns
        -------
        self
        """
        n_jobs = threads(self.n_jobs)
        check_display(self.verbose, self.callback)
        deadline = Deadline.of(self.time_limit, armed=False)
        check_estimator(self.estimator, "estimator", (*SEARCHES, "feature"))
        check_estimator(self.edge_estimator, "edge_estimator", (*SEARCHES, "feature"))
        graphs = read_graphs(X)
        if not self._takes_missing():
            refuse_missing(graphs)
        if graphs.nodes.shape[1] == 0:
            raise ValueError("node_features must have at least one column, got none")
        labels = self._learn_labels(graphs, Y, most=2)
        weights = read_node_weights(node_weights, graphs)
        search = self._search(graphs)
        risk = FieldRisk(graphs, labels, 2, weights, BatchMaps(graphs, 2, n_jobs))
        # One learner of the nodes and one of the edges a round, as in the paper.
        fit = self._boost(risk, search, deadline, columns_per_round=2)
        self._store(fit, 2)
        return self

    def _search(self, graphs: Graphs) -> FieldSearch:
        options = {"random_state": self.random_state, "n_jobs": self.n_jobs}
        nodes: WeakLearnerSearch
        if isinstance(self.estimator, str) and self.estimator == "feature":
            nodes = Features(graphs.nodes, signed=True)
        else:
            nodes = make_search(self.estimator, graphs.nodes, **options)
        edges: WeakLearnerSearch | None = None
        if graphs.pairs.size == 0:
            pass
        elif isinstance(self.edge_estimator, str) and self.edge_estimator == "feature":
            edges = Features(graphs.pairs, signed=False)
        else:
            edges = Indicators(make_search(self.edge_estimator, graphs.pairs, **options))
        return FieldSearch(nodes, edges, len(graphs.nodes))

    @property
    def feature_importances_(self) -> FloatArray:
        """The weights of the learners, shared out to features of nodes, then of edges: (d + k,)."""
        check_is_fitted(self)
        shares = [
            weights.sum() * importances(learners, weights, n_features)
            for (learners, weights), n_features in zip(
                self._halves(self.estimator_weights_),
                (self.n_features_in_, self.n_edge_features_in_),
                strict=True,
            )
        ]
        total = np.concatenate(shares)
        return total / total.sum() if total.sum() > 0 else total

    def staged_predict(self, X: Any) -> Iterator[list[NDArray[Any]]]:
        """What ``predict`` would have said after each round."""
        graphs = self._read(X)
        stages = self.stages_
        for stage in range(stages.shape[0]):
            scores = self._weighted(graphs, stages[[stage]].toarray().ravel())
            yield self._best_labels(self._fields(graphs, scores))

    def _takes_missing(self) -> bool:
        return takes_missing(self.estimator)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_missing()
        return tags

    def _scores(self, graphs: Graphs) -> tuple[FloatArray, FloatArray]:
        return self._weighted(graphs, self.estimator_weights_)

    def _weighted(self, graphs: Graphs, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        nodes, edges = (
            weighted_scores(learners, np.zeros(len(learners), np.int64), own, 1, rows)
            for (learners, own), rows in zip(
                self._halves(weights), (graphs.nodes, graphs.pairs), strict=True
            )
        )
        return nodes, edges[0]

    def _halves(self, weights: FloatArray) -> list[tuple[list[Any], FloatArray]]:
        """The learners of the nodes and those of the edges, with their weights."""
        of = [np.flatnonzero(self.estimator_segments_ == segment) for segment in (0, 1)]
        return [([self.estimators_[j] for j in own], weights[own]) for own in of]
