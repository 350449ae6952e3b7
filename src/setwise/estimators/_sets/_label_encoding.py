"""The encoding of users' labels as positives, and class weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import type_of_target

from setwise._foundation._arguments import as_array, as_sample_weights
from setwise.estimators._checked import check_sparse_labels, check_targets
from setwise.losses._labels import read_labels


@dataclass(frozen=True, eq=False)
class Encoding:
    """The two classes, in sorted order. The second is the positive one."""

    classes: NDArray[Any]

    def encode(self, y: Any) -> NDArray[np.bool_]:
        """Return which labels are positive. The labels must have the encoding of ``fit``."""
        if issparse(y):
            stored = _stored(y)
            self._check(np.array([0]))
            return stored
        labels = as_array(y, "y")
        self._check(labels)
        return np.asarray(labels == self.classes[1])

    def _check(self, labels: NDArray[Any]) -> None:
        unknown = labels[~np.isin(labels, self.classes)]
        if unknown.size:
            raise ValueError(
                f"y must hold the labels of fit, {self.classes.tolist()}, got {unknown.flat[0]!r}"
            )

    def decode(self, positive: Any) -> Any:
        """Return the labels that encode positives and negatives; sparse labels are 0 and 1."""
        if issparse(positive):
            if self.classes[0] == 0:
                return positive.astype(self.classes.dtype)
            positive = positive.toarray()
        labels: NDArray[Any] = self.classes[positive.astype(np.int64)]
        return labels


def learn_encoding(y: Any) -> tuple[Encoding, NDArray[np.bool_]]:
    """Return the two classes, and which labels are positive."""
    if issparse(y) or y.ndim == 2:
        return _of_matrix(y)
    check_targets(y)
    classes = np.unique(y)
    if len(classes) > 2:
        # Required by scikit-learn's estimator checks.
        raise ValueError(
            f"Only binary classification is supported. The type of the target is "
            f"{type_of_target(y)}: y must hold two classes"
        )
    if len(classes) < 2:
        raise ValueError(
            f"Classifier can't train when only one class is present: y must hold two classes, "
            f"got {classes.tolist()}"
        )
    return Encoding(classes), np.asarray(y == classes[1])


def _of_matrix(y: Any) -> tuple[Encoding, NDArray[np.bool_]]:
    if y.dtype.kind == "O":
        raise TypeError("y must hold numbers or bools when it is a matrix, got dtype object")
    if issparse(y):
        return Encoding(np.array([0, 1]).astype(y.dtype)), _stored(y)
    try:
        positive = read_labels(y).positive  # one compiled pass, faster than a sort
    except (TypeError, ValueError) as error:
        words = ": MultiLabelBinarizer().fit_transform(y) of scikit-learn makes it of label lists"
        raise ValueError(
            "y must hold labels in {0, 1} or {-1, +1} when it is a matrix, got "
            f"{np.unique(y)[:5].tolist()}{words if y.dtype.kind == 'U' else ''}"
        ) from error
    low = -1 if y.dtype.kind in "if" and np.any(y == -1) else 0
    classes = np.array([low, 1]).astype(y.dtype)
    return Encoding(classes), positive.reshape(y.shape).view(np.bool_)


def _stored(y: Any) -> NDArray[np.bool_]:
    """Return a sparse matrix of zeros and ones as a dense mask."""
    check_sparse_labels(y)
    y = y.tocsr()
    other = y.data[(y.data != 0) & (y.data != 1)]
    if other.size:
        raise ValueError(f"y must hold labels in {{0, 1}} when it is sparse, got {other[0]}")
    positive: NDArray[np.bool_] = y.astype(np.bool_).toarray()
    return positive


def weigh_classes(
    class_weight: dict[Any, float] | str | None,
    classes: NDArray[Any],
    y: NDArray[Any],
    sample_weight: ArrayLike | None,
) -> ArrayLike | None:
    """Return the weight of each sample times that of its class."""
    if class_weight is None:
        return sample_weight
    if y.ndim == 2:
        raise ValueError(
            "class_weight must be None when y is a matrix, got "
            f"{class_weight!r}: give weights to the labels in loss, as Jaccard(weights) does"
        )
    weights = compute_class_weight(class_weight, classes=classes, y=y)
    of_class = weights[(y == classes[1]).astype(np.int64)]
    return np.asarray(of_class * as_sample_weights(sample_weight, y.shape[0]))
