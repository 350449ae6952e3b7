"""A structured support vector machine for the weights of a field."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from setwise._foundation._arguments import FloatArray, IntArray, as_flag, as_number
from setwise._foundation._clock import Deadline
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._progress import (
    ForwardingCallback,
    Progress,
    check_display,
    progress_callback,
)
from setwise._foundation._search import attempt
from setwise._foundation._threads import one_thread
from setwise.estimators._fields._field_model import FieldModel
from setwise.estimators._fields._field_oracle import FieldOracle
from setwise.estimators._fields._field_risk import FieldRisk
from setwise.estimators._fields._field_rounds import FieldRounds
from setwise.estimators._fields._graphs import Graphs
from setwise.estimators._fields._higher_order_maps import best_maps
from setwise.estimators._threads import threads
from setwise.learning import one_slack
from setwise.learning._cutting_planes._fit import Fit
from setwise.learning._relative_gap import gap_scale_of
from setwise.losses import Loss


class FieldSVM(FieldModel):
    r"""A learner of linear weights of a field, with a margin that grows with the mistakes.

    With features x of nodes and :math:`\phi \ge 0` of edges, the energy of labels z is

    .. math:: E(z) = -\sum_p \langle w_{z_p}, x_p \rangle
        + \sum_{e = (p, q)} \langle v, \phi_e \rangle [z_p \ne z_q]
        + \sum_S u_{t(S)} \chi_S(z) + \sum_l h_l [\exists p : z_p = l] , \quad v, u, h \ge 0 ,

    with a weight u for each layer t of regions, if X has any, where :math:`\chi_S(z) = \min(\theta
    |S|, |S| - \max_l n_{Sl}(z))` counts the nodes outside the most common label of S, and with
    costs h of used labels if ``label_costs``. The field stays submodular, and a minimum cut is
    exact for two labels. The fit minimises

    .. math:: \tfrac12 (|w|^2 + |v|^2 + |u|^2 + |h|^2) + C \sum_i \max_z \Big( \sum_p c_p
        [z_p \ne y_p] + E_i(y_i) - E_i(z) \Big)

    by one-slack cutting planes. The oracle makes one cut per graph, started from the last flow.
    With two labels w is the weight vector of the second label; that of the first is zero.

    With more labels, expansion moves replace the cut and may miss the most violated labelling.
    Therefore a full search with a bound is made for the final weights (over all labellings of small
    graphs, by a relaxation for others). If it finds a more violated labelling, the fit continues,
    and weights that seem to be the best so far are searched from another start and in full.
    ``gap_`` includes the part that no search could prove, so it is always valid.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum over the graphs against the squared norm.
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
    label_costs : bool, default=False
        Whether to learn the cost of each label that a graph uses.
    tol : float, default=1e-3
        Relative gap at which the fit stops. A fit that ends above it warns
        (``ConvergenceWarning``).
    max_iter : int, default=10000
        The largest number of rounds of cutting planes.
    time_limit : float, default=None
        The largest number of seconds that ``fit`` may take, None for no limit. It then ends with
        the best weights so far, after at least one round, and warns (``ConvergenceWarning``);
        ``gap_`` is valid. The result then depends on the speed and the load of the machine.
    fit_intercept : bool, default=True
        Whether the nodes have a constant feature, penalised like the others. Edges have none: add a
        column of ones for a common coupling.
    n_jobs : int, default=None
        Threads for the cuts; None is one, -1 all cores. The answer does not depend on it.
    verbose : bool, default=False
        Show a progress bar with the gap.

    Attributes
    ----------
    coef_ : array of shape (1, d), or (L, d) for more than two labels
    intercept_ : array of shape (1,), or (L,)
    edge_coef_ : array of shape (k,)
        v, not negative.
    region_coef_ : array of shape (layers,)
        u, not negative.
    label_costs_ : array of shape (L,)
        h, not negative; 0 unless ``label_costs``.
    classes_ : array of shape (L,)
    gap_ : float
        The relative gap of the returned weights: (objective - bound) divided by (objective of zero
        weights - bound) or by the objective, whichever is smaller, where the objective is its upper
        bound. It is valid even if ``certified_`` is False.
    certified_ : bool
        Whether the objective of the returned weights is known exactly (to 1e-9 of that of zero
        weights), because the labels of each graph are proved to be the most violated. Always True
        for two labels.
    n_iter_ : int
    interrupted_ : bool
        Whether Ctrl-C or the callback ended the fit, with the best weights so far.
    history_ : History
        Primal, dual and seconds of each round. The primal is the least proved objective; with more
        than two labels it changes only after a full search.
    bias_ : array of shape (L,)
        The biases of the labels that were tuned for the ``measure``; 0 without one.
    temperature_ : float
        The temperature of the marginals in ``decide``: 1 unless ``decision="marginals"`` tuned it.
    score_estimator_ : classifier or None
        ``scores``, fitted to all nodes.
    n_features_in_, n_edge_features_in_, n_region_layers_in_ : int

    References
    ----------
    M. Szummer, P. Kohli, D. Hoiem, Learning CRFs using graph cuts, 2008.

    Examples
    --------
    A chain of four nodes whose third measurement is wrong:

    >>> import numpy as np
    >>> import setwise as sw
    >>> chain = np.array([[0, 1], [1, 2], [2, 3]])
    >>> x = (np.array([[1.0], [2.0], [-0.5], [1.0]]), chain, np.ones((3, 1)))
    >>> z = (np.array([[-1.0], [-2.0], [-1.5], [-1.0]]), chain, np.ones((3, 1)))
    >>> model = sw.FieldSVM(C=10.0).fit([x, z], [[1, 1, 1, 1], [0, 0, 0, 0]])
    >>> model.predict([x])[0].tolist(), bool(model.edge_coef_[0] > 0)
    ([1, 1, 1, 1], True)
    >>> sw.solve_map(model.to_field(x)).exact
    True
    """

    @hints_at_names
    def __init__(
        self,
        C: float = 1.0,
        *,
        scores: Any = None,
        passthrough: bool = False,
        measure: Loss | str | None = None,
        decision: str = "bias",
        cv: Any = None,
        truncation: float = 0.5,
        label_costs: bool = False,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        time_limit: float | None = None,
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.C = C
        self.scores = scores
        self.passthrough = passthrough
        self.measure = measure
        self.decision = decision
        self.cv = cv
        self.truncation = truncation
        self.label_costs = label_costs
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        Y: Any,
        node_weights: Any = None,
        *,
        callback: Callable[[Progress], object] | None = None,
    ) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : sequence of tuples (node_features, edges, edge_features)
            Arrays of shapes (N, d), (E, 2) and (E, k); edge features must not be negative. An
            optional fourth entry, (N,) or (N, layers), has the number of each node's region, -1 for
            none.
        Y : sequence of arrays of shape (N,)
            One label per node; floats must be whole numbers.
        node_weights : sequence of arrays of shape (N,) or number, optional
            The costs c of mistakes; 1 by default, as in the paper. For superpixels, one can use
            their numbers of pixels, divided by the mean. The costs are also the margins: small
            costs lead to small energies.
        callback : callable, optional
            Called with a ``Progress`` after each round; any true value stops the fit. With
            more than two labels its ``value`` uses the labels that were found, which need not be
            the most violated ones.

        Returns
        -------
        self
        """
        threads(self.n_jobs)
        as_number(self.C, "C", positive=True)
        as_flag(self.fit_intercept, "fit_intercept")
        as_flag(self.label_costs, "label_costs")
        check_display(self.verbose, callback)
        deadline = Deadline.of(self.time_limit, armed=False)
        self._fit(X, Y, node_weights, deadline, callback)
        return self

    @property
    def _priced(self) -> bool:
        return bool(self.label_costs)

    def _of_a_share(self, share: float) -> dict[str, Any]:
        """Return the C with the same effect on a share of the graphs; C multiplies a sum."""
        return {"C": self.C / share}

    def _learn(
        self,
        graphs: Graphs,
        labels: IntArray,
        weights: FloatArray,
        deadline: Deadline,
        callback: Callable[[Progress], object] | None = None,
    ) -> None:
        n_labels, couplings = len(self.classes_), self._couplings(graphs)
        maps = best_maps(graphs, couplings, n_labels, threads(self.n_jobs))
        risk = FieldRisk(graphs, labels, n_labels, weights, maps, couplings)
        intercept = bool(self.fit_intercept)
        oracle = FieldOracle(graphs, couplings, risk, float(self.C), intercept=intercept)
        with (
            one_thread(),
            progress_callback(self.verbose, self.tol, callback) as reporting,
        ):
            rounds = FieldRounds(oracle, self.tol, self.max_iter, reporting, deadline)
            fit = deadline.run(self._solve, oracle, rounds)
        self._store(oracle, rounds, fit)

    def _solve(self, oracle: FieldOracle, rounds: FieldRounds) -> Fit:
        """Solve by cutting planes with quick searches, then thorough ones if labels were missed."""
        fit: Fit | None = None
        for thorough in (False, True):
            oracle.start(thorough=thorough)
            rounds.start(thorough=thorough)
            begin = partial(self._search, oracle, rounds, fit)
            found, ended = (begin(), False) if fit is None else attempt(begin)
            if found is not None:
                fit = found
                rounds.end(fit)
                if oracle.exact or rounds.cancelled:
                    break
                proof, ended = attempt(oracle.prove, fit.w)
            if ended or proof is None:
                rounds.cancel()
                break
            assert fit is not None
            _, least, most = proof
            if rounds.interrupted or rounds.proved() or not rounds.left:
                break
            # If no violated labels were missed and only the unproved part of the gap remains, more
            # planes would not help.
            near = self.tol * gap_scale_of(fit.value, rounds.bound, oracle.zero)
            if least - fit.value <= near and most - least > near:
                break
        assert fit is not None
        return fit

    def _search(self, oracle: FieldOracle, rounds: FieldRounds, init: Fit | None) -> Fit:
        """Add planes until the rounds end the search, by the gap over both searches."""
        return one_slack(
            oracle,
            oracle.dimension,
            oracle.C,
            tol=0.0,
            max_iter=rounds.left,
            time_limit=rounds.deadline.inherited,
            nonnegative=np.arange(oracle.first_coupling, oracle.dimension),
            init=init,
            callback=ForwardingCallback(rounds),
        )

    def _store(self, oracle: FieldOracle, rounds: FieldRounds, fit: Fit) -> None:
        w, value, self.certified_ = oracle.best
        if rounds.cancelled and not w.any():  # no weights have had a full search yet
            w, value, self.certified_ = fit.w, oracle.at_most(fit.w), False
        self.gap_ = rounds.share_left(value)
        self.n_iter_ = len(rounds.seconds)
        self.interrupted_ = rounds.interrupted and not rounds.deadline.expired
        self.history_ = rounds.history()
        if self.gap_ > self.tol and not self.interrupted_:
            warnings.warn(self._what_is_left(rounds), ConvergenceWarning, stacklevel=3)
        W, coefficients = oracle.parts(w)
        self.coef_ = (W[:, :-1] if self.fit_intercept else W).copy()
        self.intercept_ = W[:, -1].copy() if self.fit_intercept else np.zeros(len(W))
        self.edge_coef_ = coefficients[0]
        self.label_costs_ = coefficients[-1] if self._priced else np.zeros(len(self.classes_))
        between = coefficients[1 : len(coefficients) - self._priced]
        self.region_coef_ = between[0] if between else np.zeros(0)

    def _what_is_left(self, rounds: FieldRounds) -> str:
        """Return a sentence that says why a fit ended above its tolerance, and what to try."""
        said = (
            f"FieldSVM stopped after {self.n_iter_} rounds at a relative gap of {self.gap_:.1e}, "
            f"above tol={self.tol:g}"
        )
        if rounds.deadline.expired:
            return f"{said}: {rounds.deadline.sentence}, raise it or tol"
        if rounds.stalled:
            return (
                f"{said}, where its gap stands still: scale the features to deviations of 1, "
                "lower C or raise tol"
            )
        if self.n_iter_ >= self.max_iter:
            return f"{said}: raise max_iter or tol"
        return (
            f"{said}: with {len(self.classes_)} labels the most violated labelling was searched "
            "for and not proved, lower C or raise tol"
        )

    def _scores(self, graphs: Graphs) -> tuple[FloatArray, FloatArray]:
        nodes = self.coef_ @ graphs.nodes.T + self.intercept_[:, None]
        coefficients = [self.edge_coef_]
        if len(self.region_coef_):
            coefficients.append(self.region_coef_)
        if self._priced:
            coefficients.append(self.label_costs_)
        return nodes, self._couplings(graphs).weights(coefficients)
