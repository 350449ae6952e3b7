"""Any scikit-learn classifier as a weak learner."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from setwise._foundation._arguments import (
    MOST_ENTRIES,
    FloatArray,
    as_count,
    as_generator,
    as_number,
)
from setwise._foundation._base_classes import Versioned
from setwise._foundation._imports import load
from setwise.learning._boosting._problem import Column
from setwise.learning._weak_learners._rows import (
    as_rows,
    as_segments,
    best_of_segments,
    check_sign,
)
from setwise.learning._weak_learners._stumps import Stump


@dataclass(frozen=True, eq=False)
class WeakClassifier(Versioned):
    """A fitted scikit-learn classifier of the labels -1 and +1, or its negation.

    Parameters
    ----------
    model : scikit-learn classifier
        Fitted to the labels -1 and +1.
    sign : {1, -1}

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> search = sw.learning.ClassifierSearch([[0.0], [1.0]], DecisionTreeClassifier(max_depth=1))
    >>> search(np.array([1.0, -1.0]))[0].learner.predict([[0.2], [0.7]]).tolist()
    [1.0, -1.0]
    """

    model: Any
    sign: int

    def __post_init__(self) -> None:
        if not hasattr(self.model, "predict"):
            raise TypeError(
                f"model must be a fitted classifier with predict, got {type(self.model).__name__}"
            )
        check_sign(self.sign)

    def predict(self, X: Any) -> FloatArray:
        """Return the responses, +1 or -1, (n,), on the rows of an array or a sparse matrix."""
        return self._respond(X if issparse(X) else as_rows(X, allow_nan=takes_nan(self.model)))

    def _respond(self, X: Any) -> FloatArray:
        return self.sign * np.asarray(self.model.predict(X), np.float64)

    def importances(self, n_features: int) -> FloatArray:
        """Return the importance of each feature, (n_features,), or zeros if unknown."""
        as_count(n_features, "n_features", most=MOST_ENTRIES)
        own = getattr(self.model, "feature_importances_", None)
        if own is None and hasattr(self.model, "coef_"):
            own = np.abs(self.model.coef_).ravel()
        if own is None or np.shape(own) != (n_features,) or not np.sum(own) > 0:
            return np.zeros(n_features)
        shares: FloatArray = np.asarray(own, np.float64) / np.sum(own)
        return shares


class ClassifierSearch:
    r"""A search that fits a classifier to the signs of the weights.

    The :math:`h` with values -1 and +1 that maximises :math:`\sum_i U_{ki} h(x_i)` has the least
    weighted error, with labels sign U and weights abs(U). A classifier is fitted for each segment
    k, in decreasing order of the sum of abs(U), which is an upper bound of the gain. Segments whose
    bound is below the gains found are skipped. The search is not exact. A classifier that is worse
    than chance is negated.

    Parameters
    ----------
    X : array or sparse matrix of shape (m, d)
        Finite. NaN stands for missing values if the classifier supports them.
    estimator : scikit-learn classifier
        It must support ``sample_weight``. The positive weights have mean 1. Convergence warnings
        are suppressed, because the linear program measures the quality of the answer.
    n_columns : int, default=1
        The number of columns to return, at most one per segment.
    drop : float, default=0.0
        This share of the non-zero weights, the smallest, is set to zero before the fit: 0.1 in
        Section 4.3 of the paper, against overfitting.
    rng : None, int or generator
        The source of ``random_state`` for estimators whose ``random_state`` is None.

    Attributes
    ----------
    exact : bool
        False.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from setwise.learning import ClassifierSearch
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> search = ClassifierSearch(X, DecisionTreeClassifier(max_depth=2, random_state=0))
    >>> search(np.array([-1.0, 1.2, 1.0, -1.0]))[0].response.tolist()
    [-1.0, 1.0, 1.0, -1.0]
    """

    exact = False

    def __init__(
        self,
        X: Any,
        estimator: Any,
        n_columns: int = 1,
        *,
        drop: float = 0.0,
        rng: object = None,
    ) -> None:
        if not (hasattr(estimator, "fit") and hasattr(estimator, "predict")):
            raise TypeError(
                "estimator must be a scikit-learn classifier with fit and predict, "
                f"got {type(estimator).__name__}"
            )
        self.X = as_rows(X, allow_nan=takes_nan(estimator))
        self.estimator = estimator
        self.n_columns = as_count(n_columns, "n_columns", least=1)
        self.drop = as_number(drop, "drop", nonnegative=True)
        if self.drop >= 1:
            raise ValueError(f"drop must be below 1, got {drop}")
        self._rng = as_generator(rng, "rng")
        # A CSR matrix, because each fit selects rows, which is slow for CSC matrices.
        self._by_row = self.X.tocsr() if hasattr(self.X, "tocsr") else self.X

    def __call__(self, weights: FloatArray) -> list[Column]:
        """Return the best learners found for weights of shape (n_segments m,), best first."""
        segments = as_segments(weights, self.X.shape[0])
        return best_of_segments(segments, self.n_columns, self._fit)

    def _fit(self, segment: int, weights: FloatArray) -> Column:
        kept = self._kept(np.abs(weights))
        labels = np.where(weights[kept] > 0, 1, -1)
        if len(kept) == 0 or np.all(labels == labels[0]):
            constant = Stump(0, -np.inf, 1 if weights.sum() >= 0 else -1)
            return Column(constant, segment, constant._respond(self.X))
        shares = np.abs(weights[kept])
        model = self._new_estimator()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", load("sklearn.exceptions").ConvergenceWarning)
            model.fit(self._by_row[kept], labels, sample_weight=shares / shares.mean())
        learner = WeakClassifier(model, 1)
        response = learner._respond(self._by_row)
        if weights @ response < 0:
            return Column(WeakClassifier(model, -1), segment, -response)
        return Column(learner, segment, response)

    def _kept(self, magnitudes: FloatArray) -> Any:
        """Return the rows with nonzero weight, without the share ``drop`` of smallest weights."""
        rows = np.flatnonzero(magnitudes)
        n_dropped = int(self.drop * len(rows))
        if n_dropped:
            smallest = np.argsort(magnitudes[rows], kind="stable")[:n_dropped]
            rows = np.delete(rows, smallest)
        return rows

    def _new_estimator(self) -> Any:
        model = load("sklearn.base").clone(self.estimator)
        if "random_state" in model.get_params() and model.get_params()["random_state"] is None:
            model.set_params(random_state=int(self._rng.integers(2**31)))
        return model


def takes_nan(estimator: Any) -> bool:
    """Return whether a scikit-learn estimator supports missing values."""
    if isinstance(estimator, type) or not hasattr(estimator, "__sklearn_tags__"):
        return False
    return bool(load("sklearn.utils").get_tags(estimator).input_tags.allow_nan)
