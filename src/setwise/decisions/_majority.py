"""Losses that do not depend on the truth: each element gets its more probable value."""

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
    r"""Return {i : p_i > 1/2}, the best set for :math:`l(\{i : y_i \ne z_i\})` with l increasing.

    The mistakes of a decision z are independent events with probabilities p_i or 1 - p_i. If all of
    them have the smaller probability, they can be coupled with the mistakes of any other decision
    such that they are always a subset. So no other decision has a smaller expected loss.
    """
    mask = p.flat > 0.5
    wrong = np.minimum(p.flat, 1 - p.flat)
    expected, error = np.empty(p.n), np.empty(p.n)
    for i in range(p.n):
        expected[i], error[i] = _expected(loss, wrong[p.offsets[i] : p.offsets[i + 1]], sampler)
    return Answers.best(mask, expected, error)


def _expected(loss: Loss, wrong: FloatArray, sampler: Sampler) -> tuple[float, float]:
    """Return the expected loss of independent mistakes, and its error."""
    # An expectation is linear.
    parts = [(scale, _of_term(term, wrong, sampler)) for scale, term in loss._summands()]
    known = [(scale, *part) for scale, part in parts if part is not None]
    if len(known) < len(parts):  # a term can decrease although the sum is increasing
        return sampler.expected_of_mistakes(loss.function_of(_truth(wrong)), wrong)
    return sum(c * value for c, value, _ in known), sum(c * error for c, _, error in known)


def _of_term(loss: Loss, wrong: FloatArray, sampler: Sampler) -> tuple[float, float] | None:
    """Return the expected loss of a term and its error, or None if samples have no known range."""
    n, truth = len(wrong), _truth(wrong)
    labels = Labels(truth.view(np.uint8), np.array([0, n]), "single", (n,))
    function = loss.function_of(truth)
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
    """Return an arbitrary truth, on which the loss does not depend."""
    return np.zeros(len(wrong), np.bool_)
