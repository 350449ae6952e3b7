"""The start of one-slack cutting planes: an earlier fit with its planes, or weights alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, as_numbers
from setwise.learning._cutting_planes._bundle import Bundle
from setwise.learning._cutting_planes._fit import Fit
from setwise.learning._cutting_planes._learner import Learner


def begin(
    init: Fit | ArrayLike,
    oracle: Callable[[FloatArray], tuple[float, FloatArray]],
    learner: Learner,
    bundle: Bundle,
) -> FloatArray:
    """Return the first weights, and add the known planes to the bundle."""
    zero = learner.best
    if isinstance(init, Fit):
        if len(init.w) != len(zero):
            raise ValueError(
                f"init must have {len(zero)} weights, as this problem has, got {len(init.w)}"
            )
        bundle.add(init.planes.slopes, init.planes.offsets)
        learner.offer(zero, init.risk_at_zero)
        w = init.w.copy()
    else:
        w = as_numbers(init, "init", shape=zero.shape)
        # The relative gap needs the risk at w = 0, so the first plane is that at w = 0.
        risk, slope = learner.ask(oracle, zero)
        bundle.add(slope[None, :], np.array([risk]), np.array([abs(risk)]))
        learner.offer(zero, risk)
    w[bundle.nonnegative] = np.maximum(w[bundle.nonnegative], 0.0)
    return w
