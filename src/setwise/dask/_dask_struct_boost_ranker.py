"""Boosted stumps for ranking, with the features on many machines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from distributed import Client
from sklearn.utils.validation import check_is_fitted

from setwise._foundation._arguments import as_choice, as_flag, without_unit
from setwise._foundation._clock import Deadline
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._progress import check_display
from setwise.dask._column_blocks import ColumnTable
from setwise.dask._estimator import DaskBoosted, Phases, scores_of_table
from setwise.estimators._boosting._held_out import Examples, known_places
from setwise.estimators._boosting._rank_risk import as_groups, cut_points
from setwise.estimators._boosting._struct_boost_ranker import LOSSES, StructBoostRanker
from setwise.learning import BoostOptions
from setwise.learning._boosting._boost_fit import BoostProgress
from setwise.learning._boosting._options import read_options


class DaskStructBoostRanker(DaskBoosted, StructBoostRanker):  # type: ignore[misc]
    """``StructBoostRanker`` with decision stumps on a dask cluster.

    As for ``DaskStructBoostClassifier``, the features lie on the workers, by columns, and the
    scores on the client. The risk of a ranking is not a sum over chunks, since every pair of rows
    counts. Because all scores are on the client, the risk and the area under the ROC curve are
    exact, and a group may lie in several chunks. The model is bitwise that of
    ``StructBoostRanker`` with the same parameters.

    Parameters
    ----------
    n_estimators, loss, tol, ordinal, time_limit
        See ``StructBoostRanker``.
    C : float or "auto", default="auto"
        "auto" is 50 times the smallest C for which a weak learner lowers the objective. No rows are
        held out here.
    options : BoostOptions, default=None
        Settings that few fits change: ``categorical_features`` (the columns whose numbers are
        categories, as a mask or indices) and ``monotonic_cst``.
    client : distributed.Client, default=None
        The default is the client that was created last in this process.
    verbose : bool, default=False
        Show the phases and a progress bar on the client.

    Attributes
    ----------
    client_ : distributed.Client
    classes_, C_, estimators_, estimator_weights_, cut_points_, stages_, feature_importances_
        See ``StructBoostRanker``.
    gap_, certified_, n_iter_, interrupted_, history_, n_features_in_
        See ``StructBoostRanker``.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import make_classification
    >>> from setwise.dask import DaskStructBoostRanker
    >>> X, y = make_classification(weights=[0.9], random_state=0)
    >>> X, y = da.from_array(X, chunks=(40, -1)), da.from_array(y, chunks=40)
    >>> with Client(n_workers=1, processes=False, dashboard_address=":0") as client:
    ...     model = DaskStructBoostRanker(C=10.0, client=client).fit(X, y)
    ...     model.score(X, y) > 0.95
    True
    """

    _local = StructBoostRanker
    k = None

    @hints_at_names
    def __init__(
        self,
        n_estimators: int = 200,
        C: float | str = "auto",
        *,
        loss: str = "auc",
        tol: float = 1e-3,
        ordinal: bool = False,
        options: BoostOptions | None = None,
        time_limit: float | None = None,
        client: Client | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_estimators = n_estimators
        self.C = C
        self.loss = loss
        self.tol = tol
        self.ordinal = ordinal
        self.options = options
        self.time_limit = time_limit
        self.client = client
        self.verbose = verbose

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        *,
        groups: Any = None,
        sample_weight: Any = None,
        callback: Callable[[BoostProgress], object] | None = None,
    ) -> Self:
        """Fit the weak learners and their weights.

        Parameters
        ----------
        X : dask array or DataFrame of shape (n, d)
            See ``DaskStructBoostClassifier``.
        y : dask array or Series of shape (n,)
        groups : dask array or Series of shape (n,), optional
            Only samples of the same group are compared.
        sample_weight : dask array or Series of shape (n,), optional
            See ``StructBoostRanker``.

        callback : callable, optional
            See ``StructBoostRanker``. It is called on the client.

        Returns
        -------
        self
        """
        settings = read_options(
            self.options, type(self).__name__, ("categorical_features", "monotonic_cst")
        )
        as_flag(self.ordinal, "ordinal")
        as_choice(self.loss, "loss", LOSSES)
        check_display(self.verbose, callback)
        deadline, phases = Deadline.of(self.time_limit, armed=False), Phases(self.verbose)
        phases.begin("reading the rows")
        table = ColumnTable(self._executor(), X, y=y, groups=groups, sample_weight=sample_weight)
        given = table.seen
        places = self._learn_levels(given.y)
        weight = without_unit(given.weight)
        examples = Examples(None, places, weight, as_groups(given.groups, len(places)))
        risk = self._risk(examples)
        fit = self._boosted(table, None, risk, 1, deadline, phases, settings, callback)
        self.cut_points_ = cut_points(fit.scores, places, weight, len(self.classes_))
        return self

    def decision_function(self, X: Any) -> Any:
        """Return scores as a dask array (n,), higher for higher ranks."""
        return self._lazily(X, "decision_function", None, np.float64)

    def predict(self, X: Any) -> Any:
        """Return the class or level of each row, as a dask array (n,)."""
        check_is_fitted(self)
        return self._lazily(X, "predict", None, self.classes_.dtype)

    def score(  # type: ignore[override]
        self, X: Any, y: Any, *, groups: Any = None, sample_weight: Any = None
    ) -> float:
        """Return 1 - the loss of all scores.

        Depending on ``loss``, this is the area under the ROC curve, or the mean over the queries of
        average precision or normalised discounted gain.
        """
        check_is_fitted(self)
        executor = self._executor()
        table = ColumnTable(executor, X, y=y, groups=groups, sample_weight=sample_weight)
        found = executor.map(scores_of_table, table.rows, self._to_send())
        places = known_places(table.seen.y, self.classes_)
        names = as_groups(table.seen.groups, len(places))
        examples = Examples(None, places, table.seen.weight, names)
        return self._risk(examples).merit(np.concatenate(found, axis=1)[0])
