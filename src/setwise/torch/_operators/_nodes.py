"""Choice of the autograd node of a loss: for transforms, a custom operator, or a plain function."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from setwise.torch._operators._derivatives import class_values, hinge_values, untraced
from setwise.torch._operators._eager import MeanOfClasses, RowsOfSets, is_eager, is_transformed
from setwise.torch._operators._library import HAS_OPERATORS
from setwise.torch._operators._scores import hinge
from setwise.torch._operators._softmax import probabilities, softmax


def values_of_rows(scores: Tensor, target: Tensor, *rest: Any) -> Tensor:
    """Return the values (S,) of a surrogate for scores and targets (S, n)."""
    values: Tensor
    if is_transformed():
        return hinge_values(scores, target, *rest)
    if is_eager(scores):
        values = RowsOfSets.apply(scores, target, *rest)  # type: ignore[no-untyped-call]
        return values
    if not HAS_OPERATORS:
        return hinge_values(scores, target, *rest)
    values = hinge(scores, target, *rest)[0]
    return values


def values_of_classes(p: Tensor, labels: Tensor, *rest: Any) -> Tensor:
    """Return the values (T, K) of the classes for probabilities (N, C, P) and labels (N, P)."""
    if is_transformed() or not HAS_OPERATORS:
        return class_values(p, labels, *rest)
    values: Tensor = probabilities(p.contiguous(), labels.contiguous(), *rest)[0]
    return values


def mean_over_classes(logits: Tensor, *rest: Any) -> Tensor:
    """Return the mean over the sets, a scalar, for logits (N, C, P)."""
    mean: Tensor
    if is_eager(logits) or not HAS_OPERATORS:
        mean = untraced(MeanOfClasses.apply)(logits, *rest)
    else:
        mean = softmax(logits, *rest)[0]
    return mean
