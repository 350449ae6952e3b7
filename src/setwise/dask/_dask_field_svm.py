"""A structured support vector machine for fields whose graphs lie on many machines."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self
from uuid import uuid4

import numpy as np
from dask.bag import Bag
from dask.delayed import Delayed, delayed
from distributed import Client
from sklearn.utils.validation import check_is_fitted

from setwise._foundation._arguments import as_count, as_flag, as_number
from setwise._foundation._clock import Deadline
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._progress import Progress, check_display, progress_callback
from setwise._foundation._threads import one_thread
from setwise.dask._estimator import DaskEstimator, Phases
from setwise.dask._field_shards import (
    DaskFieldOracle,
    FieldPart,
    GraphRows,
    GraphsSummary,
    rows_of_graphs,
    summarize_graphs,
)
from setwise.estimators._fields._field_rounds import FieldRounds
from setwise.estimators._fields._field_svm import FieldSVM


class DaskFieldSVM(DaskEstimator, FieldSVM):
    """``FieldSVM`` on a dask cluster, where each partition of graphs stays on its worker.

    The objective, the cutting planes and the certificate are those of ``FieldSVM``. Each round
    sends the weights to the workers, labels all graphs there and returns one vector, summed along
    a fixed tree. Every labelling is computed without a warm start. Therefore the answer of a
    worker depends on the weights alone, and the model depends on the partitions alone, to the last
    bit (``DaskExecutor``).

    Parameters
    ----------
    C, truncation, label_costs, tol, max_iter, time_limit, fit_intercept
        See ``FieldSVM``. Scores of a classifier and biases for a measure, which ``FieldSVM``
        learns in folds, are not available here.
    planes : int, default=1
        The largest number of planes per round; see ``DaskSetClassifier``.
    client : distributed.Client, default=None
        The default is the client that was created last in this process.
    verbose : bool, default=False
        Show the phases and a progress bar on the client.

    Attributes
    ----------
    client_ : distributed.Client
    coef_, intercept_, edge_coef_, region_coef_, label_costs_, classes_
        See ``FieldSVM``.
    gap_, certified_, n_iter_, interrupted_, history_
        See ``FieldSVM``.

    Examples
    --------
    >>> import numpy as np
    >>> from dask import delayed
    >>> from distributed import Client
    >>> from setwise.dask import DaskFieldSVM
    >>> chain = np.array([[0, 1], [1, 2], [2, 3]])
    >>> x = (np.array([[1.0], [2.0], [-0.5], [1.0]]), chain, np.ones((3, 1)))
    >>> z = (np.array([[-1.0], [-2.0], [-1.5], [-1.0]]), chain, np.ones((3, 1)))
    >>> X = [delayed([x]), delayed([z])]
    >>> Y = [delayed([[1, 1, 1, 1]]), delayed([[0, 0, 0, 0]])]
    >>> with Client(n_workers=1, processes=False, dashboard_address=":0") as client:
    ...     model = DaskFieldSVM(C=10.0, client=client).fit(X, Y)
    >>> model.to_local().predict([x])[0].tolist()
    [1, 1, 1, 1]
    """

    _local = FieldSVM
    scores = measure = cv = n_jobs = None
    passthrough = False
    decision = "bias"

    @hints_at_names
    def __init__(
        self,
        C: float = 1.0,
        *,
        truncation: float = 0.5,
        label_costs: bool = False,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        time_limit: float | None = None,
        fit_intercept: bool = True,
        planes: int = 1,
        client: Client | None = None,
        verbose: bool = False,
    ) -> None:
        self.C = C
        self.truncation = truncation
        self.label_costs = label_costs
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.fit_intercept = fit_intercept
        self.planes = planes
        self.client = client
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
        X : dask Bag of graphs, or list of Delayed objects, each a list of graphs
            A graph is a tuple (node_features, edges, edge_features[, regions]). Partitions
            may be uneven and empty.
        Y : dask Bag of arrays of shape (N,), or list of Delayed objects
            Labels, in the same partitions as ``X``.
        node_weights : dask Bag of arrays of shape (N,), or list of Delayed objects, optional
            The cost of a wrong label at each node, by default 1.
        callback : callable, optional
            See ``FieldSVM``. It is called on the client.

        Returns
        -------
        self
        """
        C = as_number(self.C, "C", positive=True)
        planes = as_count(self.planes, "planes", least=1)
        truncation = as_number(self.truncation, "truncation", positive=True)
        if truncation > 0.5:
            raise ValueError(f"truncation must be at most 0.5, got {truncation:g}")
        intercept = as_flag(self.fit_intercept, "fit_intercept")
        priced = as_flag(self.label_costs, "label_costs")
        check_display(self.verbose, callback)
        deadline, phases = Deadline.of(self.time_limit, armed=False), Phases(self.verbose)
        executor = self._executor()
        phases.begin("reading the graphs")
        rows = executor.place(_partitions(X=X, Y=Y, node_weights=node_weights))
        seen = executor.map(summarize_graphs, rows)
        self._remember(seen)
        phases.begin("searching the weights")
        n_labels, (d, k, layers) = len(self.classes_), self._widths
        widths = [k, *([layers] if layers else []), *([n_labels] if priced else [])]
        ask = partial(
            FieldPart,
            uuid4().hex,
            classes=self.classes_,
            widths=self._widths,
            truncation=truncation,
            priced=priced,
            intercept=intercept,
        )
        oracle = DaskFieldOracle(
            executor,
            rows,
            lambda question, dimension: ask(question=question, dimension=dimension),
            1 if n_labels == 2 else n_labels,
            d + intercept,
            widths,
            C,
            sum(part.wrong for part in seen),
            planes,
        )
        with (
            one_thread(),
            progress_callback(self.verbose, self.tol, callback) as reporting,
        ):
            rounds = FieldRounds(
                oracle, self.tol, self.max_iter, phases.around(reporting), deadline
            )
            fit = deadline.run(self._solve, oracle, rounds)
        self.bias_, self.temperature_, self.score_estimator_ = np.zeros(n_labels), 1.0, None
        self._store(oracle, rounds, fit)
        self.history_ = phases.whole(self.history_)
        return self

    def predict(self, X: Any) -> Any:
        """Return labellings of least energy, as a Bag for a Bag, or as a list of Delayed lists."""
        check_is_fitted(self)
        local = self._to_send()
        if isinstance(X, Bag):
            return X.map_partitions(_predicted, local)
        call = delayed(_predicted, pure=False)
        return [call(part, local) for part in _as_delayed(X, "X")]

    def score(self, X: Any, Y: Any, node_weights: Any = None) -> float:
        """Return the weighted share of the nodes whose label is right."""
        check_is_fitted(self)
        executor = self._executor()
        rows = executor.place(_partitions(X=X, Y=Y, node_weights=node_weights))
        right, whole = executor.sums(_right, rows, self._to_send())[0]
        if whole == 0:
            raise ValueError("node_weights must not be zero for every node, got only zeros")
        return float(right / whole)

    def _remember(self, seen: list[GraphsSummary]) -> None:
        """Store the classes and the numbers of features found in all partitions."""
        known = [part for part in seen if part.widths is not None]
        if not known:
            raise ValueError("X must hold at least one graph, got none")
        values = np.concatenate([part.labels for part in known])
        if values.dtype.kind == "f" and not np.array_equal(values, np.round(values)):
            raise ValueError("Y must hold labels, got numbers that are not whole")
        self.classes_ = np.unique(values)
        if len(self.classes_) < 2:
            raise ValueError(f"Y must hold at least two labels, got {self.classes_.tolist()}")
        # A partition without edges reports 0 edge features.
        widths = np.array([part.widths for part in known])
        most = widths.max(axis=0)
        if ((widths != most) & ~((widths == 0) & [False, True, False])).any():
            raise ValueError(
                "X must have graphs of the same numbers of features and layers of regions in all "
                f"partitions, got {sorted(set(map(tuple, widths.tolist())))}"
            )
        self._widths = int(most[0]), int(most[1]), int(most[2])
        self.n_features_in_, self.n_edge_features_in_, self.n_region_layers_in_ = self._widths


