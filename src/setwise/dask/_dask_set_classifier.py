"""A linear classifier of sets whose rows lie on many machines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from distributed import Client
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from setwise._foundation._arguments import FloatArray, as_count, as_flag, as_number
from setwise._foundation._clock import Deadline
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._progress import Progress, check_display, progress_callback
from setwise._foundation._threads import one_thread
from setwise.dask._estimator import DaskEstimator, Phases
from setwise.dask._partitions import lazily
from setwise.dask._set_problem import (
    WHOLE,
    DaskSetProblem,
    PlacedSample,
    encoding_of,
    gather,
    gathered_sets,
    pose,
)
from setwise.dask._set_shards import Reading, SetRows, counted_score, scores_of_rows
from setwise.estimators._sets._certificates import warn_of_no_positive
from setwise.estimators._sets._label_encoding import Encoding
from setwise.estimators._sets._set_classifier import SetClassifier
from setwise.estimators._sets._surrogate_choice import first_surrogate, own_loss
from setwise.learning import one_slack
from setwise.losses import Loss
from setwise.losses._scoring._layout import Sets
from setwise.losses._scoring._score import worst_losses
from setwise.surrogates import Surrogate


class DaskSetClassifier(DaskEstimator, SetClassifier):
    r"""``SetClassifier`` on a dask cluster, where each chunk of rows stays on its worker.

    The objective is that of ``SetClassifier``. It is minimised by one-slack cutting planes. Each
    round sends the weights to the workers and gets one vector back, summed along a fixed tree.
    Therefore the model depends on the chunks and not on the workers, to the last bit, and workers
    may die, join or be restarted during the fit (``DaskExecutor``).

    The losses of rows and groups are computed within a chunk; a group that lies in two chunks
    raises an error. The loss of a set over the whole sample (``sets`` "sample", "columns" or
    "cells") is not a sum over chunks: the client collects all scores, computes the loss exactly
    and sends the slopes back.

    Parameters
    ----------
    loss, surrogate, C, tol, max_iter, time_limit, fit_intercept, sets, class_weight, warm_start
        See ``SetClassifier``.
    planes : int, default=1
        The largest number of planes per round. The subgradients of the chunks are added up to at
        most ``planes`` partial sums, which are kept and recombined in later rounds. A larger
        number takes fewer rounds and more communication per round. Different numbers give
        different models, each within ``tol`` of the minimum.
    client : distributed.Client, default=None
        The default is the client that was created last in this process.
    verbose : bool, default=False
        Show the phases and a progress bar on the client.

    Attributes
    ----------
    client_ : distributed.Client
    coef_, intercept_, classes_, gap_, certified_, n_iter_, interrupted_, history_
        See ``SetClassifier``.
    learner_ : str
        The name of the learner, always "one_slack".
    n_features_in_ : int

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from setwise.dask import DaskSetClassifier
    >>> X, Y = make_multilabel_classification(random_state=0)
    >>> X, Y = da.from_array(X, chunks=(40, -1)), da.from_array(Y, chunks=(40, -1))
    >>> with Client(n_workers=1, processes=False, dashboard_address=":0") as client:
    ...     model = DaskSetClassifier("jaccard", client=client).fit(X, Y)
    ...     model.gap_ <= 1e-3, model.predict(X).chunks
    (True, ((40, 40, 20), (5,)))
    >>> type(model.to_local()).__name__
    'SetClassifier'
    """

    _local = SetClassifier
    calibrate = None
    n_jobs = None

    @hints_at_names
    def __init__(
        self,
        loss: Loss | str = "jaccard",
        surrogate: str | Surrogate = "auto",
        C: float = 1.0,
        *,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        time_limit: float | None = None,
        fit_intercept: bool = True,
        sets: Sets = "auto",
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        planes: int = 1,
        client: Client | None = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.surrogate = surrogate
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.fit_intercept = fit_intercept
        self.sets = sets
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.planes = planes
        self.client = client
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        groups: Any = None,
        sample_weight: Any = None,
        callback: Callable[[Progress], object] | None = None,
    ) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : dask array or DataFrame of shape (n, d)
            Chunks may be uneven, empty and of unknown size. Blocks of CSR matrices stay sparse.
        y : dask array of shape (n, p) or (n,), DataFrame or Series
        groups : dask array or Series of shape (n,), optional
            The set of each sample. Each group must lie in one chunk.
        sample_weight : dask array or Series of shape (n,), optional
            Weight 2 is equivalent to a repeated sample, weight 0 to a removed one.
        callback : callable, optional
            See ``SetClassifier``. It is called on the client.

        Returns
        -------
        self
        """
        first_surrogate(self.surrogate, self.loss)
        planes = as_count(self.planes, "planes", least=1)
        C = as_number(self.C, "C", positive=True)
        as_flag(self.fit_intercept, "fit_intercept")
        check_display(self.verbose, callback)
        deadline, phases = Deadline.of(self.time_limit, armed=False), Phases(self.verbose)
        before = self._last_weights() if as_flag(self.warm_start, "warm_start") else None
        executor = self._executor()
        phases.begin("reading the rows")
        sample = gather(executor, X, y=y, groups=groups, sample_weight=sample_weight)
        phases.begin(f"posing the problem of {sum(sample.lengths)} rows")
        encoding = encoding_of(sample)
        problem = pose(self, executor, sample, encoding, groups, planes)
        self._remember(sample, encoding)
        init = self._start(before, problem)
        phases.begin("searching the weights")
        with (
            one_thread(),  # the sums on the client are then reproducible
            progress_callback(self.verbose, self.tol, callback) as reporting,
        ):
            learn = partial(
                one_slack,
                problem.oracle,
                problem.shape[0] * problem.shape[1],
                C,
                tol=self.tol,
                max_iter=self.max_iter,
                init=init,
                callback=phases.around(reporting),
            )
            fit = deadline.run(partial(learn, time_limit=deadline.inherited))
        self.certified_ = problem.certified
        self._keep(fit)
        self.history_ = phases.whole(self.history_)
        self.threshold_, self._calibration = 0.0, None
        positive = encoding.classes[1]
        wanted = self._found and any(positive in part.labels for part in sample.seen)
        if wanted and not any(executor.map(_any_positive, sample.rows, self._weights)):
            zero = not (self.coef_.any() or self.intercept_.any())
            name = type(self).__name__
            warn_of_no_positive(name, problem.surrogate, self.gap_, zero=zero, rows=self._rows)
        return self

    def decision_function(self, X: Any) -> Any:
        """Return scores as a dask array (n, p) or (n,), positive for ``classes_[1]``."""
        return self._lazily(X, np.dtype(np.float64), labels=False)

    def predict(self, X: Any) -> Any:  # type: ignore[override]
        """Return the labels as a dask array, in the encoding of the ``y`` of ``fit``.

        Parameters
        ----------
        X : dask array or DataFrame of shape (n, d)

        Returns
        -------
        dask array of shape (n, p), or (n,)
        """
        check_is_fitted(self)
        return self._lazily(X, self.classes_.dtype, labels=True)

    def score(self, X: Any, y: Any, *, groups: Any = None, sample_weight: Any = None) -> float:
        """Return 1 - the mean over the sets of loss / (loss if all labels are wrong)."""
        check_is_fitted(self)
        executor, loss = self._executor(), own_loss(self.surrogate, self.loss)
        sample = gather(executor, X, y=y, groups=groups, sample_weight=sample_weight)
        kind = sample.kind(self.sets, groups)
        # For the loss that counts mistakes, the score is a mean over samples for any sets, as in
        # score_of_sets.
        separate = loss._traits.is_count and groups is None
        reading = Reading(self._encoding, self.sets, None, separate)
        if kind == "groups" and not separate:
            sample.check_groups()
        if kind not in WHOLE or separate:
            lost, weight = executor.sums(counted_score, sample.rows, reading, loss, self._weights)[
                0
            ]
            return float(1.0 - lost / weight)
        scores = np.concatenate(executor.map(scores_of_rows, sample.rows, self._weights, True))
        sets = gathered_sets(executor, sample, reading, loss)
        if sets.multiplicity is not None:
            loss = loss._with_multiplicity(sets.multiplicity)
        found = (scores if self._rows else scores[:, 0]) > 0
        losses = loss(sets.positive, sets.gather(found), offsets=sets.ragged_offsets)
        worst = worst_losses(loss, sets)
        shares = np.divide(losses, worst, out=np.zeros(sets.n_sets), where=worst > 0)
        return 1.0 - float(np.average(shares, weights=sets.weights))

    @property
    def _weights(self) -> FloatArray:
        """The weights of the scores of ``classes_[1]``, with the intercept in the last column."""
        return np.column_stack([self.coef_, self.intercept_])

    def _remember(self, sample: PlacedSample, encoding: Encoding) -> None:
        one = sample.one
        self._rows = bool(one.n_outputs)
        self.classes_ = encoding.classes
        self.n_features_in_ = one.width
        if one.names is not None:
            self.feature_names_in_ = np.array(one.names, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _start(self, before: FloatArray | None, problem: DaskSetProblem) -> FloatArray | None:
        if before is not None and before.shape != problem.shape:
            raise ValueError(
                "warm_start must be False when the last fit had other labels or features, got "
                f"True and weights of shape {before.shape} in the place of {problem.shape}"
            )
        return None if before is None else before.reshape(-1)

    def _lazily(self, X: Any, dtype: Any, *, labels: bool) -> Any:
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        answer = _Answer(
            self._weights,
            self._rows,
            self._encoding if labels else None,
            None if names is None else names.tolist(),
        )
        return lazily(X, answer, columns=len(self.coef_) if self._rows else None, dtype=dtype)


@dataclass(frozen=True, eq=False)
class _Answer:
    """A function from a chunk of rows, which may be empty, to scores or labels."""

    W: FloatArray
    rows: bool
    encoding: Encoding | None
    names: list[str] | None

    def __call__(self, X: Any) -> NDArray[Any]:
        if self.names is not None and hasattr(X, "columns") and list(X.columns) != self.names:
            raise ValueError(f"X must have the columns of fit, {self.names}, got {list(X.columns)}")
        X = check_array(
            X, accept_sparse="csr", dtype=np.float64, ensure_min_samples=0, input_name="X"
        )
        if X.shape[1] != self.W.shape[1] - 1:
            raise ValueError(f"X must have {self.W.shape[1] - 1} features, got {X.shape[1]}")
        scores = scores_of_rows(SetRows(X, X, X, None, None), self.W, True)
        scores = scores if self.rows else scores[:, 0]
        if self.encoding is None:
            return scores
        labels: NDArray[Any] = self.encoding.decode(scores > 0)
        return labels


def _any_positive(rows: SetRows, W: FloatArray) -> bool:
    """Return whether any label is predicted positive."""
    return bool((scores_of_rows(rows, W, True) > 0).any())
