"""Base classes of the estimators on dask, with a client, a local copy, phases, and boosting."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Self, TypeVar

import numpy as np
from distributed import Client
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from setwise._foundation._arguments import IntArray, as_number
from setwise._foundation._clock import Deadline
from setwise._foundation._progress import ForwardingCallback, Progress, is_observed, stops
from setwise.dask._column_blocks import ColumnTable, FeatureRows
from setwise.dask._executor import DaskExecutor, as_client
from setwise.dask._partitions import lazily
from setwise.estimators._boosting._path_of_c import USUAL, least_c
from setwise.learning import BoostOptions
from setwise.learning._boosting._boost_fit import BoostFit, BoostProgress
from setwise.learning._boosting._problem import Risk
from setwise.learning._history import History
from setwise.learning._weak_learners._traits import as_categorical, as_trends

P = TypeVar("P", bound=Progress)
H = TypeVar("H", bound=History)
_LOG = logging.getLogger("setwise")


class DaskEstimator:
    """An estimator with a ``client``, which clones share and pickles leave out.

    ``_local`` is the class of the local estimator that ``to_local`` makes.
    """

    client: Client | None
    _local: type[Any]

    @property
    def client_(self) -> Client:
        """The client in use: ``client``, or by default the client that was created last."""
        return as_client(self.client)

    def _executor(self) -> Any:
        return DaskExecutor(self.client)

    def to_local(self) -> Any:
        """Return the model as an estimator that needs no cluster, with the same attributes.

        Returns
        -------
        estimator
        """
        known = self._local._get_param_names()
        own = {name: value for name, value in self._params().items() if name in known}
        model = self._local(**own)
        for name, value in vars(self).items():
            if name not in self._params() and name != "client":
                setattr(model, name, value)
        return model

    def _to_send(self) -> Any:
        """Return the local model that is sent to workers, with ``verbose`` off."""
        return self.to_local().set_params(verbose=False)

    def _params(self) -> dict[str, Any]:
        params: dict[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        return params

    def __sklearn_clone__(self) -> Self:
        params = self._params()
        client = params.pop("client")
        make: Any = type(self)
        copied: Self = make(
            client=client, **{name: clone(value, safe=False) for name, value in params.items()}
        )
        return copied

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {**state, "client": None}


class Phases:
    """A clock for the phases of a fit before its first round.

    Reading the rows of a large sample can take as long as many rounds. Therefore each phase
    writes a line to stderr if ``verbose``, and the seconds of rounds count from the start of the
    fit.
    """

    def __init__(self, verbose: bool) -> None:
        self._start, self._before, self._verbose = perf_counter(), 0.0, verbose

    def begin(self, phase: str) -> None:
        """Report that a phase begins."""
        line = f"{perf_counter() - self._start:.1f} s: {phase}"
        _LOG.debug("%s", line)
        if self._verbose:
            sys.stderr.write(line + "\n")

    def around(self, callback: Callable[[P], object] | None) -> Callable[[P], object] | None:
        """Return a callback for the search that reports the seconds since the start of the fit."""
        self._before = perf_counter() - self._start
        if not is_observed(callback):
            return None
        before = self._before

        def report(progress: P) -> bool:
            return stops(callback, replace(progress, seconds=progress.seconds + before))

        return ForwardingCallback(report)

    def whole(self, history: H) -> H:
        """Return the history of the search with seconds since the start of the fit."""
        return replace(history, seconds=history.seconds + self._before)


class DaskBoosted(DaskEstimator):
    """A boosted estimator whose features lie on workers, by columns, and its scores on the client.

    The weak learners are decision stumps, because the search for any other weak learner needs all
    columns at once. Scores are kept on the client.
    """

    C: Any
    options: BoostOptions | None
    client: Client | None
    n_features_in_: int
    estimator = "stump"
    early_stopping = False
    random_state = n_jobs = None

    def _columns_known(self, table: ColumnTable, options: BoostOptions) -> tuple[Any, Any]:
        """Store the names and number of features. Return the categorical mask and the trends."""
        seen = table.seen
        self.n_features_in_ = seen.width
        if seen.names is not None:
            self.feature_names_in_ = np.array(seen.names, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        columns = options.categorical_features
        if isinstance(columns, str):
            if columns != "from_dtype":
                raise ValueError(
                    "categorical_features must be 'from_dtype', None, a mask or indices on dask, "
                    f"got {columns!r}"
                )
            columns = None  # all columns are numeric here
        mask = as_categorical(columns, seen.width)
        self._categorical = mask
        self.categories_: list[Any] = []
        return mask, as_trends(options.monotonic_cst, mask)

    def _boosted(
        self,
        table: ColumnTable,
        kept: IntArray | None,
        risk: Risk,
        width: int,
        deadline: Deadline,
        phases: Phases,
        settings: BoostOptions,
        callback: Callable[[BoostProgress], object] | None,
        **options: Any,
    ) -> BoostFit:
        """Boost over the ``kept`` rows, store the result in the estimator and return it."""
        if isinstance(self.C, str):
            if self.C != "auto":
                raise ValueError(f"C must be a number or 'auto', got {self.C!r}")
        else:
            as_number(self.C, "C", positive=True)
        phases.begin(f"sorting the columns of {len(table.seen.y)} rows, and boosting")
        search = table.searched(kept, width, *self._columns_known(table, settings))
        self.C_ = USUAL * least_c(risk, search) if isinstance(self.C, str) else float(self.C)
        self.C_scores_: dict[float, float] = {}
        fit: BoostFit = self._boost(  # type: ignore[attr-defined]
            risk, search, deadline, callback, C=self.C_, watch=phases, **options
        )
        self.best_iteration_ = fit.n_iter
        self.evals_result_: dict[str, Any] = {}
        self._store(  # type: ignore[attr-defined]
            fit, len(risk.offsets) - 1, shared=options.get("columns") == "shared"
        )
        self.history_ = phases.whole(fit.history)
        return fit

    def _lazily(self, X: Any, method: str, columns: int | None, dtype: Any) -> Any:
        check_is_fitted(self)
        predict = ChunkPrediction(self._to_send(), method, columns)
        return lazily(X, predict, columns=columns, dtype=dtype)


@dataclass(frozen=True, eq=False)
class ChunkPrediction:
    """A call of a method of a local model for a chunk of rows, which may be empty."""

    model: Any
    method: str
    columns: int | None

    def __call__(self, X: Any) -> NDArray[Any]:
        if X.shape[0] == 0:
            return np.zeros((0,) if self.columns is None else (0, self.columns))
        if not hasattr(X, "columns"):
            X = check_array(X, accept_sparse="csr", ensure_all_finite="allow-nan", input_name="X")
        found: NDArray[Any] = getattr(self.model, self.method)(X)
        return found


def scores_of_table(rows: FeatureRows, model: Any) -> NDArray[Any]:
    """Return the scores (n_segments, n) of the rows. Names of columns are not checked."""
    found: NDArray[Any] = model._segment_scores(rows.X)
    return found