def _partitions(**collections: Any) -> list[Delayed]:
    """Return a task per partition that reads its graphs, labels and weights."""
    parts = {
        name: _as_delayed(values, name)
        for name, values in collections.items()
        if values is not None
    }
    counts = {name: len(own) for name, own in parts.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(f"X and Y must have the same partitions, got {counts}: repartition one")
    read = delayed(rows_of_graphs, pure=False)
    return [read(**dict(zip(parts, own, strict=True))) for own in zip(*parts.values(), strict=True)]


def _as_delayed(values: Any, name: str) -> list[Delayed]:
    if isinstance(values, Bag):
        return list(values.to_delayed())
    if isinstance(values, list | tuple) and all(isinstance(part, Delayed) for part in values):
        return list(values)
    raise TypeError(
        f"{name} must be a dask Bag, or a list of Delayed objects, each a list for some graphs, "
        f"got {type(values).__name__}"
    )


def _predicted(part: Any, model: FieldSVM) -> list[Any]:
    graphs = list(part)
    return model.predict(graphs) if graphs else []


def _right(rows: GraphRows, model: FieldSVM) -> tuple[float, float]:
    """Return the total weight of the nodes whose label is right, and of all nodes."""
    if not rows.X:
        return 0.0, 0.0
    found = np.concatenate(model.predict(rows.X))
    _, labels, weights = rows.read()
    return float(weights @ (found == labels)), float(weights.sum())
