"""Blocks of planes: the dual over a few kept planes of each set, and its certificate."""

import numpy as np
import pytest
import scipy.sparse as sp

from setwise import SetClassifier, _core
from setwise.estimators._sets._set_risk import LinearRisk
from setwise.learning import Serial, one_slack
from setwise.learning._cutting_planes._fit import PlaneShares
from setwise.learning._dual_blocks import _plane_blocks
from setwise.learning._dual_blocks._dual_blocks import dual_blocks
from setwise.learning._dual_blocks._learn_linear import learn_linear
from setwise.losses._scoring._layout import arrange
from setwise.surrogates import get

KINDS = [("margin", "jaccard"), ("slack", "jaccard"), ("decomposed", "dice")]
each_kind = pytest.mark.parametrize(("surrogate", "loss"), KINDS, ids=[s for s, _ in KINDS])


def draw(n, d, p, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    Y = X @ random.normal(size=(d, p)) + np.sqrt(d) * random.normal(size=(n, p)) > 0
    return X, Y


def linear_sets(X, Y, surrogate, loss, weight=None):
    sets = arrange(Y, "rows", None, weight)
    return LinearRisk(X, sets, get(surrogate, loss), True, Serial()).linear_sets()


def fit_blocks(sets, C, **options):
    return dual_blocks(sets, C, **{"tol": 1e-3, "max_iter": 300, "callback": None, **options})


def assert_same_minimum(fit, other):
    """Each bound is below the value that the other one has found."""
    assert fit.bound <= other.value * (1 + 1e-12)
    assert other.bound <= fit.value * (1 + 1e-12)


@each_kind
@pytest.mark.parametrize(("n", "d"), [(60, 8), (25, 20), (15, 80)])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_minimum_is_that_of_planes_of_all_sets(n, d, sparse, surrogate, loss):
    X, Y = draw(n, d, 3)
    if sparse:
        X = sp.random(n, d, density=0.3, random_state=0, format="csr")
    weight = np.random.default_rng(1).integers(0, 4, size=n).astype(float)
    sets = linear_sets(X, Y, surrogate, loss, weight)
    for C in (0.02, 1.0):
        fit = fit_blocks(sets, C)
        assert fit.converged
        assert fit.learner == "kept_planes"
        assert fit.value == 0.5 * fit.w @ fit.w + C * sets.risk(fit.w)[0]
        assert_same_minimum(fit, one_slack(sets.risk, sets.dimension, C, tol=1e-2))


@each_kind
def test_a_high_price_is_reached_in_steps(surrogate, loss):
    sets = linear_sets(*draw(20, 30, 3), surrogate, loss)
    fit = fit_blocks(sets, 1e4)
    assert fit.converged
    assert _plane_blocks._first_share(1e4 * 31) < 1e-3
    assert np.all(np.diff(fit.history.dual) >= 0)
    assert_same_minimum(fit, one_slack(sets.risk, sets.dimension, 1e4, tol=0.1, init=fit.w))
    # Ended on the way: what there is holds for the whole price.
    early = fit_blocks(sets, 1e4, max_iter=2)
    assert_same_minimum(early, fit)
    assert early.planes.offsets[0] + early.planes.slopes[0] @ fit.w <= sets.risk(fit.w)[0]
    assert_same_minimum(fit_blocks(sets, 1e4, init=early), fit)


@each_kind
@pytest.mark.parametrize("path", [(0.1, 1.0, 20.0), (20.0, 1.0, 0.1)], ids=["rising", "falling"])
def test_a_fit_at_another_price_is_a_start(path, surrogate, loss):
    sets = linear_sets(*draw(25, 20, 3), surrogate, loss)
    fit = None
    for C in path:
        fit = fit_blocks(sets, C, init=fit)
        assert fit.converged
        assert isinstance(fit.dual, PlaneShares)
        assert fit.dual.counts.sum() == len(fit.dual.shares)
        assert_same_minimum(fit, fit_blocks(sets, C))
    assert fit_blocks(sets, path[-1], init=fit).n_iter == 1


def test_few_planes_prove_what_they_can(monkeypatch):
    """Two planes beside the plane 0: shares that have no room become one plane, below the risk."""
    sets = linear_sets(*draw(25, 20, 4), "margin", "jaccard")
    whole = fit_blocks(sets, 1.0)
    monkeypatch.setattr(_plane_blocks, "_kept", lambda sets: 3)
    few = fit_blocks(sets, 1.0, most_passes=200)
    assert_same_minimum(few, whole)
    assert few.bound >= 0.9 * whole.bound
    assert few.dual.counts.max() <= 3
    for w in (whole.w, few.w, np.zeros(sets.dimension)):
        plane = few.planes.offsets[0] + few.planes.slopes[0] @ w
        assert plane <= sets.risk(w)[0] * (1 + 1e-12)


@each_kind
def test_the_number_of_threads_changes_no_bit(surrogate, loss):
    X, Y = draw(30, 60, 4)
    one = SetClassifier(loss, surrogate, C=10.0).fit(X, Y)
    assert one.learner_ == "kept_planes"
    two = SetClassifier(loss, surrogate, C=10.0, n_jobs=2).fit(X, Y)
    assert np.array_equal(two.coef_, one.coef_)
    assert np.array_equal(two.history_.dual, one.history_.dual)


def test_control_c_leaves_the_best_so_far():
    sets = linear_sets(*draw(20, 30, 3), "slack", "jaccard")
    whole = fit_blocks(sets, 10.0)

    def callback(now):
        if now.n_iter == 3:
            raise KeyboardInterrupt

    fit = learn_linear(sets, 10.0, callback=callback)
    assert fit.interrupted
    assert fit.n_iter == 3
    assert_same_minimum(fit, whole)


def test_kernels_refuse_what_does_not_fit():
    planes = _core.KeptPlanes(np.array([0, 2, 4]), np.ones(2), 3)
    rows = _core.DenseRows(np.ones((2, 3)), False)
    with pytest.raises(ValueError, match="most must be at least 3"):
        _core.KeptPlanes(np.array([0, 2]), np.ones(1), 2)
    with pytest.raises(ValueError, match="offsets must not decrease"):
        _core.KeptPlanes(np.array([0, 2, 1]), np.ones(2), 3)
    with pytest.raises(ValueError, match="values one for each set"):
        planes.add(np.ones(4), np.ones(3), np.ones(4))
    with pytest.raises(ValueError, match="a row a label"):
        _core.plane_scores(rows, planes, np.ones(5), np.ones(4))
    with pytest.raises(ValueError, match="curvature must have an entry"):
        _core.plane_pass(rows, planes, 0, 1.0, np.ones(6), np.ones(1))
    with pytest.raises(ValueError, match="planes that are counted"):
        planes.begin_with(np.array([1, 1]), np.ones(1), np.ones(1), np.ones(2))
