"""Losses that do not look at the truth: every element as it is more likely to be."""

from __future__ import annotations

import numpy as np

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import BoolArray, FloatArray
from setwise.decisions._answers import Answers, rounding
from setwise.decisions._enumeration import MOST_FOR_MISTAKES, all_masks
from setwise.decisions._probabilities import SetProbabilities
from setwise.decisions._samples import Sampler
from setwise.functions import Cardinality, Modular
from setwise.losses import Loss
from setwise.losses._labels import Labels


def by_majority(loss: Loss, p: SetProbabilities, sampler: Sampler) -> Answers:
    r"""{i : p_i > 1/2}, the best set for every loss :math:`l(\{i : y_i \ne z_i\})`, l increasing.

    The mistakes of a decision z are independent events with probabilities p_i or 1 - p_i. With
    the smaller ones everywhere they can be drawn together with those of any other decision so that
    they are always a subset: no other decision is expected to cost less.
    """
    mask = p.flat > 0.5
    wrong = np.minimum(p.flat, 1 - p.flat)
    expected, error = np.empty(p.n), np.empty(p.n)
    for i in range(p.n):
        expected[i], error[i] = _expected(loss, wrong[p.offsets[i] : p.offsets[i + 1]], sampler)
    return Answers.best(mask, expected, error)


def _expected(loss: Loss, wrong: FloatArray, sampler: Sampler) -> tuple[float, float]:
    """Return the expected loss of independent mistakes, and how far it may be off."""
    # An expectation is linear.
    parts = [(scale, _of_term(term, wrong, sampler)) for scale, term in loss._summands()]
    known = [(scale, *part) for scale, part in parts if part is not None]
    if len(known) < len(parts):  # a term that falls somewhere: the sum of all of them does not
        return sampler.expected_of_mistakes(loss._set_function(_truth(wrong)), wrong)
    return sum(c * value for c, value, _ in known), sum(c * error for c, _, error in known)


def _of_term(loss: Loss, wrong: FloatArray, sampler: Sampler) -> tuple[float, float] | None:
    """Return the same of a term, or None where samples of it would have no known range."""
    n, truth = len(wrong), _truth(wrong)
    labels = Labels(truth.view(np.uint8), np.array([0, n]), "single", (n,))
    function = loss._set_function(truth)
    weights = loss._element_weights(labels)
    if weights is None and isinstance(function, Modular):
        weights = function.weights
    if weights is not None:
        return float(weights @ wrong), rounding(n, float(np.abs(weights).max(initial=0.0)))
    if isinstance(function, Cardinality):
        table = function.values
        return _core.expected_of_count(wrong, table), rounding(n, float(np.abs(table).max()))
    if n <= MOST_FOR_MISTAKES:
        masks = all_masks(n)
        chances = np.where(masks, wrong, 1 - wrong).prod(axis=1)
        values = function._values(masks)
        return float(chances @ values), rounding(n, float(np.abs(values).max()))
    if not (loss.is_increasing or function.is_increasing):
        return None
    return sampler.expected_of_mistakes(function, wrong)


def _truth(wrong: FloatArray) -> BoolArray:
    """Return any truth: the loss does not look at it."""
    return np.zeros(len(wrong), np.bool_)
