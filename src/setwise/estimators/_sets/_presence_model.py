"""How likely a set is not to be empty, learnt from the probabilities of its elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.linear_model import LogisticRegression

from setwise._foundation._arguments import BoolArray, FloatArray
from setwise.decisions._probabilities import Probabilities

# Probabilities of 0 and 1 have no logit; what lies beyond these is as certain.
_CERTAIN = 1e-7
# Of the logistic regression on three numbers that are all in units of logits.
_C = 10.0


@dataclass(frozen=True, eq=False)
class PresenceModel:
    """A logistic regression, or what is always so: with none of n sets empty, (n + 1) / (n + 2)."""

    model: Any
    always: float

    @classmethod
    def fit(
        cls, sets: Probabilities, positive: BoolArray, weight: FloatArray | None
    ) -> PresenceModel:
        """From probabilities out of fold and the truth, both set by set."""
        there = np.logical_or.reduceat(positive, sets.offsets[:-1])
        counted = there if weight is None else there[weight > 0]
        always = (np.count_nonzero(counted) + 1) / (len(counted) + 2)
        if counted.all() or not counted.any():
            return cls(None, always)
        return cls(LogisticRegression(C=_C).fit(_signs(sets), there, sample_weight=weight), always)

    def __call__(self, sets: Probabilities) -> FloatArray:
        """For each set: at least the probability of its most probable element."""
        if sets.n == 0:
            return np.empty(0)
        told = self.always if self.model is None else self.model.predict_proba(_signs(sets))[:, 1]
        return np.maximum(told, np.maximum.reduceat(sets.flat, sets.offsets[:-1]))


def _signs(sets: Probabilities) -> FloatArray:
    """The largest probability, the expected number of elements, and minus log of none: (n, 3)."""
    p, starts = np.clip(sets.flat, _CERTAIN, 1 - _CERTAIN), sets.offsets[:-1]
    most = np.maximum.reduceat(p, starts)
    number = np.add.reduceat(p, starts)
    none = np.add.reduceat(-np.log1p(-p), starts)
    return np.column_stack([logit(most), np.log(number), np.log(none)])
