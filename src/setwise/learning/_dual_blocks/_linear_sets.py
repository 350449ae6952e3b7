"""A linear model of many sets, with the structure that learners use in addition to the risk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from setwise._foundation._arguments import FloatArray
from setwise.learning._dual_blocks._features import BlockFeatures
from setwise.learning._executors import Executor
from setwise.losses._labels import Labels
from setwise.surrogates import Surrogate


@dataclass(frozen=True, eq=False)
class LinearSets:
    r"""The risk W -> :math:`\sum_i c_i\, S(y_i, g_i)` with the scores g of the rows of X.

    Attributes
    ----------
    X : array or CSR matrix of shape (n, d)
        The features, in the order of the sets.
    labels : Labels
        Rows (n, p), with p rows of weights, or n elements of ragged sets, with one row of weights.
    weights : array
        The weight of each set.
    surrogate : Surrogate
    intercept : bool
        Whether each row of weights ends with the weight of a constant feature 1.
    risk : callable
        A function w -> (risk, subgradient), where w concatenates the rows of weights.
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
    def features(self) -> BlockFeatures:
        """The rows of X in the form that block steps need, made once for all fits."""
        return BlockFeatures(self.X, self.p, self.intercept)

    @property
    def by_label(self) -> bool:
        """Whether a set consists of the labels of one example."""
        return self.labels.layout == "rows"

    @property
    def n(self) -> int:
        """The number of examples."""
        return int(self.X.shape[0])

    @property
    def p(self) -> int:
        """The number of rows of the weights W."""
        return int(self.labels.shape[1]) if self.by_label else 1

    @property
    def columns(self) -> int:
        """The number of weights per row."""
        return int(self.X.shape[1]) + self.intercept

    @property
    def dimension(self) -> int:
        """The number of all weights."""
        return self.p * self.columns
