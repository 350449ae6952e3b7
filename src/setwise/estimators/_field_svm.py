"""A structured support vector machine for the weights of a field."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from setwise.estimators._field_model import FieldModel, threads_of
from setwise.estimators._field_risk import FieldRisk
from setwise.estimators._graphs import Graphs, read_graphs, read_node_weights
from setwise.estimators._potts_maps import Cuts, Moves
from setwise.estimators._progress import check_display, progress_callback
from setwise.estimators._threads import threads
from setwise.functions._arguments import FloatArray, as_flag
from setwise.learning import Fit, Progress, one_slack


class FieldSVM(FieldModel):
    r"""Learns the weights of a field, linearly, with the margin that its mistakes ask for.

    With features x of nodes and :math:`\phi \ge 0` of edges, the energy of labels z is

    .. math:: E(z) = -\sum_p \langle w_{z_p}, x_p \rangle
        + \sum_{e = (p, q)} \langle v, \phi_e \rangle [z_p \ne z_q] , \qquad v \ge 0 ,

    so that the field stays submodular and a minimum cut finds the best of two labels. The fit
    minimises

    .. math:: \tfrac12 (|w|^2 + |v|^2) + C \sum_i \max_z \Big( \sum_p c_p [z_p \ne y_p]
        + E_i(y_i) - E_i(z) \Big)

    by one-slack cutting planes whose oracle is one cut a graph, started from the last one's flow.
    With two labels w is the weight vector of the second, that of the first is zero.

    With more labels expansion moves stand for the cut. They may miss the best labelling; ``gap_``
    then counts how far they can be from it at the weights returned, so that it holds all the same.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum over the graphs against the squared norm.
    tol : float, default=1e-3
        Relative gap at which the fit stops.
    max_iter : int, default=10000
        The most rounds of cutting planes.
    fit_intercept : bool, default=True
        A constant feature of the nodes, penalised as the others. Edges have none: give them a
        column of ones for a coupling that all share.
    n_jobs : int, default=None
        Threads for the cuts; None is one, -1 all cores. The answer does not depend on it.
    verbose : bool, default=False
        Show a progress bar with the gap.
    callback : callable, default=None
        Called with a ``Progress`` after each round; the fit stops when it returns True.

    Attributes
    ----------
    coef_ : array of shape (1, d), or (L, d) for more than two labels
    intercept_ : array of shape (1,), or (L,)
    edge_coef_ : array of shape (k,)
        v, not negative.
    classes_ : array of shape (L,)
    gap_ : float
        The relative gap of the weights returned.
    certified_ : bool
        Whether every separation at those weights was exact; always so for two labels.
    n_iter_ : int
    history_ : History
        Primal, dual and seconds of each round.
    n_features_in_, n_edge_features_in_ : int

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

    def __init__(
        self,
        C: float = 1.0,
        *,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        verbose: bool = False,
        callback: Callable[[Progress], object] | None = None,
    ) -> None:
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, Y: Any, node_weights: Any = None) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : sequence of tuples (node_features, edges, edge_features)
            Of shapes (N, d), (E, 2) and (E, k); edge features must not be negative.
        Y : sequence of arrays of shape (N,)
            A label a node; of any kind, but whole.
        node_weights : sequence of arrays of shape (N,), optional
            What a mistake costs, c; 1 by default, as in the paper. The pixels of a superpixel
            over their mean, say. It is the margin too: small weights make small energies.

        Returns
        -------
        self
        """
        n_jobs = threads(self.n_jobs)
        as_flag(self.fit_intercept, "fit_intercept")
        check_display(self.verbose, self.callback)
        graphs = read_graphs(X)
        labels = self._learn_labels(graphs, Y)
        weights = read_node_weights(node_weights, graphs)
        executor = threads_of(self.n_jobs)
        try:
            n_labels = len(self.classes_)
            maps = Cuts(graphs, n_jobs) if n_labels == 2 else Moves(graphs, executor)
            risk = FieldRisk(graphs, labels, n_labels, weights, maps)
            problem = _Linear(graphs, risk, bool(self.fit_intercept))
            with (
                threadpool_limits(1, user_api="blas"),
                progress_callback(self.verbose, self.tol, self.callback) as callback,
            ):
                fit = one_slack(
                    problem,
                    problem.dimension,
                    self.C,
                    tol=self.tol,
                    max_iter=self.max_iter,
                    nonnegative=np.arange(problem.first_edge, problem.dimension),
                    callback=callback,
                )
                self._certify(fit, len(graphs) * risk.bound(problem.scores(fit.w)))
        finally:
            executor.close()
        self._store(fit, problem)
        return self

    def _certify(self, fit: Fit, most: float) -> None:
        """The gap with the risk at the most it can be, which only moves leave open."""
        value = max(fit.value, 0.5 * float(fit.w @ fit.w) + self.C * most)
        self.certified_ = len(self.classes_) == 2 or value - fit.value <= 1e-9 * max(1.0, value)
        self.gap_ = fit.relative_gap if self.certified_ else (value - fit.bound) / max(1.0, value)

    def _store(self, fit: Fit, problem: _Linear) -> None:
        if not fit.converged and not fit.interrupted:
            warnings.warn(
                f"FieldSVM stopped after {fit.n_iter} rounds at a relative gap of "
                f"{fit.relative_gap:.1e}, above tol={self.tol:g}: raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        W, self.edge_coef_ = problem.parts(fit.w)
        self.coef_ = W[:, : self.n_features_in_].copy()
        self.intercept_ = W[:, -1].copy() if self.fit_intercept else np.zeros(len(W))
        self.n_iter_ = fit.n_iter
        self.history_ = fit.history

    def _scores(self, graphs: Graphs) -> tuple[FloatArray, FloatArray]:
        nodes = self.coef_ @ graphs.nodes.T + self.intercept_[:, None]
        return nodes, graphs.pairs @ self.edge_coef_


class _Linear:
    """w -> the sum of the risks over the graphs, for scores that are linear in w."""

    def __init__(self, graphs: Graphs, risk: FieldRisk, intercept: bool) -> None:
        nodes = graphs.nodes
        self._nodes = np.column_stack([nodes, np.ones(len(nodes))]) if intercept else nodes
        self._pairs, self._risk, self._n = graphs.pairs, risk, len(graphs)
        self._kinds = len(risk.offsets) - 2
        self.first_edge = self._kinds * self._nodes.shape[1]
        self.dimension = self.first_edge + self._pairs.shape[1]

    def parts(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights of the nodes, (K, d), and of the edges, (k,)."""
        return w[: self.first_edge].reshape(self._kinds, -1), w[self.first_edge :].copy()

    def scores(self, w: FloatArray) -> FloatArray:
        """Flat, as the risk takes them."""
        W, v = self.parts(w)
        return np.concatenate([(W @ self._nodes.T).ravel(), self._pairs @ v])

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """The sum of the risks, and a subgradient."""
        value, slopes = self._risk(self.scores(w))
        split = int(self._risk.offsets[-2])
        of_nodes = slopes[:split].reshape(self._kinds, -1) @ self._nodes
        of_edges = slopes[split:] @ self._pairs
        return self._n * value, self._n * np.concatenate([of_nodes.ravel(), of_edges])
