"""The columns of a table: numbers, missing values, categories, and monotonic constraints."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from setwise._foundation._arguments import BoolArray, FloatArray, as_array, refuse_masked
from setwise.estimators._checked import checked
from setwise.learning import BoostOptions
from setwise.learning._weak_learners._classifiers import takes_nan
from setwise.learning._weak_learners._traits import as_categorical, as_trends

# The names of categorical data types in pandas and in polars.
_OF_CATEGORIES = ("category", "Categorical", "Enum")


def takes_missing(estimator: Any) -> bool:
    """Return whether weak learners of this kind accept NaN as a missing value."""
    if isinstance(estimator, str):
        return estimator in ("stump", "step", "tree")
    return takes_nan(estimator)


class Tabular:
    """A mixin that reads X: missing values become NaN, categories become their indices."""

    estimator: Any
    n_features_in_: int
    categories_: list[NDArray[Any] | None]

    @property
    def _settings(self) -> BoostOptions:
        """The settings that few fits change."""
        raise NotImplementedError

    def _table(self, X: Any, *y: Any, reset: bool, accept_sparse: Any) -> Any:
        """Return rows, or rows and labels, as float64; a fit (``reset``) learns the categories."""
        refuse_masked(X, "X")
        if reset:
            self._categorical, X = self._learn_columns(X)
        else:
            X = _encoded(X, dict(enumerate(self.categories_)))[0]
        finite = "allow-nan" if takes_missing(self.estimator) else True
        return checked(
            self,
            X,
            *y,
            accept_sparse=accept_sparse,
            dtype=np.float64,
            ensure_all_finite=finite,
            reset=reset,
        )

    def _learn_columns(self, X: Any) -> tuple[BoolArray | None, Any]:
        """Return which columns are categorical, and X with the categories as numbers."""
        self.categories_ = []
        columns = self._settings.categorical_features
        if isinstance(columns, str) and columns != "from_dtype":
            raise ValueError(
                "categorical_features must be 'from_dtype', a mask, indices or names of features, "
                f"got {columns!r}"
            )
        stumps = _is_stump(self.estimator)
        if columns is None or (isinstance(columns, str) and not (stumps and _is_frame(X))):
            return None, X
        if not _is_frame(X) and not hasattr(X, "shape"):
            X = np.array(X, dtype=object)  # with dtype object, strings stay distinct from numbers
        shape: tuple[int, ...] = getattr(X, "shape", ())
        if len(shape) != 2:
            return None, X  # scikit-learn's checks raise the error
        mask = _mask_of(columns, X)
        if mask.any() and not stumps:
            raise ValueError(
                "categorical_features must be None unless estimator is 'stump': other weak "
                f"learners take no subsets of categories, got {columns!r}"
            )
        X, words = _encoded(X, dict.fromkeys(np.flatnonzero(mask).tolist(), ()))
        self.categories_ = [words.get(f) for f in range(shape[1])]
        return mask, X

    def _stump_options(self, *, one_score: bool, augmented: bool = False) -> dict[str, Any]:
        """Return the options of a search for stumps that concern the columns.

        ``one_score`` means that rows have one score instead of one per class, and ``augmented``
        that features are products with labels.
        """
        stumps = _is_stump(self.estimator)
        if augmented and self._categorical is not None and self._categorical.any():
            raise ValueError(
                "categorical_features must be None for label_form='augmented', whose features are "
                f"products with numbers, got {self._settings.categorical_features!r}"
            )
        if self._settings.monotonic_cst is None:
            return {"categorical_features": self._categorical} if stumps and not augmented else {}
        if not stumps:
            raise ValueError(
                "monotonic_cst must be None unless estimator is 'stump': other weak learners keep "
                "to no trend"
            )
        if augmented or not one_score:
            raise ValueError(
                "monotonic_cst must be None for more than one score: monotonic constraints are not "
                "supported for multiclass classification, taxonomies or augmented labels"
            )
        named = isinstance(self._settings.monotonic_cst, Mapping)
        trends = self._named_trends() if named else self._settings.monotonic_cst
        mask = as_categorical(self._categorical, self.n_features_in_)
        return {"categorical_features": mask, "monotonic_cst": as_trends(trends, mask)}

    def _named_trends(self) -> list[Any]:
        names = list(getattr(self, "feature_names_in_", []))
        unknown = [name for name in self._settings.monotonic_cst if name not in names]
        if unknown:
            raise ValueError(
                f"monotonic_cst must have names of features as keys, got {unknown[0]!r}"
            )
        return [self._settings.monotonic_cst.get(name, 0) for name in names]


def _is_stump(estimator: Any) -> bool:
    return isinstance(estimator, str) and estimator == "stump"


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "dtypes") and hasattr(X, "shape")


def _mask_of(columns: Any, X: Any) -> BoolArray:
    """Return a mask of features, given as a mask, indices or names."""
    n_features = X.shape[1]
    if isinstance(columns, str):
        return np.array([str(kind).startswith(_OF_CATEGORIES) for kind in X.dtypes], np.bool_)
    wanted = as_array(columns, "categorical_features")
    if wanted.dtype.kind not in "OUT" or wanted.ndim != 1 or wanted.size == 0:
        return as_categorical(wanted, n_features)
    if not all(isinstance(name, str) for name in wanted.tolist()):
        raise TypeError(
            "categorical_features must hold bools, indices or names of features, "
            f"got dtype {wanted.dtype}"
        )
    if not _is_frame(X):
        raise ValueError(
            "categorical_features must hold bools or indices where X has no names of features, "
            f"got {wanted.tolist()[0]!r}"
        )
    names = list(X.columns)
    unknown = [name for name in wanted.tolist() if name not in names]
    if unknown:
        raise ValueError(f"categorical_features must hold names of features, got {unknown[0]!r}")
    return np.isin(np.array(names, object), wanted.astype(object))


def _encoded(X: Any, known: dict[int, Any]) -> tuple[Any, dict[int, NDArray[Any]]]:
    """Return X with categories encoded as numbers, and the categories of each column.

    ``known`` has the categories of each categorical column, or None if they are to be learned from
    X. An unknown category becomes NaN, as if it were missing.
    """
    words: dict[int, NDArray[Any]] = {}
    todo = {f: own for f, own in known.items() if own is not None}
    numeric = issparse(X) or (isinstance(X, np.ndarray) and X.dtype.kind in "fiubc")
    if numeric and not any(map(len, todo.values())):
        todo = {}
    if not todo:
        return X, words
    if issparse(X):
        raise TypeError(f"feature {min(todo)} of X must hold words, as in fit, got a sparse matrix")
    if not _is_frame(X):
        X = np.array(X, dtype=object)
    if len(X.shape) != 2 or X.shape[1] <= max(todo):
        return X, words
    numbers: dict[int, FloatArray] = {}
    for f, own in todo.items():
        values = _column(X, f)
        if len(own):
            words[f] = own
        elif any(isinstance(value, str) for value in values):
            words[f] = np.array(sorted({value for value in values if isinstance(value, str)}))
        numbers[f] = _numbers(values, words.get(f), f)
    return _replaced(X, numbers), words


def _column(X: Any, f: int) -> list[Any]:
    if not _is_frame(X):
        return list(X[:, f])
    column = X.iloc[:, f] if hasattr(X, "iloc") else X[:, f]
    return list(column)


def _numbers(values: list[Any], words: NDArray[Any] | None, f: int) -> FloatArray:
    """Return indices of the categories, or numbers as they are; NaN if missing or unknown."""
    if words is not None:
        places = {word: float(place) for place, word in enumerate(words.tolist())}
        strange = [v for v in values if not isinstance(v, str) and not _is_missing(v)]
        found = [places.get(v, np.nan) if isinstance(v, str) else np.nan for v in values]
    else:
        strange = [v for v in values if not isinstance(v, Real) and not _is_missing(v)]
        found = [float(v) if isinstance(v, Real) else np.nan for v in values]
    if strange:
        raise TypeError(
            f"feature {f} of X must hold categories of one kind, words or numbers, got "
            f"{type(strange[0]).__name__} {strange[0]!r}"
        )
    return np.array(found)


def _is_missing(value: Any) -> bool:
    nothing = value is None or type(value).__name__ in ("NAType", "NaTType")
    return nothing or (isinstance(value, Real) and value != value)


def _replaced(X: Any, numbers: dict[int, FloatArray]) -> Any:
    """Return a copy of the table with some columns replaced."""
    if hasattr(X, "isetitem"):
        X = X.copy(deep=False)
        for f, column in numbers.items():
            X.isetitem(f, column)
    elif _is_frame(X):
        series = [type(X[:, f])(X.columns[f], column) for f, column in numbers.items()]
        X = X.with_columns(series)
    else:
        for f, column in numbers.items():
            X[:, f] = column
    return X
