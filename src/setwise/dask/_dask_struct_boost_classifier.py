"""Boosted stumps for classification, with the features on many machines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from distributed import Client
from sklearn.utils.validation import check_is_fitted

from setwise._foundation._arguments import as_choice, require_some, without_unit
from setwise._foundation._clock import Deadline
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._progress import check_display
from setwise.dask._column_blocks import ColumnTable, distinct
from setwise.dask._estimator import DaskBoosted, Phases, scores_of_table
from setwise.estimators._boosting._boosted import columns_a_round
from setwise.estimators._boosting._class_risk import as_class_weights, class_merit
from setwise.estimators._boosting._held_out import Examples
from setwise.estimators._boosting._struct_boost_classifier import StructBoostClassifier
from setwise.estimators._boosting._taxonomy import label_code
from setwise.estimators._checked import check_targets
from setwise.learning import BoostOptions
from setwise.learning._boosting._boost_fit import BoostProgress
from setwise.learning._boosting._options import read_options

TAKEN = ("columns", "columns_per_round", "categorical_features", "monotonic_cst")


class DaskStructBoostClassifier(DaskBoosted, StructBoostClassifier):  # type: ignore[misc]
    """``StructBoostClassifier`` with decision stumps on a dask cluster.

    The table is cut into blocks of columns once, and each block lies sorted on a worker. In each
    round the workers get one weight per score, search for the best stumps exactly and return them,
    with one byte per row. Labels, scores and the linear program are on the client. The model is
    bitwise that of ``StructBoostClassifier`` with the same parameters, for any chunks and any
    workers, even if workers die during the fit.

    Parameters
    ----------
    n_estimators, taxonomy, class_weight, tol, time_limit
        See ``StructBoostClassifier``.
    C : float or "auto", default="auto"
        "auto" is 50 times the smallest C for which a weak learner lowers the objective. No rows are
        held out here.
    options : BoostOptions, default=None
        Settings that few fits change: ``columns``, ``columns_per_round``, ``categorical_features``
        (the columns whose numbers are categories, as a mask or indices) and ``monotonic_cst``.
    client : distributed.Client, default=None
        The default is the client that was created last in this process.
    verbose : bool, default=False
        Show the phases and a progress bar on the client.

    Attributes
    ----------
    client_ : distributed.Client
    classes_, C_, estimators_, estimator_weights_, estimator_segments_, code_, cost_, stages_
        See ``StructBoostClassifier``.
    gap_, certified_, n_iter_, interrupted_, history_, feature_importances_, n_features_in_
        See ``StructBoostClassifier``.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_iris
    >>> from setwise.dask import DaskStructBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = da.from_array(X, chunks=(60, -1)), da.from_array(y, chunks=60)
    >>> with Client(n_workers=1, processes=False, dashboard_address=":0") as client:
    ...     model = DaskStructBoostClassifier(C=10.0, client=client).fit(X, y)
    >>> model.gap_ <= 1e-3, model.certified_, len(model.estimators_) > 1
    (True, True, True)
    """

    _local = StructBoostClassifier
    calibrate = None
    surrogate = _surrogate = "hinge"

    @hints_at_names
    def __init__(
        self,
        n_estimators: int = 200,
        C: float | str = "auto",
        *,
        taxonomy: Any = None,
        class_weight: dict[Any, float] | str | None = None,
        tol: float = 1e-3,
        options: BoostOptions | None = None,
        time_limit: float | None = None,
        client: Client | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_estimators = n_estimators
        self.C = C
        self.taxonomy = taxonomy
        self.class_weight = class_weight
        self.tol = tol
        self.options = options
        self.time_limit = time_limit
        self.client = client
        self.verbose = verbose

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        callback: Callable[[BoostProgress], object] | None = None,
    ) -> Self:
        """Fit the weak learners and their weights.

        Parameters
        ----------
        X : dask array or DataFrame of shape (n, d)
            Chunks may be uneven, empty and of unknown size, by rows or by columns. Blocks of CSR
            matrices stay sparse. NaN stands for a missing value.
        y : dask array or Series of shape (n,)
        sample_weight : dask array or Series of shape (n,), optional
            Weight 2 is equivalent to a repeated sample, weight 0 to a removed one.

        callback : callable, optional
            See ``StructBoostClassifier``. It is called on the client.

        Returns
        -------
        self
        """
        settings = read_options(self.options, type(self).__name__, TAKEN)
        shared = as_choice(settings.columns, "columns", ("shared", "class")) == "shared"
        columns_a_round(settings.columns_per_round, 0)
        check_display(self.verbose, callback)
        deadline, phases = Deadline.of(self.time_limit, armed=False), Phases(self.verbose)
        phases.begin("reading the rows")
        table = ColumnTable(self._executor(), X, y=y, sample_weight=sample_weight)
        given = table.seen
        check_targets(given.y)
        weight = without_unit(given.weight)
        require_some(weight)
        self.classes_ = np.unique(given.y[weight > 0])
        if len(self.classes_) < 2:
            raise ValueError(
                "Classifier can't train when only one class is present: y must hold two classes, "
                f"got {self.classes_.tolist()}"
            )
        labels = np.searchsorted(self.classes_, given.y).astype(np.int64)
        weight = weight * as_class_weights(self.class_weight, self.classes_, labels, weight)
        kept, weight = distinct(given, labels, without_unit(weight))
        coding = label_code(self.taxonomy, self.classes_, augmented=False)
        self.code_, self.cost_, self._augmented = coding.code, coding.cost, False
        n_segments = self.code_.shape[1]
        if settings.monotonic_cst is not None and n_segments > 1:
            raise ValueError(
                "monotonic_cst must be None for more than one score: monotonic constraints are not "
                "supported for multiclass classification, taxonomies or augmented labels"
            )
        self._width = columns_a_round(settings.columns_per_round, n_segments * len(kept))
        self._boosted(
            table,
            kept,
            self._risk(Examples(None, labels[kept], weight)),
            self._width,
            deadline,
            phases,
            settings,
            callback,
            columns="shared" if shared and n_segments > 1 else "class",
            columns_per_round=self._width,
        )
        return self

    def decision_function(self, X: Any) -> Any:
        """Return the scores of the classes as a dask array (n, k), or (n,) for two classes."""
        check_is_fitted(self)
        k = len(self.classes_)
        return self._lazily(X, "decision_function", None if k == 2 else k, np.float64)

    def predict(self, X: Any) -> Any:
        """Return the class of the largest score of each row, as a dask array (n,)."""
        check_is_fitted(self)
        return self._lazily(X, "predict", None, self.classes_.dtype)

    def score(self, X: Any, y: Any, *, sample_weight: Any = None) -> float:
        """Return the weighted accuracy.

        With a taxonomy, the score is 1 - the weighted mean of ``cost_`` / ``cost_.max()``.
        """
        check_is_fitted(self)
        executor = self._executor()
        table = ColumnTable(executor, X, y=y, sample_weight=sample_weight)
        found = executor.map(scores_of_table, table.rows, self._to_send())
        scores = self._by_class(np.concatenate(found, axis=1))
        places = np.searchsorted(self.classes_, table.seen.y).clip(max=len(self.classes_) - 1)
        if unknown := set(table.seen.y[self.classes_[places] != table.seen.y].tolist()):
            raise ValueError(
                f"y must hold the classes of fit, {self.classes_.tolist()}, got {unknown}"
            )
        merit = class_merit(None, self.classes_, places, table.seen.weight, self.cost_)
        return merit(scores)
