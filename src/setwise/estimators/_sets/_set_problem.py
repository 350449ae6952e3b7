"""The problem of a fit: sets, their surrogate, the risk, and the factor of C."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._arguments import FloatArray, as_number
from setwise._foundation._progress import Progress
from setwise.estimators._sets._certificates import is_certified
from setwise.estimators._sets._set_risk import LinearRisk
from setwise.estimators._sets._surrogate_choice import first_surrogate, settled
from setwise.learning import one_slack
from setwise.learning._cutting_planes._fit import Fit
from setwise.learning._dual_blocks._learn_linear import learn_linear, stages
from setwise.learning._executors import Executor
from setwise.losses import Loss
from setwise.losses._scoring._layout import Arrangement, Sets, arrange
from setwise.surrogates import Surrogate


class Parameters(Protocol):
    """The parameters of an estimator that define its problem."""

    loss: Loss | str
    surrogate: str | Surrogate
    sets: Sets
    fit_intercept: bool
    tol: float
    max_iter: int


@dataclass(frozen=True, eq=False)
class SetProblem:
    """The problem min 1/2 |W|^2 + C risk(W)."""

    risk: LinearRisk
    sets: Arrangement
    surrogate: Surrogate
    certified: bool

    @property
    def is_of_samples(self) -> bool:
        """Whether sets are rows or groups of samples, so that they can be blocks of a dual."""
        return self.sets.kind not in ("columns", "cells")

    @property
    def begins_with_blocks(self) -> bool:
        """Whether dual blocks are tried first; they cannot start from given weights."""
        return self.is_of_samples and stages(self.risk.linear_sets())[0][0] == "blocks"

    def minimize(
        self,
        C: float,
        parameters: Parameters,
        *,
        init: Fit | FloatArray | None = None,
        time_limit: float | None = None,
        callback: Callable[[Progress], object] | None = None,
    ) -> Fit:
        """Find the best weights, with an earlier fit or given weights as the start."""
        if self.is_of_samples:
            learn = partial(learn_linear, self.risk.linear_sets(), init=init)
        else:
            learn = partial(one_slack, self.risk, self.risk.dimension, init=init)
        return learn(
            C=as_number(C, "C", positive=True),
            tol=parameters.tol,
            max_iter=parameters.max_iter,
            time_limit=time_limit,
            callback=callback,
        )


def pose(
    parameters: Parameters,
    X: Any,
    positive: NDArray[np.bool_],
    groups: ArrayLike | None,
    weight: ArrayLike | None,
    executor: Executor,
    *,
    warn: bool = True,
) -> SetProblem:
    """Pose the problem of a sample. With ``warn``, warn if its surrogate is not exact."""
    surrogate = first_surrogate(parameters.surrogate, parameters.loss)
    # A modular loss is a sum over elements, so each element can be a set with its own weight.
    sets = arrange(
        positive,
        parameters.sets,
        groups,
        weight,
        separate=surrogate._traits.is_separable,
        fractional=surrogate._traits.takes_multiplicity,
    )
    surrogate = settled(surrogate, parameters.surrogate, sets)
    if sets.multiplicity is not None:
        surrogate = surrogate._with_multiplicity(sets.multiplicity)
    certified = is_certified(surrogate, sets, warn=warn)
    risk = LinearRisk(X, sets, surrogate, bool(parameters.fit_intercept), executor)
    return SetProblem(risk, sets, surrogate, certified)
