"""Checks of X and y beyond scikit-learn's, with errors that name the argument."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, validate_data

from setwise._foundation._arguments import SQUARABLE, as_array, refuse_masked
from setwise._foundation._warnings import callers_level


def checked(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Return X, or X and y, as ``validate_data`` gives them.

    The messages of its errors are kept, because users know them. If a message does not name the
    argument, the name is put in front.
    """
    refuse_masked(X, "X")
    refuse_masked(y, "y")
    if issparse(y) and options.get("multi_output"):
        check_sparse_labels(y)
    refuse_label_lists(y, several=options.get("multi_output", False))
    try:
        return validate_data(estimator, X, y, **options)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        words = str(error)
        known = isinstance(error, TypeError | ValueError)
        if known and re.search(r"\b[Xy]\b", words.partition("\n")[0]):
            raise
        kind = TypeError if isinstance(error, TypeError | RuntimeError) else ValueError
        culprit = _culprit(X, words)
        raise kind(f"{culprit}: {words}") from error


def refuse_label_lists(y: Any, *, several: bool = True) -> None:
    """Raise a ``ValueError`` for a list with the labels of each sample, instead of a matrix."""
    if not isinstance(y, list | tuple) and getattr(y, "dtype", None) != np.object_:
        return
    if getattr(y, "ndim", 1) == 0:
        return  # a single object, which other checks refuse
    rows = [row for row in y if isinstance(row, list | tuple | set | frozenset)]
    lengths = {len(row) for row in rows}
    plain = len(lengths) < 2 and not any(isinstance(row, set | frozenset) for row in rows)
    if plain and not any(isinstance(label, str) for row in rows for label in row):
        return
    if several:
        raise ValueError(
            "y must be a matrix with a column for each label, got a list of labels for each "
            "sample: MultiLabelBinarizer().fit_transform(y) of scikit-learn makes the matrix"
        )
    raise ValueError(
        "y must hold one class for each sample, got a list of labels for each: SetClassifier "
        "learns several labels of one sample"
    )


def _culprit(X: Any, words: str) -> str:
    if "inconsistent numbers of samples" in words:
        return "X and y"
    try:
        check_array(X, accept_sparse=True, dtype=np.float64, ensure_all_finite="allow-nan")
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return "X"
    return "y"


@contextmanager
def naming_x(X: object) -> Iterator[None]:
    """Name X in errors of another estimator that do not say which argument was wrong.

    The other estimator checks X itself. Only input that no estimator accepts raises an error here.
    """
    refuse_masked(X, "X")
    scalar = str | bytes | bool | int | float | complex
    if X is None or isinstance(X, scalar) or (isinstance(X, dict | set) and not issparse(X)):
        raise TypeError(f"X must be an array or a table of samples, got {type(X).__name__}")
    try:
        yield
    except (
        TypeError,
        ValueError,
        OverflowError,
        RuntimeError,
        AttributeError,
        IndexError,
    ) as error:
        words = str(error)
        known = isinstance(error, TypeError | ValueError)
        if known and re.search(r"\b[Xy]\b|sample_weight|groups", words.partition("\n")[0]):
            raise
        kind = TypeError if isinstance(error, TypeError | AttributeError) else ValueError
        both = "inconsistent numbers of samples" in words
        raise kind(f"{'X and y' if both else 'X'}: {words}") from error


def checked_labels(y: Any) -> Any:
    """Check labels (n,) or (n, p) if another estimator checks X."""
    refuse_masked(y, "y")
    if y is None:  # required by scikit-learn's estimator checks
        raise ValueError("fit requires y to be passed, but the target y is None")
    refuse_label_lists(y)
    if issparse(y):
        check_sparse_labels(y)
        return y.tocsr()
    labels = as_array(y, "y")
    if labels.ndim == 2 and labels.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: y is taken as one label",
            DataConversionWarning,
            stacklevel=callers_level(),
        )
        labels = labels[:, 0]
    if labels.dtype.kind == "c":  # the text of scikit-learn's own error
        raise ValueError(f"Complex data not supported: y must hold labels, got {labels.dtype}")
    if labels.dtype.kind in "VMm":
        raise TypeError(f"y must hold labels, got dtype {labels.dtype}")
    if labels.ndim not in (1, 2):
        raise ValueError(f"y must have shape (n,) or (n, p), got {labels.shape}")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("Input y contains NaN or infinity")
    return labels


def check_sparse_labels(y: Any) -> None:
    """Raise an error unless sparse labels are a matrix; not every SciPy can convert others."""
    if y.ndim != 2:
        raise ValueError(f"y must have shape (n, p) when it is sparse, got {y.shape}")


def check_targets(y: Any) -> None:
    """Raise an error unless y holds classes rather than measurements."""
    try:
        check_classification_targets(y)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"y: {error}") from error


def check_size(X: Any, name: str) -> None:
    """Raise an error if products of features with weights would overflow."""
    entries = X.data if issparse(X) else X
    largest = float(max(entries.max(initial=0.0), -entries.min(initial=0.0)))
    if largest > SQUARABLE:
        raise ValueError(f"{name} must be at most {SQUARABLE:g} in size, got {largest:g}")
