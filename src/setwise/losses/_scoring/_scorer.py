"""Scores of any estimator by a set loss, for scikit-learn's searches."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._arguments import as_array
from setwise._foundation._imports import load
from setwise._foundation._keywords import hints_at_names
from setwise.losses._base import Loss
from setwise.losses._labels import read_labels
from setwise.losses._registry import get
from setwise.losses._scoring._layout import Sets, check_sets
from setwise.losses._scoring._score import score_of_sets

Request = bool | str | None
_KEEP = "$keep$"


@hints_at_names
def scorer(loss: Loss | str, *, sets: Sets = "auto", pos_label: Any = None) -> Scorer:
    r"""Make a scorer of a loss, for ``scoring=`` in scikit-learn: greater is better.

    .. math:: 1 - \operatorname{mean}_{\text{sets } i}
        \frac{\Delta(y_i, \tilde y_i)}{\Delta(y_i, \text{everything wrong})}

    For Jaccard, Dice and F-beta the worst loss is 1, and the score is 1 - the mean loss. It calls
    only ``predict``, so that every classifier can be scored. The score does not depend on the loss
    that an estimator was trained with. Unlike ``SetClassifier.score``, it can therefore compare
    estimators with different losses, surrogates and sets.

    Parameters
    ----------
    loss : Loss or str
        A loss, or the name of one (``sw.losses.names()``).
    sets : {"auto", "rows", "columns", "cells", "groups", "sample"}, default="auto"
        Which elements form a set. "auto": rows for a matrix y, groups if they are given, otherwise
        the whole sample. In a search, groups are passed to a scorer by
        ``scorer(...).set_score_request(groups=True)`` and scikit-learn's metadata routing.
    pos_label : label, default=None
        The positive class of a one-dimensional y. None means 1 for labels in {0, 1} or {-1, +1},
        and True for booleans. Other labels require a value.

    Returns
    -------
    callable
        ``(estimator, X, y, *, groups=None, sample_weight=None) -> float``

    Examples
    --------
    >>> import setwise as sw
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.model_selection import GridSearchCV
    >>> X, Y = make_multilabel_classification(n_classes=3, random_state=0)
    >>> choices = {"loss": ["jaccard", "hamming"], "C": [0.01, 0.1]}
    >>> search = GridSearchCV(sw.SetClassifier(), choices, scoring=sw.losses.scorer("jaccard"))
    >>> sorted(search.fit(X, Y).best_params_)
    ['C', 'loss']
    """
    return Scorer(loss, sets, pos_label)


class Scorer:
    """The result of ``scorer``: a callable for scikit-learn, with metadata routing."""

    def __init__(self, loss: Loss | str, sets: Sets = "auto", pos_label: Any = None) -> None:
        self._loss = get(loss)
        check_sets(sets)
        self._sets: Sets = sets
        self._pos_label = as_label(pos_label)
        self._requests: dict[str, Request] = {"groups": None, "sample_weight": None}

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the score of the estimator's predictions for X."""
        if groups is None and self._sets == "auto" and getattr(estimator, "sets", 0) == "groups":
            raise ValueError(
                "groups must be given to the scorer of an estimator with sets='groups', got None: "
                "in a search route them to it with scorer(...).set_score_request(groups=True), or "
                "say sets='sample' in scorer"
            )
        truth = dense_labels(y, "y")
        predicted = dense_labels(estimator.predict(X), "what predict returns")
        if truth.shape != predicted.shape:
            raise ValueError(f"y must have shape {predicted.shape}, got {truth.shape}")
        positive, found = (self._read(labels, estimator) for labels in (truth, predicted))
        return score_of_sets(self._loss, positive, found, self._sets, groups, sample_weight)

    def _read(self, labels: NDArray[Any], estimator: Any) -> NDArray[np.bool_]:
        """Return which labels are positive."""
        label = self._pos_label
        if label is None:
            if labels.ndim == 1 and not (labels.dtype.kind in "biuf" and _is_encoded(labels)):
                raise ValueError(
                    "pos_label must be given when y holds other labels than {0, 1}, {-1, +1} or "
                    f"bools, got {np.unique(labels)[:3].tolist()}"
                )
            return read_labels(labels).positive.view(np.bool_).reshape(labels.shape)
        if labels.ndim != 1:
            raise ValueError(f"pos_label must be None when y is a matrix, got {label!r}")
        classes = getattr(estimator, "classes_", None)
        if classes is not None and not np.isin(label, classes):
            raise ValueError(
                f"pos_label must be one of the classes of fit, {np.asarray(classes).tolist()}, "
                f"got {label!r}"
            )
        return np.asarray(labels == label)

    def set_score_request(self, *, groups: Request = _KEEP, sample_weight: Request = _KEEP) -> Self:
        """Request groups or weights from scikit-learn's metadata routing, as its own scorers do.

        Parameters
        ----------
        groups, sample_weight : bool, str or None
            True passes them on; False does not; None makes them an error; a string is an alias.

        Returns
        -------
        self
        """
        for name, value in (("groups", groups), ("sample_weight", sample_weight)):
            if not (value is None or isinstance(value, bool | str)):
                raise TypeError(
                    f"{name} must be True, False, None or a name, got {type(value).__name__}"
                )
            if value != _KEEP:
                self._requests[name] = value
        return self

    def get_metadata_routing(self) -> Any:
        """Return the requests in the form of scikit-learn's routers."""
        routing = load("sklearn.utils.metadata_routing").MetadataRequest(owner=self)
        for name, alias in self._requests.items():
            routing.score.add_request(param=name, alias=alias)
        return routing

    def __repr__(self) -> str:
        sets = "" if self._sets == "auto" else f", sets={str(self._sets)!r}"
        label = "" if self._pos_label is None else f", pos_label={self._pos_label!r}"
        return f"scorer({self._loss!r}{sets}{label})"


def dense_labels(y: Any, name: str) -> NDArray[Any]:
    """Return labels as an array; a sparse matrix is converted."""
    return as_array(y.toarray() if hasattr(y, "toarray") else y, name)


def as_label(pos_label: Any) -> Any:
    """Check that ``pos_label`` is a label or None."""
    kind = np.asarray(pos_label).dtype.kind if isinstance(pos_label, np.generic) else "-"
    plain = pos_label is None or isinstance(pos_label, str | int | float)
    if not (plain or kind in "biufU"):
        raise TypeError(f"pos_label must be a label or None, got {type(pos_label).__name__}")
    return pos_label.item() if isinstance(pos_label, np.generic) else pos_label


def _is_encoded(labels: NDArray[Any]) -> bool:
    return bool(np.isin(labels, (0, 1)).all() or np.isin(labels, (-1, 1)).all())
