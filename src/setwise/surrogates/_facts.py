"""Facts about a set function that surrogates rest on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from setwise._foundation._certificate import EPS
from setwise.functions import (
    Cardinality,
    Counts,
    Modular,
    Oracle,
    Ratio,
    SetFunction,
    Sum,
    tabulate,
)
from setwise.functions._families._cardinality import slack_of
from setwise.functions._families._compose import collected
from setwise.functions._families._counts import GRID_CELLS
from setwise.losses import Loss
from setwise.losses._labels import Labels

# Sets up to this size may be enumerated.
ENUMERABLE = 16


def distinct_functions(loss: Loss, labels: Labels) -> Sequence[SetFunction]:
    """The set functions of a batch, up to permutations; none for ratios, which need no question."""
    family = loss._family_of(labels)
    functions = None if family is None else family.distinct()
    if functions is None:
        return [function for function, _ in loss._distinct(labels)]
    return functions


def is_increasing(function: SetFunction) -> bool | None:
    """Whether F is increasing: what it knows, what its counts say, or what its 2^n values say."""
    known = function.is_increasing
    if known is not None:
        return known
    counts = _as_counts(function)
    if counts is not None:
        return function._remember("is_increasing", lambda: counts.is_increasing)
    # A callable is asked set by set.
    if function.n > (10 if isinstance(function, Oracle) else ENUMERABLE):
        return None
    return function._remember("is_increasing", lambda: tabulate(function).is_increasing)


def _as_counts(function: SetFunction) -> Counts | None:
    """A sum of functions of the same counts, of the size, and of equal weights, on its grid."""
    if not isinstance(function, Sum):
        return None
    split = next((term for term in function.terms if isinstance(term, Counts)), None)
    if split is None or (split.m + 1) * (split.r + 1) > GRID_CELLS:
        return None
    n, q = np.ogrid[: split.m + 1, : split.r + 1]
    grid = np.zeros((split.m + 1, split.r + 1))
    for term, scale in zip(function.terms, function.coefficients, strict=True):
        if isinstance(term, Counts) and np.array_equal(term.positive, split.positive):
            grid += scale * term.grid()
        elif isinstance(term, Cardinality):
            grid += scale * term.values[n + q]
        elif isinstance(term, Modular) and np.all(term.weights == term.weights[:1]):
            grid += scale * (n + q) * term.weights[:1].sum()
        else:
            return None
    return Counts(grid, split.positive)


def is_nonnegative(function: SetFunction) -> bool | None:
    """Whether F(A) >= F(empty) for all A; None if that is not known. Asked once, and kept."""
    return function._remember("is_nonnegative", partial(_is_nonnegative, function))


def _is_nonnegative(function: SetFunction) -> bool | None:
    if is_increasing(function):
        return True
    if isinstance(function, Cardinality):
        values = function.values
    elif isinstance(function, Counts):
        if isinstance(function.formula, Ratio):
            return True  # every part of a ratio is: the submodular one by its closed form
        if (function.m + 1) * (function.r + 1) > GRID_CELLS:
            return None
        values = function.grid().ravel()
    elif function.n <= ENUMERABLE:
        values = tabulate(function).values
    else:
        return None
    # The parts of a long table carry the rounding of its slopes, times their number.
    slack = max(slack_of(values), 8 * EPS * function.n * np.abs(values).max())
    return bool(values.min() >= values[0] - slack)


def largest_gain(function: SetFunction) -> float | None:
    """max over A and i of F(A + i) - F(A), A = empty included; None if that is not known."""
    n = function.n
    if n == 0:
        return 0.0
    if isinstance(function, Sum):
        of_sum = _largest_gain_of_sum(function)
        if of_sum is not None:
            return of_sum
    if isinstance(function, Cardinality):
        return float(np.diff(function.values).max())
    if isinstance(function, Counts) and isinstance(function.formula, Ratio):
        return _largest_ratio_gain(function.formula, function.r)
    if isinstance(function, Counts) and (function.m + 1) * (function.r + 1) <= GRID_CELLS:
        grid = function.grid()
        steps = [np.diff(grid, axis=axis).max(initial=-np.inf) for axis in (0, 1)]
        return float(max(steps))
    if function.is_submodular:
        singles = function._values(np.eye(n, dtype=np.bool_))
        return float(singles.max() - function._values(np.zeros((1, n), np.bool_))[0])
    if function.is_supermodular:
        without = function._values(~np.eye(n, dtype=np.bool_))
        return float(function._values(np.ones((1, n), np.bool_))[0] - without.min())
    if n <= ENUMERABLE:
        cube = tabulate(function).values.reshape((2,) * n)
        return float(max(np.diff(cube, axis=axis).max() for axis in range(n)))
    return None


def _largest_gain_of_sum(function: Sum) -> float | None:
    """A multiple of one function, a function of the counts, or of the size plus a modular one."""
    whole = collected(function)
    if not isinstance(whole, Sum):
        return largest_gain(whole)
    if len(whole.terms) == 1 and whole.coefficients[0] > 0:
        inner = largest_gain(whole.terms[0])
        return None if inner is None else float(whole.coefficients[0]) * inner
    counts = _as_counts(whole)
    if counts is not None:
        return largest_gain(counts)
    sizes = [term for term in whole.terms if isinstance(term, Cardinality)]
    weights = [term for term in whole.terms if isinstance(term, Modular)]
    if len(whole.terms) == 2 and sizes and weights:  # every element may come at every size
        return float(np.diff(sizes[0].values).max() + weights[0].weights.max())
    return None


def _largest_ratio_gain(ratio: Ratio, r: int) -> float:
    """The false-positive step is largest at q = 0, the false-negative one at n = m - 1, q = 0."""
    n = np.arange(ratio.m + 1.0)
    zero = np.zeros_like(n)
    largest = -np.inf
    if r > 0:
        largest = float(ratio._step_positive(n, zero).max())
    if ratio.m > 0:
        largest = max(largest, float(ratio._step_negative(n[:-1], zero[:-1]).max()))
    return largest
