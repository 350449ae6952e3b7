"""The common base of linear classifiers of sets: labels, weights, predictions and scores."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from setwise._foundation._arguments import FloatArray, as_array, as_flag
from setwise._foundation._base_classes import Versioned
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._warnings import callers_level
from setwise.estimators._checked import check_size, checked
from setwise.estimators._sets._label_encoding import Encoding, learn_encoding
from setwise.estimators._sets._set_risk import linear_scores
from setwise.estimators._sets._surrogate_choice import own_loss
from setwise.losses import Loss
from setwise.losses._scoring._layout import Sets, arrange
from setwise.losses._scoring._score import score_of_sets
from setwise.surrogates import Surrogate
from setwise.surrogates._lovasz import abstains
from setwise.surrogates._registry import is_same


class LinearModel(Versioned, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear model of one or more labels with a set loss."""

    loss: Loss | str
    surrogate: str | Surrogate
    sets: Sets
    fit_intercept: bool

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as in scikit-learn."""
        before = self._scored_loss(), self.sets
        super().set_params(**params)
        after = self._scored_loss(), self.sets
        if not is_same(before[0], after[0]):
            self._changed_setting = "loss"
        elif not is_same(before[1], after[1]):
            self._changed_setting = "sets"
        return self

    def _scored_loss(self) -> Loss | None:
        """Return the loss of ``score``, or None if a fit will refuse the parameters."""
        try:
            return own_loss(self.surrogate, self.loss)
        except (TypeError, ValueError):
            return None

    def _read(self, X: Any, y: Any) -> tuple[Any, Any, NDArray[np.bool_]]:
        """Return features and labels, checked, and which labels are positive."""
        X, y = checked(self, X, y, accept_sparse="csr", dtype=np.float64, multi_output=True)
        check_size(X, "X")
        labels = y if issparse(y) else np.asarray(y)
        encoding, positive = learn_encoding(labels)
        self._rows = positive.ndim == 2
        self.classes_ = encoding.classes
        return X, labels, positive

    def _keep_weights(self, w: FloatArray) -> None:
        """Store the weights as coefficients and intercepts."""
        weights = w.reshape(-1, self.n_features_in_ + bool(self.fit_intercept))
        self.coef_ = weights[:, : self.n_features_in_].copy()
        self.intercept_ = weights[:, -1].copy() if self.fit_intercept else np.zeros(len(weights))

    @property
    def _encoding(self) -> Encoding:
        return Encoding(self.classes_)

    def _scores(self, X: Any) -> FloatArray:
        """Return scores for the second class, (n, p)."""
        with np.errstate(over="ignore", invalid="ignore"):
            weights = np.column_stack([self.coef_, self.intercept_])
            scores = linear_scores(X, weights, intercept=True)
        if not np.isfinite(scores).all():
            raise ValueError("X must hold features with finite scores, got some beyond 1.8e308")
        return scores

    def decision_function(self, X: Any) -> FloatArray:
        """Return scores, positive for ``classes_[1]``: (n, p) for a matrix of labels, or (n,)."""
        check_is_fitted(self)
        X = checked(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        scores = self._scores(X)
        return scores if self._rows else scores[:, 0]

    @hints_at_names
    def predict(self, X: Any, *, abstain: bool = False, groups: ArrayLike | None = None) -> Any:
        """Predict dense labels in the encoding that ``fit`` was given.

        They have shape (n, p) for a matrix of labels, otherwise (n,). A score of 0 is not positive.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
        abstain : bool, default=False
            Also return a mask of labels on which the best answer abstains, for the Lovász hinge and
            unrestricted scores. A label on which it abstains counts half as right and half as
            wrong. The mask depends on all labels of a set.
        groups : array of shape (n,), optional
            The set of each sample; only for ``abstain`` with ``sets="groups"``.

        Returns
        -------
        labels, or labels and a boolean array of their shape
        """
        scores = self.decision_function(X)
        labels = self._encoding.decode(scores > 0)
        abstain = as_flag(abstain, "abstain")
        if not abstain and groups is None:
            return labels
        sets = arrange(np.zeros(scores.shape, np.bool_), self.sets, groups, None)
        if not abstain:
            return labels
        flat = np.ascontiguousarray(sets.gather(scores)).reshape(-1)
        offsets = sets.offsets
        if sets.positive.ndim == 2:
            offsets = offsets * sets.positive.shape[1]
        places = np.ascontiguousarray(
            sets.gather(np.arange(scores.size).reshape(scores.shape))
        ).reshape(-1)
        open_ = np.zeros(scores.size, np.bool_)
        open_[places] = abstains(flat, offsets)
        return labels, open_.reshape(scores.shape)

    @hints_at_names
    def score(
        self,
        X: Any,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return 1 - the mean over the sets of loss / (loss if all labels are wrong).

        The score uses the loss and the sets of this estimator. To compare estimators with different
        ones, in a search over ``loss`` or ``sets``, pass ``scoring=sw.losses.scorer(...)`` to the
        search. Without it, such a search warns (``UserWarning``).
        """
        predicted = self.decision_function(X) > 0
        truth: Any = y if issparse(y) else as_array(y, "y")
        if truth.shape != predicted.shape:
            raise ValueError(f"y must have shape {predicted.shape}, got {truth.shape}")
        self._warn_in_a_search()
        positive, loss = self._encoding.encode(truth), own_loss(self.surrogate, self.loss)
        return score_of_sets(loss, positive, predicted, self.sets, groups, sample_weight)

    def _warn_in_a_search(self) -> None:
        """Warn if a scikit-learn search compares scores of different losses or sets."""
        changed = self.__dict__.get("_changed_setting")
        if changed is None or not _in_a_search():
            return
        warnings.warn(
            f"a search sets {changed}, with which score evaluates, so that it compares scores of "
            "different measures: give it scoring=sw.losses.scorer(...)",
            UserWarning,
            stacklevel=callers_level(),
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags


def _in_a_search() -> bool:
    """Return whether scikit-learn's model selection is among the callers."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_globals.get("__name__", "").startswith("sklearn.model_selection."):
            return True
    return False
