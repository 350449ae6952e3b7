"""Every learner, by one signature, and problems whose minimum a small quadratic program knows.

The risks are sums of maxima of planes; tests/helpers/reference solves them by other means.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
import reference
from hypothesis import strategies as st
from strategies import arrays

from setwise.learning import n_slack, one_slack
from setwise.learning._cutting_planes._fit import Fit

# What the reference knows its minimum to.
TOLERANCE = 2e-6


@dataclass(frozen=True, eq=False)
class Problem:
    """risk(w) = sum over i of max over k of (b_ik + <a_ik, w>)."""

    planes: list[reference.Planes]
    dimension: int

    @property
    def n(self):
        return len(self.planes)

    def example(self, i, w):
        slopes, offsets = self.planes[i]
        heights = offsets + slopes @ w
        k = heights.argmax()
        return float(heights[k]), slopes[k]

    def risk(self, w):
        answers = [self.example(i, w) for i in range(self.n)]
        slope = np.sum([slope for _, slope in answers], axis=0) + np.zeros(self.dimension)
        return float(sum(value for value, _ in answers)), slope

    def objective(self, w, C):
        return 0.5 * float(w @ w) + C * self.risk(w)[0]

    def least(self, C, nonnegative=()):
        return reference.least_objective(self.planes, C, nonnegative)


@dataclass(frozen=True)
class Learner:
    call: Callable[..., Fit]
    """(problem, C, **options) -> Fit."""
    calls_a_round: Callable[[Problem], int]
    """How often a round asks the oracle at the least."""


LEARNERS = {
    "one slack": Learner(lambda p, C, **o: one_slack(p.risk, p.dimension, C, **o), lambda p: 1),
    "n slack": Learner(
        lambda p, C, **o: n_slack(p.example, p.n, p.dimension, C, **o), lambda p: p.n
    ),
}
each_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS.keys())
prices = st.sampled_from([0.1, 1.0, 10.0])


@st.composite
def problems(draw, least_n=0, least_dimension=0):
    """Risks that are nowhere negative: the plane 0 is one of each example's."""
    d = draw(st.integers(least_dimension, 3))
    planes = []
    for _ in range(draw(st.integers(least_n, 3))):
        k = draw(st.integers(0, 3))
        slopes = draw(arrays(k * d, -2.0, 2.0)).reshape(k, d)
        planes.append(
            (np.vstack([np.zeros(d), slopes]), np.append(0.0, draw(arrays(k, -2.0, 2.0))))
        )
    return Problem(planes, d)


class Svm(Problem):
    """Hinges of several pieces at noisy points: large enough for some dozens of rounds."""

    def __init__(self, n=40, d=4, seed=0):
        random = np.random.default_rng(seed)
        X = random.normal(size=(n, d))
        y = np.sign(X.sum(axis=1) + 2.0 * random.normal(size=n))
        pieces, offsets = np.array([0.0, 0.3, 1.0, 3.0]), np.array([0.0, 0.5, 1.0, 0.2])
        planes = [(np.outer(pieces, row), offsets) for row in -y[:, None] * X]
        super().__init__(planes, d)

    @cached_property
    def minimum(self):
        return self.least(1.0)


SVM = Svm()


def assert_honest(fit, problem, C, minimum):
    """The value is the objective of the weights, and the minimum lies between value and bound."""
    slack = TOLERANCE * max(1.0, minimum)
    assert fit.w.shape == (problem.dimension,)
    assert fit.value == pytest.approx(problem.objective(fit.w, C), rel=1e-12, abs=1e-12)
    assert fit.bound - slack <= minimum <= fit.value + slack
    assert fit.gap == fit.value - fit.bound >= 0
    gain = C * problem.risk(np.zeros(problem.dimension))[0] - fit.bound
    assert fit.gap_scale == pytest.approx(min(gain, fit.value), rel=1e-12, abs=1e-12)
    assert fit.relative_gap == (0.0 if fit.gap <= fit.rounding else fit.gap / fit.gap_scale)
    assert 0.0 <= fit.relative_gap <= 1.0
