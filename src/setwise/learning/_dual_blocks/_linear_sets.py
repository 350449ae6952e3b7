"""A linear model of many sets: what a learner may know beyond the risk and its subgradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from setwise._foundation._arguments import FloatArray
from setwise.learning._dual_blocks._features import Features
from setwise.learning._executors import Executor
from setwise.losses._labels import Labels
from setwise.surrogates import Surrogate


@dataclass(frozen=True, eq=False)
class LinearSets:
    r"""W -> :math:`\sum_i c_i\, S(y_i, g_i)` with the scores g of the rows of X.

    Attributes
    ----------
    X : array or CSR matrix of shape (n, d)
        In the order of the sets.
    labels : Labels
        Rows (n, p), with p rows of weights; else n elements of ragged sets, with one.
    weights : array
        What each set counts.
    surrogate : Surrogate
    intercept : bool
        Whether each row of weights has one more, of a constant feature 1, at its end.
    risk : callable
        w -> (risk, subgradient), with w the rows of weights one after the other.
    executor : Executor
    """

    X: Any
    labels: Labels
    weights: FloatArray
    surrogate: Surrogate
    intercept: bool
    risk: Callable[[FloatArray], tuple[float, FloatArray]]
    executor: Executor

    @cached_property
    def features(self) -> Features:
        """The rows of X as block steps take them, made once for all fits."""
        return Features(self.X, self.p, self.intercept)

    @property
    def by_label(self) -> bool:
        """Whether a set is the labels of one example."""
        return self.labels.layout == "rows"

    @property
    def n(self) -> int:
        """How many examples."""
        return int(self.X.shape[0])

    @property
    def p(self) -> int:
        """How many rows of weights."""
        return int(self.labels.shape[1]) if self.by_label else 1

    @property
    def columns(self) -> int:
        """How many weights a row has."""
        return int(self.X.shape[1]) + self.intercept

    @property
    def dimension(self) -> int:
        """How many weights there are."""
        return self.p * self.columns
