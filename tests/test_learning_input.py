"""Bad options, sizes and oracles of the learners: one sentence, before any wrong bound."""

import numpy as np
import pytest
from learner_registry import SVM, Problem, each_learner

from setwise.learning import Threads, n_slack, one_slack

OPTIONS = [
    ({"C": 0.0}, ValueError, "C must be positive, got 0"),
    ({"C": -1.0}, ValueError, "C must be positive, got -1"),
    ({"C": np.nan}, ValueError, "C must be finite, got nan"),
    ({"C": np.inf}, ValueError, "C must be finite, got inf"),
    ({"C": "1"}, TypeError, "C must be a real number, got str"),
    ({"tol": -1e-3}, ValueError, "tol must not be negative, got -0.001"),
    ({"tol": np.nan}, ValueError, "tol must be finite, got nan"),
    ({"tol": None}, TypeError, "tol must be a real number, got NoneType"),
    ({"max_iter": 0}, ValueError, "max_iter must be at least 1, got 0"),
    ({"max_iter": 10.0}, TypeError, "max_iter must be an integer, got float"),
    ({"max_iter": True}, TypeError, "max_iter must be an integer, got bool"),
]


@each_learner
@pytest.mark.parametrize(("options", "error", "sentence"), OPTIONS)
def test_bad_options(learner, options, error, sentence):
    with pytest.raises(error, match=sentence):
        learner.call(SVM, **{"C": 1.0, **options})


def never(*arguments):
    raise AssertionError("bad input is refused before any work is done")


BAD = [
    (lambda: one_slack(never, -1), ValueError, "dimension must be at least 0, got -1"),
    (lambda: one_slack(never, 2.0), TypeError, "dimension must be an integer, got float"),
    (lambda: n_slack(never, 1, -1), ValueError, "dimension must be at least 0, got -1"),
    (lambda: n_slack(never, -1, 1), ValueError, "n must be at least 0, got -1"),
    (lambda: n_slack(never, 1.5, 1), TypeError, "n must be an integer, got float"),
    (
        lambda: one_slack(never, 2, nonnegative=[2]),
        ValueError,
        "nonnegative must lie between 0 and 1, got 2",
    ),
    (
        lambda: one_slack(never, 2, nonnegative=[1, 1]),
        ValueError,
        "nonnegative must hold distinct elements, got 1 more than once",
    ),
    (
        lambda: one_slack(never, 2, nonnegative=[True]),
        ValueError,
        r"nonnegative must have shape \(2,\) when boolean, got \(1,\)",
    ),
    (lambda: one_slack(never, 2, least_risk=np.nan), ValueError, "least_risk must be finite"),
    (lambda: one_slack(never, 2, least_risk="0"), TypeError, "least_risk must be a real number"),
    (
        lambda: one_slack(never, 2, init=one_slack(SVM.risk, SVM.dimension, max_iter=1)),
        ValueError,
        "init must have 2 weights, as this problem has, got 4",
    ),
    (lambda: Threads(0), ValueError, "n_jobs must not be 0, got 0"),
    (lambda: Threads(1.0), TypeError, "n_jobs must be an integer or None, got float"),
]


@pytest.mark.parametrize(("call", "error", "sentence"), BAD)
def test_bad_input(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()


BAD_ORACLES = [
    (np.nan, [0.0, 0.0], "oracle must return finite numbers"),
    (np.inf, [0.0, 0.0], "oracle must return finite numbers"),
    (1.0, [np.nan, 0.0], "oracle must return finite numbers"),
    (1.0, [0.0, 0.0, 0.0], r"oracle must return a subgradient of shape \(2,\), got \(3,\)"),
    (1.0, [[0.0, 0.0]], r"oracle must return a subgradient of shape \(2,\), got \(1, 2\)"),
    (-1.0, [0.0, 0.0], "oracle must not return a risk below 0"),
]


@each_learner
@pytest.mark.parametrize(("risk", "slope", "sentence"), BAD_ORACLES)
def test_bad_oracles(learner, risk, slope, sentence):
    """Never a wrong bound in silence: a risk below the least one has planes above it."""

    class Bad(Problem):
        def example(self, i, w):
            return risk, np.array(slope)

        def risk(self, w):
            return self.example(0, w)

    with pytest.raises(ValueError, match=sentence):
        learner.call(Bad([None], 2), 1.0, max_iter=3)
