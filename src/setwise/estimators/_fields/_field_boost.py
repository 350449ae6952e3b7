"""Boosting for the potentials of a field."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._clock import Deadline
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._progress import check_display
from setwise.estimators._boosting._boosted import (
    SEARCHES,
    Boosted,
    check_estimator,
    importances,
    make_search,
    weighted_scores,
)
from setwise.estimators._boosting._columns import takes_missing
from setwise.estimators._fields._boost_proof import Thorough, prove
from setwise.estimators._fields._couplings import Couplings
from setwise.estimators._fields._field_model import FieldModel
from setwise.estimators._fields._field_risk import FieldRisk
from setwise.estimators._fields._field_search import FieldSearch, Indicators, PlainFeatures
from setwise.estimators._fields._graphs import Graphs
from setwise.estimators._fields._higher_order_maps import best_maps
from setwise.estimators._threads import threads
from setwise.learning._boosting._boost_fit import BoostProgress
from setwise.learning._boosting._problem import WeakLearnerSearch
from setwise.losses import Loss


class FieldBoost(Boosted, FieldModel):
    r"""A learner of the potentials of a field by boosting: StructBoost for random fields.

    With weak learners h of node features and :math:`g \ge 0` of edge features, the energy is

    .. math:: E(z) = -\sum_p \sum_j w_j h_j(x_p) [z_p = l_j]
        + \sum_{e = (p, q)} \sum_j v_j g_j(\phi_e) [z_p \ne z_q]
        + \sum_S u_{t(S)} \chi_S(z) , \qquad w, v, u \ge 0 ,

    where :math:`l_j` is the second of two labels, or any of more, and t(S) the layer of a region S
    (``FieldSVM`` has the price :math:`\chi_S` of dividing it). The couplings stay submodular, so
    that minimum cuts are exact for two labels. The fit minimises

    .. math:: 1^\top w + 1^\top v + 1^\top u
        + \frac{C}{n} \sum_i \max_z \Big( \sum_p c_p [z_p \ne y_p] + E_i(y_i) - E_i(z) \Big)

    over all weak learners, by column generation over cutting planes: equation (25) of the paper.
    Each round searches for the best learner of the nodes, of the edges and of the regions.

    With more labels, expansion moves replace the cut and may miss the most violated labelling. The
    planes and the bound then remain valid, but the true objective may be higher than the computed
    one. Therefore a full search is made for the final weights. If it finds a more violated
    labelling, the fit is repeated with full searches. ``gap_`` includes the part that no search
    could prove.

    Parameters
    ----------
    estimator : str, scikit-learn classifier, or a pair of them, default="stump"
        The weak learners of the nodes: "stump", "tree", "perceptron", "linear", or a classifier, as
        in ``StructBoostClassifier``; or "feature": the node features and their negatives, which
        gives a sparse linear model (without an intercept; add a column of ones if you need one).
        The second entry of a pair is for the edges. A response h of an edge learner becomes (1 + h)
        / 2, which is not negative; "feature" uses the edge features themselves.
    scores : classifier with ``predict_proba``, default=None
        Any classifier of nodes. Its scores are the node features of the field: a logit for two
        labels, log-probabilities for more. The scores of a graph come from a fit to the other
        folds.
    passthrough : bool, default=False
        Whether the node features are used in addition to the ``scores``.
    measure : Loss or str, default=None
        A set loss, or the name of one (``sw.losses.names()``), of the nodes of the second class, or
        of each class if there are more than two. ``predict`` is tuned for its mean over the graphs
        by cross-validation, and ``score`` reports it. The objective of the fit does not change.
    decision : {"bias", "marginals"}, default="bias"
        What is tuned for the ``measure``: a bias of each label, or, with two labels, the
        temperature of the marginals by ``method="projection"``, for which ``decide`` finds the best
        set.
    cv : int, splitter or iterable, default=None
        The folds of the graphs for ``scores`` and ``measure``; by default five blocks of
        consecutive graphs.
    truncation : float, default=0.5
        For regions: if at least this share of a region's nodes is outside its most common label,
        its price no longer increases; at most 0.5.
    n_estimators : int, default=200
        The largest number of weak learners.
    time_limit : float, default=None
        The largest number of seconds that ``fit`` may take, None for no limit. It then ends with
        the best weights so far and warns (``ConvergenceWarning``); ``gap_`` is valid. The first
        round, the fit of a weak learner of scikit-learn, and a linear program are not interrupted.
        The result then depends on the speed and the load of the machine.
    C : float, default=1.0
        Weight of the mean over the graphs against the sum of all weights. The risk of a graph grows
        with its nodes.
    tol : float, default=1e-3
        Relative gap at which the fit stops. A fit that ends above it, for instance at
        ``n_estimators``, warns (``ConvergenceWarning``).
    random_state : int, RandomState or None, default=None
        The seed of random weak learners.
    n_jobs : int, default=None
        Threads for the cuts and for stumps; None is one, -1 all cores. The answer does not depend
        on it.
    verbose : bool, default=False
        Show a progress bar with the gap.

    Attributes
    ----------
    estimators_ : list
        The weak learners, with ``predict``.
    estimator_weights_ : array of shape (n,)
        Not negative.
    estimator_segments_ : array of shape (n,)
        With two labels: 0 for a learner of the nodes, 1 of the edges, 2 of the regions. With L > 2
        labels: the label for a learner of the nodes, L of the edges, L + 1 of the regions.
    stages_ : sparse array of shape (rounds, n)
        The weights after each round.
    feature_importances_ : array of shape (d + k + layers,)
        The weights of the learners, distributed to the features of the nodes, those of the edges
        and the layers of regions; their sum is 1.
    classes_ : array of shape (L,)
    gap_ : float
        The relative gap: (objective - bound) divided by (objective without learners - bound) or by
        the objective, whichever is smaller.
    certified_ : bool
        Whether ``gap_`` is proved for all weak learners and not only for those that were found: the
        search for weak learners is exact, and the objective is known exactly, as it always is for
        two labels.
    n_iter_ : int
        Rounds.
    interrupted_ : bool
        Whether Ctrl-C or the callback ended the fit, with the best weights so far.
    history_ : BoostHistory
        With more than two labels the primal uses the labels that were found.
    bias_ : array of shape (L,)
        The biases of the labels that were tuned for the ``measure``; 0 without one.
    temperature_ : float
        The temperature of the marginals in ``decide``: 1 unless ``decision="marginals"`` tuned it.
    score_estimator_ : classifier or None
        ``scores``, fitted to all nodes.
    n_features_in_, n_edge_features_in_, n_region_layers_in_ : int

    References
    ----------
    C. Shen, G. Lin, A. van den Hengel, StructBoost: boosting methods for predicting structured
    output variables, 2014, Section 3.6.

    Examples
    --------
    A chain of four nodes whose third measurement is wrong:

    >>> import numpy as np
    >>> import setwise as sw
    >>> chain = np.array([[0, 1], [1, 2], [2, 3]])
    >>> x = (np.array([[1.0], [2.0], [-0.5], [1.0]]), chain, np.ones((3, 1)))
    >>> z = (np.array([[-1.0], [-2.0], [-1.5], [-1.0]]), chain, np.ones((3, 1)))
    >>> model = sw.FieldBoost(C=10.0).fit([x, z], [[1, 1, 1, 1], [0, 0, 0, 0]])
    >>> model.predict([x])[0].tolist(), model.certified_
    ([1, 1, 1, 1], True)
    """

    @hints_at_names
    def __init__(
        self,
        estimator: Any = "stump",
        *,
        scores: Any = None,
        passthrough: bool = False,
        measure: Loss | str | None = None,
        decision: str = "bias",
        cv: Any = None,
        truncation: float = 0.5,
        n_estimators: int = 200,
        C: float = 1.0,
        tol: float = 1e-3,
        random_state: Any = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.scores = scores
        self.passthrough = passthrough
        self.measure = measure
        self.decision = decision
        self.cv = cv
        self.truncation = truncation
        self.n_estimators = n_estimators
        self.C = C
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        Y: Any,
        node_weights: Any = None,
        *,
        callback: Callable[[BoostProgress], object] | None = None,
    ) -> Self:
        """Fit the potentials.

        Parameters
        ----------
        X : sequence of tuples (node_features, edges, edge_features)
            Arrays of shapes (N, d), (E, 2) and (E, k); edge features must not be negative. An
            optional fourth entry, (N,) or (N, layers), has the number of each node's region, -1 for
            none. Node features may be NaN (missing) if the weak learners accept it, as "stump" and
            "tree" do.
        Y : sequence of arrays of shape (N,)
            One label per node; floats must be whole numbers.
        node_weights : sequence of arrays of shape (N,) or number, optional
            The costs c of mistakes; 1 by default, as in the paper. For superpixels, one can use
            their numbers of pixels, divided by the mean. The costs are also the margins: small
            costs lead to small energies.
        callback : callable, optional
            Called with a ``BoostProgress`` after each round; any true value stops the fit.

        Returns
        -------
        self
        """
        threads(self.n_jobs)
        check_display(self.verbose, callback)
        deadline = Deadline.of(self.time_limit, armed=False)
        for kind in self._kinds_of_learners:
            check_estimator(kind, "estimator", (*SEARCHES, "feature"))
        self._fit(X, Y, node_weights, deadline, callback)
        return self

    def _learn(
        self,
        graphs: Graphs,
        labels: IntArray,
        weights: FloatArray,
        deadline: Deadline,
        callback: Callable[[BoostProgress], object] | None = None,
    ) -> None:
        if graphs.nodes.shape[1] == 0:
            raise ValueError("node_features must have at least one column, got none")
        self._n_node_columns = graphs.nodes.shape[1]
        n_labels, couplings = len(self.classes_), self._couplings(graphs)
        maps = best_maps(graphs, couplings, n_labels, threads(self.n_jobs))
        risk = FieldRisk(graphs, labels, n_labels, weights, maps, couplings)
        search = self._search(graphs, couplings, risk.offsets)
        # One learner of the nodes and one of the edges per round, as in the paper.
        width = search.n_columns
        fit = self._boost(risk, search, deadline, callback, columns_per_round=width)
        proof = prove(fit, risk, float(self.C), deadline)
        if proof.missed and proof.fit.relative_gap > self.tol and not proof.ended:
            fit = self._boost(Thorough(risk), search, deadline, callback, columns_per_round=width)
            proof = prove(fit, risk, float(self.C), deadline)
        self._store(fit, len(risk.offsets) - 1)
        self.gap_, self.certified_ = proof.fit.relative_gap, proof.fit.certified
        self.interrupted_ = fit.interrupted or (proof.ended and not deadline.expired)
        if fit.relative_gap <= self.tol < self.gap_ and not self.interrupted_:
            warnings.warn(
                f"FieldBoost ended at a relative gap of {self.gap_:.1e}, above tol={self.tol:g}: "
                f"with {n_labels} labels the most violated labelling was searched for and not "
                "proved, lower C or raise tol",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _search(self, graphs: Graphs, couplings: Couplings, offsets: IntArray) -> FieldSearch:
        options = {"random_state": self.random_state, "n_jobs": self.n_jobs}
        of_nodes, of_edges = self._kinds_of_learners
        nodes: WeakLearnerSearch
        if isinstance(of_nodes, str) and of_nodes == "feature":
            nodes = PlainFeatures(graphs.nodes, signed=True)
        else:
            nodes = make_search(of_nodes, graphs.nodes, **options)
        edges: WeakLearnerSearch | None = None
        if graphs.pairs.size == 0:
            pass
        elif isinstance(of_edges, str) and of_edges == "feature":
            edges = PlainFeatures(graphs.pairs, signed=False)
        else:
            edges = Indicators(make_search(of_edges, graphs.pairs, **options))
        # Each layer of regions is one feature; there is none if no graph has a region.
        layers = [
            PlainFeatures(part, signed=False) if part.size else None
            for part in couplings.features[1:]
        ]
        return FieldSearch(nodes, [edges, *layers], offsets)

    @property
    def feature_importances_(self) -> FloatArray:
        """The weights of the learners, distributed to features of nodes and edges and to layers."""
        check_is_fitted(self)
        widths = self._n_node_columns, self.n_edge_features_in_, self.n_region_layers_in_
        parts = zip(self._parts(self.estimator_weights_), widths, strict=False)
        shares = [
            weights.sum() * importances(learners, weights, n_features)
            for (learners, _, weights), n_features in parts
        ]
        total = np.concatenate(shares)
        return total / total.sum() if total.sum() > 0 else total

    def staged_predict(self, X: Any) -> Iterator[list[NDArray[Any]]]:
        """Yield the result of ``predict`` as of each round."""
        graphs = self._read(X)
        stages = self.stages_
        for stage in range(stages.shape[0]):
            scores = self._weighted(graphs, stages[[stage]].toarray().ravel())
            yield self._predicted(self._fields(graphs, scores))

    def _bears_missing(self) -> bool:
        return takes_missing(self._kinds_of_learners[0])

    def _scores(self, graphs: Graphs) -> tuple[FloatArray, FloatArray]:
        return self._weighted(graphs, self.estimator_weights_)

    def _weighted(self, graphs: Graphs, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        rows = [graphs.nodes, *self._couplings(graphs).features]
        nodes, *others = (
            weighted_scores(learners, segments, own, self._kinds if k == 0 else 1, rows[k])
            for k, (learners, segments, own) in enumerate(self._parts(weights))
        )
        return nodes, np.concatenate([part[0] for part in others])

    @property
    def _kinds_of_learners(self) -> tuple[Any, Any]:
        """The weak learners of the nodes and of the edges."""
        if not isinstance(self.estimator, list | tuple):
            return self.estimator, self.estimator
        if len(self.estimator) != 2:
            raise ValueError(
                "estimator must be the weak learners of nodes and edges or a pair of them, got "
                f"{len(self.estimator)}"
            )
        return tuple(self.estimator)

    @property
    def _kinds(self) -> int:
        """The number of segments of the nodes."""
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _parts(self, weights: FloatArray) -> list[tuple[list[Any], IntArray, FloatArray]]:
        """Return the learners of nodes, edges and regions, with segments from 0 on, and weights."""
        parts = []
        kinds, segments = self._kinds, self.estimator_segments_
        assert segments is not None  # every learner of a field has a segment
        stretches = [(0, kinds), *((k, k + 1) for k in range(kinds, self._n_segments))]
        for first, last in stretches:
            own = np.flatnonzero((segments >= first) & (segments < last))
            parts.append(([self.estimators_[j] for j in own], segments[own] - first, weights[own]))
        return parts
