"""The labels of users as positives, and back: which two classes there are, and what each weighs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import type_of_target

from setwise.estimators._checked import check_targets
from setwise.estimators._sample_weights import as_sample_weights
from setwise.losses._labels import read_labels


def learn_encoding(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The two classes, the positive one last, and which labels are positive."""
    if y.ndim == 2:
        return _of_matrix(y)
    check_targets(y)
    classes = np.unique(y)
    if len(classes) > 2:
        # scikit-learn's own checks look for these words.
        raise ValueError(
            f"Only binary classification is supported. The type of the target is "
            f"{type_of_target(y)}: y must hold two classes"
        )
    if len(classes) < 2:
        raise ValueError(
            f"Classifier can't train when only one class is present: y must hold two classes, "
            f"got {classes.tolist()}"
        )
    return classes, np.asarray(y == classes[1])


def _of_matrix(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    if y.dtype.kind == "O":
        raise TypeError("y must hold numbers or bools when it is a matrix, got dtype object")
    try:
        positive = read_labels(y).positive  # one compiled pass: a sort would take longer
    except (TypeError, ValueError) as error:
        raise ValueError(
            "y must hold labels in {0, 1} or {-1, +1} when it is a matrix, got "
            f"{np.unique(y)[:5].tolist()}"
        ) from error
    low = -1 if y.dtype.kind in "if" and np.any(y == -1) else 0
    return np.array([low, 1]).astype(y.dtype), positive.reshape(y.shape).view(np.bool_)


def encode(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.bool_]:
    """Which labels are positive, in the encoding of ``fit``."""
    unknown = y[~np.isin(y, classes)]
    if unknown.size:
        raise ValueError(
            f"y must hold the labels of fit, {classes.tolist()}, got {unknown.flat[0]!r}"
        )
    return np.asarray(y == classes[1])


def weigh_classes(
    class_weight: dict[Any, float] | str | None,
    classes: NDArray[Any],
    y: NDArray[Any],
    sample_weight: ArrayLike | None,
) -> ArrayLike | None:
    """The weight of each sample times that of its class."""
    if class_weight is None:
        return sample_weight
    if y.ndim == 2:
        raise ValueError(
            "class_weight must be None when y is a matrix, got "
            f"{class_weight!r}: give the loss weights, Hamming(weights)"
        )
    weights = compute_class_weight(class_weight, classes=classes, y=y)
    of_class = weights[(y == classes[1]).astype(np.int64)]
    return np.asarray(of_class * as_sample_weights(sample_weight, len(y)))
