"""Decisions: the best set for a loss from any classifier's probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from setwise._foundation._arguments import SQUARABLE, FloatArray, as_choice, as_sample_weights
from setwise._foundation._base_classes import Versioned
from setwise._foundation._clock import Deadline
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._warnings import callers_level
from setwise.decisions import Decision
from setwise.decisions._decide import decide
from setwise.decisions._probabilities import SetProbabilities, read_probabilities
from setwise.estimators._calibration import METHODS, Calibration, better_calibration
from setwise.estimators._checked import checked_labels, naming_x
from setwise.estimators._sets._folds import LabeledSample, split_into_folds
from setwise.estimators._sets._label_encoding import Encoding, learn_encoding
from setwise.estimators._sets._probability_models import (
    PresenceModel,
    clipped,
    first_estimator,
    fitted,
    out_of_fold,
    positive_probabilities,
)
from setwise.estimators._threads import threads
from setwise.losses import Loss, get
from setwise.losses._scoring._layout import Kind, Sets, arrange
from setwise.losses._scoring._score import score_of_sets

# Fewer sets are not enough to estimate how often one is empty. It is the default number of
# folds, each of which needs a set.
_LEAST_SETS = 5


class SetDecision(Versioned, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""A classifier that predicts the set of least expected loss under another one's probabilities.

    .. math:: \hat z(x) = \arg\min_z \; E_{y \sim p(x)} \, \Delta(y, z)

    The classifier is trained as usual; the loss is used for decisions (``sw.decide``), which are
    exact for Jaccard, Dice, F-beta and every increasing loss of counts. A threshold of 1/2 is
    optimal only for the Hamming loss.

    Rows of labels, and groups, are decided set by set. With independent elements a set would be
    empty with probability prod (1 - p). The true probability is learnt out of fold (``presence``),
    so that rows that always have a label get one. If a set consists of many samples
    (``sets="sample"``, "columns", "cells"), a prediction must not depend on the other samples of
    the same call. Then ``predict`` uses a threshold for each column, which is chosen such that it
    gives the best set of the training sample under probabilities out of fold. ``decide`` returns
    the exact best set of the samples that it is given.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``, default=None
        For a matrix Y it must be a multi-label classifier: one-vs-rest, multi-output, a chain, a
        forest, a pipeline. None: logistic regression, one for each label. One whose
        ``predict_proba`` returns a sparse matrix is not calibrated, and ``predict`` returns a CSR
        matrix.
    loss : Loss or str, default="jaccard"
        A loss, or the name of one (``sw.losses.names()``).
    sets : {"auto", "rows", "columns", "cells", "groups", "sample"}, default="auto"
        Which elements form a set, as in ``SetClassifier``.
    calibrate : {"auto", None, "sigmoid", "isotonic"}, default="auto"
        How the probabilities of each label are calibrated out of fold. Good decisions need
        calibrated probabilities. "auto": for a matrix Y, if folds are fitted anyway for presence or
        thresholds, the method with the lower log loss on held-out rows; otherwise None.
    presence : {"fit", None}, default="fit"
        If rows or groups are sets, "fit" learns the probability that a set is not empty, by a
        logistic regression on the largest probability, their sum, and the probability of the empty
        set, out of fold. With None, or with fewer than 5 sets, it is the probability under
        independent elements.
    cv : int, splitter or iterable, default=None
        The folds of calibration, presence and thresholds; by default 5, which keep groups whole.
    time_limit : float, default=None
        Seconds after which ``fit`` begins no further fit, None for no limit. The fit of the whole
        sample comes first and is always made. Calibration, presence and thresholds use the folds
        that were fitted in time. The fit warns (``ConvergenceWarning``). The result then depends on
        the speed and the load of the machine.
    n_jobs : int, default=None
        Threads of the decisions; None is one, -1 all cores.

    Attributes
    ----------
    estimator_ : classifier
        Fitted to the whole sample.
    classes_ : array of shape (2,)
    thresholds_ : array of shape (p,) or (1,), or None
        The thresholds of probabilities if sets consist of many samples.
    n_features_in_ : int
        Exists if the estimator has it.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> import setwise as sw
    >>> X, Y = make_multilabel_classification(random_state=0)
    >>> model = sw.SetDecision(loss="dice").fit(X, Y)
    >>> model.predict(X).shape, float(model.expected_loss(X).mean()) < 0.5
    ((100, 5), True)
    """

    @hints_at_names
    def __init__(
        self,
        estimator: Any = None,
        loss: Loss | str = "jaccard",
        *,
        sets: Sets = "auto",
        calibrate: str | None = "auto",
        presence: str | None = "fit",
        cv: Any = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.loss = loss
        self.sets = sets
        self.calibrate = calibrate
        self.presence = presence
        self.cv = cv
        self.time_limit = time_limit
        self.n_jobs = n_jobs

    @hints_at_names
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the classifier, its calibration, and presence or thresholds.

        Parameters
        ----------
        X : n rows in any form that the estimator takes
        y : array of shape (n, p) or (n,), or sparse matrix of shape (n, p)
        groups : array of shape (n,), optional
            The set of each sample.
        sample_weight : array of shape (n,) or number, optional
            Passed to the estimator, and used in sets that consist of samples.

        Returns
        -------
        self
        """
        loss = get(self.loss)
        threads(self.n_jobs)
        if self.calibrate is not None:
            as_choice(self.calibrate, "calibrate", ("auto", *METHODS))
        if self.presence is not None:
            as_choice(self.presence, "presence", ("fit",))
        deadline = Deadline.of(self.time_limit)
        labels = checked_labels(y)
        with naming_x(X):
            check_consistent_length(X, labels)
        encoding, positive = learn_encoding(labels)
        matrix = positive.ndim == 2
        arranged = arrange(positive, self.sets, groups, None)
        self.classes_, self._kind = encoding.classes, arranged.kind
        weight = None
        if sample_weight is not None:
            weight = as_sample_weights(sample_weight, len(positive))
            some = weight[weight > 0]
            if some.size and (some.max() > SQUARABLE or some.min() < 1 / SQUARABLE):
                raise ValueError(
                    f"sample_weight must be 0 or between {1 / SQUARABLE:g} and {SQUARABLE:g}, got "
                    f"{some.max() if some.max() > SQUARABLE else some.min():g}"
                )
        model = first_estimator(self.estimator, matrix=matrix)
        target = positive.astype(np.int64) if matrix else labels
        with naming_x(X):
            self.estimator_ = fitted(model, X, target, weight)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        self.thresholds_: FloatArray | None = None
        self._calibration: Calibration | None = None
        self._presence: PresenceModel | None = None
        # A modular loss decides element by element, so presence has no effect.
        gated = self.presence is not None and not self._spans and not loss._traits.is_modular
        gated = gated and arranged.n_sets >= _LEAST_SETS
        calibrate = self.calibrate
        if calibrate == "auto":
            calibrate = "auto" if matrix and (self._spans or gated) else None
        if calibrate is not None or self._spans or gated:
            sample = LabeledSample.of(np.zeros((len(positive), 0)), labels, positive, groups, None)
            folds = split_into_folds(self.cv, sample)
            with naming_x(X):
                p, seen = out_of_fold(
                    model, X, target, self._positive_class, folds, weight, deadline
                )
            if deadline.expired:
                _warn_of_time(deadline)
            if not seen.any():
                p = self._chances(X)
                return self._settle(loss, p, positive, sample.groups, weight, gated=False)
            if issparse(p):
                if calibrate in METHODS:
                    raise ValueError(
                        "calibrate must be None or 'auto' for an estimator with sparse "
                        f"probabilities, got {calibrate!r}"
                    )
                calibrate = None
            if calibrate == "auto":
                calibrate = better_calibration(p[seen], positive[seen])
            if calibrate is not None:
                self._calibration = Calibration.fit(calibrate, p[seen], positive[seen])
                p = self._calibration(p)
            names = None if sample.groups is None else sample.groups[seen]
            counts = None if weight is None else weight[seen]
            self._settle(loss, p[seen], positive[seen], names, counts, gated=gated)
        return self

    def _settle(
        self,
        loss: Loss,
        p: Any,
        positive: NDArray[np.bool_],
        groups: NDArray[Any] | None,
        weight: FloatArray | None,
        *,
        gated: bool,
    ) -> Self:
        """Choose the thresholds, or fit the presence model."""
        if self._spans:
            self.thresholds_ = _thresholds(p, loss, self._kind, weight)
        elif gated:
            rows = weight if self._kind == "rows" else None
            self._presence = PresenceModel.fit(self._sets_of(clipped(p), groups), positive, rows)
        return self

    def _sets_of(self, p: Any, groups: ArrayLike | None) -> SetProbabilities:
        sets = self._kind if p.ndim == 2 else "auto"
        return read_probabilities(p, offsets=None, groups=groups, sets=sets)

    _kind: Kind

    @property
    def _spans(self) -> bool:
        """Whether a set consists of many samples that are not given by groups."""
        return self._kind in ("sample", "columns", "cells")

    @property
    def _positive_class(self) -> Any:
        """The positive label of a one-dimensional y; None for a matrix."""
        matrix = self._kind in ("rows", "columns", "cells")
        return None if matrix else self.classes_[1]

    @property
    def _encoding(self) -> Encoding:
        return Encoding(self.classes_)

    def _chances(self, X: Any) -> Any:
        """Return the probabilities of the positive labels, calibrated."""
        check_is_fitted(self)
        with naming_x(X):
            p = positive_probabilities(self.estimator_, X, self._positive_class)
        p = clipped(p)
        return p if self._calibration is None else clipped(self._calibration(p))

    def predict_proba(self, X: Any) -> Any:
        """Return probabilities, calibrated if requested.

        They have shape (n, p) for a matrix of labels, the probabilities of positive labels, sparse
        if those of the estimator are; otherwise (n, 2), in the order of ``classes_``.
        """
        p = self._chances(X)
        if p.ndim == 2:
            return p
        return np.stack([1 - p, p], axis=1)

    @hints_at_names
    def decide(self, X: Any, *, groups: ArrayLike | None = None) -> Decision:
        """Find the best sets of the samples, with their expected losses."""
        p = self._chances(X)
        if self._kind == "groups" and groups is None:
            raise ValueError("groups must be given, as they were to fit, got None")
        if self._kind != "groups" and groups is not None:
            raise ValueError("groups must be None, as they were in fit")
        sets = self._kind if p.ndim == 2 else "auto"
        there = None if self._presence is None else self._presence(self._sets_of(p, groups))
        return decide(
            p, self.loss, sets=sets, groups=groups, presence=there, n_jobs=threads(self.n_jobs)
        )

    @hints_at_names
    def predict(self, X: Any, *, groups: ArrayLike | None = None) -> Any:
        """Predict labels in the encoding that ``fit`` was given.

        Where the estimator's probabilities are sparse and the labels are 0 and 1, they are a CSR
        matrix.
        """
        check_is_fitted(self)
        if self.thresholds_ is not None:
            p = self._chances(X)
            if not issparse(p):
                return self._encoding.decode(p > self.thresholds_)
            limits = self.thresholds_[p.indices if len(self.thresholds_) > 1 else 0]
            above = type(p)((p.data > limits, p.indices, p.indptr), shape=p.shape)
            above.eliminate_zeros()
            return self._encoding.decode(above)
        return self._encoding.decode(self.decide(X, groups=groups).mask)

    @hints_at_names
    def expected_loss(self, X: Any, *, groups: ArrayLike | None = None) -> FloatArray:
        """Return the expected loss of each best set."""
        return np.atleast_1d(self.decide(X, groups=groups).expected)

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

        Scores of different losses cannot be compared; use ``sw.losses.scorer`` for that.
        """
        options = {"groups": groups} if self._kind_is_groups() else {}
        predicted = self._encoding.encode(self.predict(X, **options))
        positive = self._encoding.encode(checked_labels(y))
        loss = get(self.loss)
        return score_of_sets(loss, positive, predicted, self.sets, groups, sample_weight)

    def _kind_is_groups(self) -> bool:
        check_is_fitted(self)
        return self._kind == "groups"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        own = get_tags(first_estimator(self.estimator, matrix=True))
        tags.input_tags = own.input_tags
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = own.classifier_tags.multi_label
        tags.target_tags.multi_output = own.target_tags.multi_output
        return tags


def _warn_of_time(deadline: Deadline) -> None:
    warnings.warn(
        f"SetDecision: {deadline.sentence} before all folds were fitted: raise it, or lower cv",
        ConvergenceWarning,
        stacklevel=callers_level(),
    )


def _thresholds(p: Any, loss: Loss, kind: Kind, weight: FloatArray | None) -> FloatArray:
    """Return a threshold per set, between the probabilities inside and outside its best set."""
    sets: Iterable[FloatArray]
    if issparse(p) and kind == "columns":
        across = p.T.tocsr()
        sets = (across[[c]].toarray().ravel() for c in range(across.shape[0]))
    elif issparse(p):
        sets = [p.toarray().reshape(-1)]
    else:
        sets = [p.reshape(-1)] if kind in ("sample", "cells") else list(p.T)
    counts = None
    if weight is not None:
        counts = np.repeat(weight, p.shape[1]) if kind == "cells" else weight
    takes_weights = loss._unscaled()[0]._fraction is not None
    thresholds = []
    for chances in sets:
        weights = counts if takes_weights else None
        mask = decide(chances, loss, weights=weights).mask
        taken, left = chances[mask], chances[~mask]
        low = left.max() if left.size else 0.0
        high = taken.min() if taken.size else 1.0
        thresholds.append(min((low + high) / 2, np.nextafter(high, -1.0)))
    return np.array(thresholds)
