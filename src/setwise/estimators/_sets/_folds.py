"""What cross-validation needs: samples that can be split, a grid of C, a scorer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import GroupKFold, check_cv

from setwise._foundation._arguments import (
    FloatArray,
    IntArray,
    as_array,
    as_count,
    as_number,
    as_numbers,
    did_you_mean,
)
from setwise._foundation._sample_weights import as_sample_weights
from setwise.losses._scoring._scorer import Scorer

Scoring = Callable[..., float]

_LARGEST = 1e100  # of C: squares of weights in proportion to it are finite


@dataclass(frozen=True, eq=False)
class Sample:
    """Samples, and what is known of each: labels, and perhaps a group and a weight."""

    X: Any
    labels: Any
    positive: NDArray[np.bool_]
    groups: NDArray[Any] | None
    weight: FloatArray | None

    @classmethod
    def of(
        cls,
        X: Any,
        labels: Any,
        positive: NDArray[np.bool_],
        groups: ArrayLike | None,
        sample_weight: ArrayLike | None,
    ) -> Sample:
        """Groups and weights as users give them, checked."""
        n = X.shape[0]
        names = None if groups is None else as_array(groups, "groups")
        if names is not None and names.shape != (n,):
            raise ValueError(f"groups must have shape ({n},), got {names.shape}")
        weight = None if sample_weight is None else as_sample_weights(sample_weight, n)
        return cls(X, labels, positive, names, weight)

    def take(self, rows: IntArray) -> Sample:
        """Some of them."""
        groups = None if self.groups is None else self.groups[rows]
        weight = None if self.weight is None else self.weight[rows]
        return Sample(self.X[rows], self.labels[rows], self.positive[rows], groups, weight)


def metadata(
    scoring: Scoring, groups: ArrayLike | None, weight: ArrayLike | None
) -> dict[str, Any]:
    """What a scorer is handed: groups where it knows sets, weights where there are any."""
    given = {"groups": groups} if isinstance(scoring, Scorer) else {}
    return given if weight is None else {**given, "sample_weight": weight}


def as_scoring(scoring: object) -> Scoring | None:
    """A scorer, by its name or as it is; None: that of the estimator itself."""
    if scoring is None:
        return None
    if isinstance(scoring, type) or not (isinstance(scoring, str) or callable(scoring)):
        raise TypeError(f"scoring must be a name, a scorer or None, got {type(scoring).__name__}")
    try:
        scorer: Scoring = get_scorer(scoring)
    except ValueError as error:
        near = did_you_mean(scoring, get_scorer_names())
        raise ValueError(f"scoring must be the name of a scorer, got {scoring!r}{near}") from error
    return scorer


def as_grid(Cs: object) -> FloatArray:
    """The values of C, or so many of them from 1e-4 to 1e4, as in LogisticRegressionCV."""
    if isinstance(Cs, int | np.integer) and not isinstance(Cs, bool):
        return np.logspace(-4.0, 4.0, as_count(Cs, "Cs", least=1, most=10_000))
    grid = as_numbers(Cs, "Cs")  # type: ignore[arg-type]
    if not grid.size or grid.min() <= 0:
        raise ValueError(f"Cs must be positive numbers, at least one, got {grid.tolist()}")
    return np.array([as_number(C, "Cs", positive=True, largest=_LARGEST) for C in grid.tolist()])


def split_into_folds(cv: Any, sample: Sample) -> list[tuple[IntArray, IntArray]]:
    """The folds; a count of them keeps groups whole, since a cut would make other sets of them."""
    if isinstance(cv, np.integer):
        cv = int(cv)
    whole_groups = sample.groups is not None and (cv is None or isinstance(cv, int))
    y = sample.positive if issparse(sample.labels) else sample.labels
    try:
        splitter = (
            GroupKFold(5 if cv is None else cv)
            if whole_groups
            else check_cv(5 if cv is None else cv, y, classifier=True)
        )
        folds: Iterable[tuple[IntArray, IntArray]] = splitter.split(sample.X, y, sample.groups)
        found = list(folds)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{'cv or groups' if whole_groups else 'cv'}: {error}") from error
    if not found:
        raise ValueError("cv must give at least one split, got none")
    for split in found:
        for rows in split:
            array = np.asarray(rows)
            if array.ndim != 1 or array.dtype.kind not in "iub":
                raise ValueError(
                    f"cv must give pairs of arrays of row numbers, got dtype {array.dtype} of "
                    f"shape {array.shape}"
                )
    return found
