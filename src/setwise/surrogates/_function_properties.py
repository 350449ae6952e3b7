"""Properties of set functions that surrogates depend on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from setwise._foundation._certificate import EPS, FEW_ROUNDINGS
from setwise.functions import SetFunction, tabulate
from setwise.functions._base import ENUMERABLE
from setwise.functions._families._cardinality import slack_of
from setwise.losses import Loss
from setwise.losses._labels import Labels


def distinct_functions(loss: Loss, labels: Labels) -> Sequence[SetFunction]:
    """Return the set functions of a batch, up to permutations; an empty list for ratios."""
    family = loss._family_of(labels)
    functions = None if family is None else family.distinct()
    if functions is None:
        return [function for function, _ in loss._distinct(labels)]
    return functions


def is_increasing(function: SetFunction) -> bool | None:
    """Return whether F is increasing, by its declared property, its counts, or its 2^n values."""
    known = function.is_increasing
    if known is not None:
        return known
    counts = function._as_counts()
    if counts is not None:
        return function._remember("is_increasing", lambda: counts.is_increasing)
    # A callable is evaluated set by set, so only functions of fewer elements are enumerated.
    if function.n > (10 if function._is_costly else ENUMERABLE):
        return None
    return function._remember("is_increasing", lambda: tabulate(function).is_increasing)


def is_nonnegative(function: SetFunction) -> bool | None:
    """Return whether F(A) >= F(empty) for all A; None if not known. The result is cached."""
    return function._remember("is_nonnegative", partial(_is_nonnegative, function))


def _is_nonnegative(function: SetFunction) -> bool | None:
    if is_increasing(function) or function._is_nonnegative:
        return True
    values = function._all_values()
    if values is None:
        return None
    # The values of the parts of a long table are sums of slopes, so their rounding errors add up.
    slack = max(slack_of(values), FEW_ROUNDINGS * EPS * function.n * np.abs(values).max())
    return bool(values.min() >= values[0] - slack)
