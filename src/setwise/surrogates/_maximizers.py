"""Searches for the most violated set, exact if possible, for losses without a kernel.

Each maximiser takes one set function l, the margins g y of some sets, and the rule

    margin:  l(I) - w sum_{i in I} g_i y_i,        slack:  l(I) (1 - w sum_{i in I} g_i y_i),

and returns the best value found and its set I.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np

from setwise._foundation._arguments import BATCH, BoolArray, FloatArray
from setwise._foundation._search import completed
from setwise.functions import Modular, SetFunction, minimize, tabulate
from setwise.functions._base import ENUMERABLE

Method = Literal["enumerate", "minimize", "greedy"]


@dataclass(frozen=True)
class RescalingRule:
    """Margin or slack rescaling, with the weight w of the margins."""

    slack: bool
    weight: float

    def objective(self, losses: FloatArray, sums: FloatArray) -> FloatArray:
        """Return the objective for losses l(I) and sums of margins over I."""
        if not self.slack:
            return losses - self.weight * sums
        # A set of loss 0 has objective 0, even if the sum overflows.
        return np.where(losses == 0, 0.0, losses * (1.0 - self.weight * sums))

    def slopes(self, losses: FloatArray) -> FloatArray:
        """Return the derivative with respect to the margin of an element of I."""
        return -self.weight * losses if self.slack else np.full_like(losses, -self.weight)


def best_method(function: SetFunction, *, slack: bool) -> Method:
    """Choose enumeration up to 16 elements, else minimisation if l is supermodular, else greedy."""
    if function.n <= ENUMERABLE:
        return "enumerate"
    if not slack and function.is_supermodular:
        return "minimize"
    return "greedy"


def most_violated(
    function: SetFunction, margins: FloatArray, rule: RescalingRule, method: Method
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return objectives (k,), losses (k,) and sets (k, p) for margins of shape (k, p)."""
    if method == "enumerate":
        return _by_enumeration(function, margins, rule)
    search = _by_minimization if method == "minimize" else _by_greedy
    sets = np.stack([search(function, row, rule) for row in margins])
    losses = function._values(sets)
    return rule.objective(losses, np.sum(sets * margins, axis=1)), losses, sets


def _by_enumeration(
    function: SetFunction, margins: FloatArray, rule: RescalingRule
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Search all 2^p sets, many rows at once: O(2^p p) per row."""
    p = function.n
    table = function._remember("table", lambda: tabulate(function).values)
    members = (np.arange(1 << p)[:, None] >> np.arange(p)) & 1 == 1
    best = np.empty(len(margins), np.int64)
    objectives = np.empty(len(margins))
    step = max(1, BATCH >> p)
    for begin in range(0, len(margins), step):
        rows = slice(begin, begin + step)
        values = rule.objective(table, margins[rows] @ members.T.astype(np.float64))
        best[rows] = values.argmax(axis=1)
        objectives[rows] = values.max(axis=1)
    return objectives, table[best], members[best]


def _by_minimization(function: SetFunction, margins: FloatArray, rule: RescalingRule) -> BoolArray:
    """Minimize w <margins, I> - l(I), which is submodular for a supermodular loss."""
    if rule.slack:
        raise ValueError("slack rescaling is no submodular minimisation")
    answer = completed(minimize(Modular(rule.weight * margins) - function))
    if not answer.converged:
        warnings.warn(
            f"the most violated set of {function!r} was found to a relative gap of "
            f"{answer.relative_gap:.1e} only",
            RuntimeWarning,
            stacklevel=2,
        )
    return answer.mask


def _by_greedy(function: SetFunction, margins: FloatArray, rule: RescalingRule) -> BoolArray:
    """Search like the paper's authors: one pass in index order that keeps only improvements."""
    walk = function._walk()
    value, total = float(rule.objective(function._values(walk.mask[None]), np.zeros(1))[0]), 0.0
    for i in range(function.n):
        walk.add(i)
        candidate = float(rule.objective(walk.value(), np.array([total + margins[i]]))[0])
        if candidate >= value:
            value, total = candidate, total + float(margins[i])
        else:
            walk.drop(i)
    return walk.mask
