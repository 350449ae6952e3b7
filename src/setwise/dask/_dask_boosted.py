"""What boosted estimators on dask share: a table in blocks of columns, and lazy answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from distributed import Client
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from setwise._foundation._arguments import IntArray, as_number
from setwise._foundation._deadline import Deadline
from setwise.dask._column_blocks import Table, TableRows
from setwise.dask._estimator import DaskEstimator
from setwise.dask._partitions import lazily
from setwise.estimators._boosting._price import USUAL, least_price
from setwise.learning import BoostFit, BoostProgress
from setwise.learning._boosting._problem import Risk
from setwise.learning._weak_learners._traits import as_categorical, as_trends


class DaskBoosted(DaskEstimator):
    """A boosted estimator whose features lie on workers, by columns; its scores on the client.

    Stumps alone: what other weak learners find depends on all columns at once.
    """

    C: Any
    categorical_features: Any
    monotonic_cst: Any
    callback: Callable[[BoostProgress], object] | None
    client: Client | None
    n_features_in_: int
    estimator = "stump"
    early_stopping = False
    random_state = n_jobs = n_folds = None
    validation_fraction, n_iter_no_change, slack = 0.1, 10, "one"

    def _columns_known(self, table: Table) -> tuple[Any, Any]:
        """Which columns are categories, which keep to a trend; remembers names and widths."""
        seen = table.seen
        self.n_features_in_ = seen.width
        if seen.names is not None:
            self.feature_names_in_ = np.array(seen.names, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if isinstance(self.categorical_features, str):
            raise ValueError(
                "categorical_features must be None, a mask or indices on dask, got "
                f"{self.categorical_features!r}"
            )
        mask = as_categorical(self.categorical_features, seen.width)
        self._categorical = mask
        self.categories_: list[Any] = []
        return mask, as_trends(self.monotonic_cst, mask)

    def _boosted(
        self,
        table: Table,
        kept: IntArray | None,
        risk: Risk,
        width: int,
        deadline: Deadline,
        **options: Any,
    ) -> BoostFit:
        """The fit, of the rows that are kept, stored."""
        if isinstance(self.C, str):
            if self.C != "auto":
                raise ValueError(f"C must be a number or 'auto', got {self.C!r}")
        else:
            as_number(self.C, "C", positive=True)
        search = table.searched(kept, width, *self._columns_known(table))
        self.C_ = USUAL * least_price(risk, search) if isinstance(self.C, str) else float(self.C)
        self.C_scores_: dict[float, float] = {}
        fit: BoostFit = self._boost(  # type: ignore[attr-defined]
            risk, search, deadline, C=self.C_, **options
        )
        self.best_iteration_ = fit.n_iter
        self.evals_result_: dict[str, Any] = {}
        self._store(  # type: ignore[attr-defined]
            fit, len(risk.offsets) - 1, shared=options.get("columns") == "shared"
        )
        return fit

    def _lazily(self, X: Any, method: str, columns: int | None, dtype: Any) -> Any:
        check_is_fitted(self)
        return lazily(X, Answered(self._to_send(), method, columns), columns=columns, dtype=dtype)


@dataclass(frozen=True, eq=False)
class Answered:
    """What a local model says of a chunk of rows, also of none."""

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


def scores_of_table(rows: TableRows, model: Any) -> NDArray[Any]:
    """Scores of the rows, in segments, (n_segments, n): without a check of names."""
    found: NDArray[Any] = model._segment_scores(rows.X)
    return found
