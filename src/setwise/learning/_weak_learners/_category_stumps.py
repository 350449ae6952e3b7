"""Stumps that separate a subset of categories from the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise._foundation._arguments import FloatArray, as_count, as_numbers
from setwise._foundation._base_classes import Record
from setwise.learning._weak_learners._one_feature import OneFeature
from setwise.learning._weak_learners._rows import check_missing, feature_of


@dataclass(frozen=True, repr=False)
class CategoryStump(Record, OneFeature):
    """A stump on categories: 1 where a feature is in one set of them, -1 where it is in the other.

    Parameters
    ----------
    feature : int
    positive, negative : tuples of floats
        The categories, as numbers. The two sets must be disjoint.
    missing : {0, 1, -1}, default=0
        The response if the feature is missing (NaN) or not a known category. A search sets it to 0,
        so that the stump contributes nothing, if there was no missing value.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> search = sw.learning.StumpSearch([[0.0], [1.0], [3.0]], categorical_features=[0])
    >>> stump = search(np.array([1.0, -1.0, 1.0]))[0].learner
    >>> stump.predict([[0.0], [1.0], [3.0], [7.0]]).tolist()
    [1.0, -1.0, 1.0, 0.0]
    """

    feature: int
    positive: tuple[float, ...]
    negative: tuple[float, ...]
    missing: int = 0

    def __post_init__(self) -> None:
        as_count(self.feature, "feature")
        for name in ("positive", "negative"):
            categories = as_numbers(getattr(self, name), name, largest=np.inf)
            object.__setattr__(self, name, tuple(categories.tolist()))
        both = set(self.positive) & set(self.negative)
        if both:
            raise ValueError(f"positive and negative must not share a category, got {min(both)}")
        check_missing(self.missing)

    def _respond(self, X: Any) -> FloatArray:
        values = feature_of(X, self.feature)
        known = np.array(self.positive + self.negative)
        if len(known) == 0:
            return np.full(len(values), float(self.missing))
        answers = np.repeat([1.0, -1.0], [len(self.positive), len(self.negative)])
        order = np.argsort(known)
        places = order[np.minimum(np.searchsorted(known[order], values), len(known) - 1)]
        return np.where(known[places] == values, answers[places], float(self.missing))

    @property
    def _constant(self) -> bool:
        return False
