"""A structured support vector machine for the weights of a field."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from setwise._foundation._arguments import FloatArray, IntArray, as_flag, as_number
from setwise._foundation._deadline import Deadline
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._progress import ForwardingCallback, check_display, progress_callback
from setwise._foundation._search import attempt
from setwise._foundation._threads import one_thread
from setwise.estimators._fields._field_model import FieldModel
from setwise.estimators._fields._field_oracle import FieldOracle
from setwise.estimators._fields._field_risk import FieldRisk
from setwise.estimators._fields._field_rounds import FieldRounds
from setwise.estimators._fields._graphs import Graphs
from setwise.estimators._fields._higher_maps import best_maps
from setwise.estimators._threads import threads
from setwise.learning import Fit, Progress, one_slack
from setwise.learning._room import room_of
from setwise.losses import Loss


class FieldSVM(FieldModel):
    r"""Learns the weights of a field, linearly, with the margin that its mistakes ask for.

    With features x of nodes and :math:`\phi \ge 0` of edges, the energy of labels z is

    .. math:: E(z) = -\sum_p \langle w_{z_p}, x_p \rangle
        + \sum_{e = (p, q)} \langle v, \phi_e \rangle [z_p \ne z_q]
        + \sum_S u_{t(S)} \chi_S(z) + \sum_l h_l [\exists p : z_p = l] , \quad v, u, h \ge 0 ,

    with a weight u for each layer t of regions, if X has any, where
    :math:`\chi_S(z) = \min(\theta |S|, |S| - \max_l n_{Sl}(z))` counts the nodes outside the
    commonest label of S, and costs h of used labels if ``label_costs``. So the field stays
    submodular, and a minimum cut finds the best of two labels. The fit minimises

    .. math:: \tfrac12 (|w|^2 + |v|^2 + |u|^2 + |h|^2) + C \sum_i \max_z \Big( \sum_p c_p
        [z_p \ne y_p] + E_i(y_i) - E_i(z) \Big)

    by one-slack cutting planes whose oracle is one cut a graph, started from the last one's flow.
    With two labels w is the weight vector of the second, that of the first is zero.

    With more labels expansion moves stand for the cut. They may miss the most violated labelling.
    So the weights that they end at are searched in full, with a bound (all labellings of small
    graphs, a relaxation for others); where the moves had missed something, the fit goes on, and
    weights that seem to be the best so far are searched from another start and in full. ``gap_``
    counts what no search could prove, so that it holds all the same.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum over the graphs against the squared norm.
    scores : classifier with ``predict_proba``, default=None
        Any classifier of nodes: its scores are the node features of the field, those of a graph by
        a fit to the other folds. For two labels a logit, for more their log-probabilities.
    passthrough : bool, default=False
        Whether the node features themselves are kept beside the ``scores``.
    measure : Loss or str, default=None
        A set loss, or the name of one (``sw.losses.names()``), of the nodes of the second class, or
        of each class where there are more: its mean over the graphs is what ``predict`` is then
        tuned for, in folds, and ``score`` tells. What the fit itself minimises stays the same.
    decision : {"bias", "marginals"}, default="bias"
        What is tuned for the ``measure``: a number added to the scores of each label, or, with two
        labels, the temperature of the marginals from which ``decide`` takes the best set. Those
        are the marginals of ``method="projection"``.
    cv : int, splitter or iterable, default=None
        The folds of the graphs for ``scores`` and ``measure``; five stretches by default.
    truncation : float, default=0.5
        For regions: the share of a region's nodes outside its commonest label from which on its
        price rises no more; at most 0.5.
    label_costs : bool, default=False
        Whether to learn what it costs a graph to use a label at all.
    tol : float, default=1e-3
        Relative gap at which the fit stops; one that ends above it warns (``ConvergenceWarning``).
    max_iter : int, default=10000
        The most rounds of cutting planes.
    time_limit : float, default=None
        The most seconds that ``fit`` may take, None for no limit. It then ends with the best
        weights so far, of the first round at least, and warns (``ConvergenceWarning``); ``gap_``
        holds. What was learned then depends on the machine and on what else it does.
    fit_intercept : bool, default=True
        A constant feature of the nodes, penalised as the others. Edges have none: give them a
        column of ones for a coupling that all share.
    n_jobs : int, default=None
        Threads for the cuts; None is one, -1 all cores. The answer does not depend on it.
    verbose : bool, default=False
        Show a progress bar with the gap.
    callback : callable, default=None
        Called with a ``Progress`` after each round; any true answer stops the fit. With more than
        two labels its ``value`` is that of the labels found so far, which need not be the worst.

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
        The relative gap of the weights returned: objective - bound, with the objective at the most
        it can be, as a share of what there was to gain (the objective of zero weights - bound) or
        of the objective, whichever is less. It holds whether ``certified_`` or not.
    certified_ : bool
        Whether the objective of the weights returned is known exactly (to 1e-9 of that of zero
        weights): the labels of each graph are proved to be the most violated. Always so for two
        labels. How near the weights are to the best is ``gap_``.
    n_iter_ : int
    interrupted_ : bool
        Whether Ctrl-C or the callback ended the fit, with the best weights so far.
    history_ : History
        Primal, dual and seconds of each round. The primal is the least objective that is proved:
        with more than two labels it stays where it was until weights are searched in full.
    bias_ : array of shape (L,)
        What the ``measure`` adds to the scores of the labels, else 0.
    temperature_ : float
        Of the marginals in ``decide``: 1 unless ``decision="marginals"`` tuned it.
    score_estimator_ : classifier or None
        ``scores``, fitted to all nodes.
    n_features_in_, n_edge_features_in_, n_region_layers_in_ : int

    References
    ----------
    M. Szummer, P. Kohli, D. Hoiem, Learning CRFs using graph cuts, 2008.

    Examples
    --------
    A chain of four nodes whose third measurement is off:

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
        callback: Callable[[Progress], object] | None = None,
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
        self.callback = callback

    def fit(self, X: Any, Y: Any, node_weights: Any = None) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : sequence of tuples (node_features, edges, edge_features)
            Of shapes (N, d), (E, 2) and (E, k); edge features must not be negative. Or with regions
            as a fourth entry, (N,) or (N, layers): the number of each node's region, -1 for none.
        Y : sequence of arrays of shape (N,)
            A label a node; of any kind, but whole.
        node_weights : sequence of arrays of shape (N,) or number, optional
            What a mistake costs, c; 1 by default, as in the paper. The pixels of a superpixel
            over their mean, say. It is the margin too: small weights make small energies.

        Returns
        -------
        self
        """
        threads(self.n_jobs)
        as_number(self.C, "C", positive=True)
        as_flag(self.fit_intercept, "fit_intercept")
        as_flag(self.label_costs, "label_costs")
        check_display(self.verbose, self.callback)
        deadline = Deadline.of(self.time_limit, armed=False)
        self._fit(X, Y, node_weights, deadline)
        return self

    @property
    def _priced(self) -> bool:
        return bool(self.label_costs)

    def _of_a_share(self, share: float) -> dict[str, Any]:
        """C multiplies the sum over the graphs, of which there are fewer."""
        return {"C": self.C / share}

    def _learn(
        self, graphs: Graphs, labels: IntArray, weights: FloatArray, deadline: Deadline
    ) -> None:
        n_labels, couplings = len(self.classes_), self._couplings(graphs)
        maps = best_maps(graphs, couplings, n_labels, threads(self.n_jobs))
        risk = FieldRisk(graphs, labels, n_labels, weights, maps, couplings)
        intercept = bool(self.fit_intercept)
        oracle = FieldOracle(graphs, couplings, risk, float(self.C), intercept=intercept)
        with (
            one_thread(),
            progress_callback(self.verbose, self.tol, self.callback) as callback,
        ):
            rounds = FieldRounds(oracle, self.tol, self.max_iter, callback, deadline)
            fit = deadline.run(self._solve, oracle, rounds)
        self._store(oracle, rounds, fit)

    def _solve(self, oracle: FieldOracle, rounds: FieldRounds) -> Fit:
        """Solve by cutting planes with quick labels, then with thorough ones if any were missed."""
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
            # Where nothing was missed, and what could not be proved is all that is left, more
            # planes would not help.
            near = self.tol * room_of(fit.value, rounds.bound, oracle.zero)
            if least - fit.value <= near and most - least > near:
                break
        assert fit is not None
        return fit

    def _search(self, oracle: FieldOracle, rounds: FieldRounds, init: Fit | None) -> Fit:
        """Cut planes until the rounds end it, by the gap over both searches."""
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
        if rounds.cancelled and not w.any():  # weights, but none that were searched in full
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
        """Return why a fit ended above its tolerance, and what to try: one sentence."""
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
