"""Where one-slack cutting planes begin: an earlier fit with its planes, or weights alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, as_numbers
from setwise.learning._cutting_planes._bundle import Bundle
from setwise.learning._cutting_planes._fit import Fit
from setwise.learning._cutting_planes._search import Search


def begin(
    init: Fit | ArrayLike,
    oracle: Callable[[FloatArray], tuple[float, FloatArray]],
    search: Search,
    bundle: Bundle,
) -> FloatArray:
    """The weights to ask at first; the planes that are known before go into the bundle."""
    zero = search.best
    if isinstance(init, Fit):
        if len(init.w) != len(zero):
            raise ValueError(
                f"init must have {len(zero)} weights, as this problem has, got {len(init.w)}"
            )
        bundle.add(init.planes.slopes, init.planes.offsets)
        search.offer(zero, init.risk_at_zero)
        w = init.w.copy()
    else:
        w = as_numbers(init, "init", shape=zero.shape)
        # The gap is measured against w = 0, and a plane there is as good as any.
        risk, slope = search.ask(oracle, zero)
        bundle.add(slope[None, :], np.array([risk]), np.array([abs(risk)]))
        search.offer(zero, risk)
    w[bundle.nonnegative] = np.maximum(w[bundle.nonnegative], 0.0)
    return w
