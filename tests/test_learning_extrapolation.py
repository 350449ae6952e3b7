"""Extrapolation: exact for affine maps of few dimensions, and what it is for."""

import numpy as np
import pytest

from setwise import _core
from setwise.estimators._sets._set_risk import LinearRisk
from setwise.learning import Serial
from setwise.learning._dual_blocks._dual_blocks import SetBlocks, dual_blocks
from setwise.learning._dual_blocks._extrapolation import Extrapolation
from setwise.learning._dual_blocks._learn_linear import learn_linear
from setwise.losses import Hamming, Jaccard
from setwise.losses._scoring._layout import arrange
from setwise.surrogates import LovaszHinge, MarginRescaling


def test_the_limit_of_an_affine_map_is_exact():
    rng = np.random.default_rng(1)
    basis = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    A = basis @ np.diag([0.95, 0.7, -0.4]) @ basis.T
    shift = rng.normal(size=3)
    fixed = np.linalg.solve(np.eye(3) - A, shift)
    path, b = Extrapolation(), rng.normal(size=3)
    path.begin(b)
    while True:
        b = A @ b + shift
        if path.add(b):
            break
    limit = path.limit()
    distance = np.abs(limit - fixed).max()
    assert distance < 1e-3 * np.abs(b - fixed).max()  # what the rounding of the products leaves


def test_points_that_stand_still_have_no_other_limit():
    path, b = Extrapolation(), np.ones(4)
    path.begin(b)
    while not path.add(b):
        pass
    found = path.limit()
    assert found is None or np.array_equal(found, b)


@pytest.mark.parametrize("loss", [Jaccard(), Hamming()], ids=repr)
def test_a_high_price_takes_few_rounds(loss):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 30))
    Y = X @ rng.normal(size=(30, 4)) + 5 * rng.normal(size=(60, 4)) > 0
    risk = LinearRisk(X, arrange(Y, "rows", None, None), LovaszHinge(loss), True, Serial())
    fit = dual_blocks(risk.linear_sets(), 100.0, tol=1e-3, max_iter=60, callback=None)
    assert fit.converged
    assert fit.learner == "dual_blocks"


def test_passes_see_the_scores_of_the_dual_they_have(monkeypatch):
    """Shares of an extrapolation are thousands at a high price: no rounding is mixed with them."""
    rng = np.random.default_rng(3)
    sizes = rng.lognormal(0.0, 0.5, size=30)
    X = rng.standard_t(5, size=(60, 30)) * sizes
    scores = X @ rng.normal(size=(30, 4))
    Y = scores + scores.std() * rng.normal(size=(60, 4)) > 0
    risk = LinearRisk(X, arrange(Y, "rows", None, None), LovaszHinge("jaccard"), True, Serial())
    sets, one_pass, apart = risk.linear_sets(), SetBlocks._pass, []

    def watched(self, most, target, order, state):
        one_pass(self, most, target, order, state)
        W = self.features.weights((self._signs * self.b).reshape(self._shape))
        apart.append(np.abs(state - self.features.state(W).ravel()).max())

    monkeypatch.setattr(SetBlocks, "_pass", watched)
    fit = dual_blocks(sets, 1000.0, tol=1e-3, max_iter=100, callback=None)
    assert fit.converged
    assert max(apart) < 1e-9


def test_what_passes_do_not_end_newtons_steps_do():
    """At a price where passes stand at a gap of a tenth, and back: each goes on from the other."""
    rng = np.random.default_rng(2)
    sizes = rng.lognormal(0.0, 0.5, size=40)
    X = rng.standard_t(5, size=(100, 40)) * sizes
    scores = X @ rng.normal(size=(40, 5))
    Y = scores + scores.std() * rng.normal(size=(100, 5)) > 0
    layout = arrange(Y, "rows", None, None)
    sets = LinearRisk(X, layout, LovaszHinge("jaccard"), True, Serial()).linear_sets()
    fit = learn_linear(sets, 1000.0, max_iter=200)
    assert fit.converged
    assert fit.learner == "dual_blocks, interior_point"
    found, factor = sets.surrogate._polymatroids(sets.labels)
    scales = 1000.0 * factor * sets.weights
    blocks = SetBlocks(sets, found, scales, fit.dual, fit.C, 1000.0)
    assert blocks.excess() <= 1.0 + 1e-12
    dual = blocks.total - 0.5 * np.vdot(blocks.W, blocks.W)
    assert dual >= fit.bound - 1e-6 * abs(fit.bound)


def test_control_c_on_the_way_back_leaves_a_dual(monkeypatch):
    """The limit lies outside the polymatroids; nothing of it is in the plane that is left."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 30))
    Y = X @ rng.normal(size=(30, 4)) + 5 * rng.normal(size=(40, 4)) > 0
    risk = LinearRisk(X, arrange(Y, "rows", None, None), LovaszHinge("jaccard"), True, Serial())
    sets, one_pass = risk.linear_sets(), SetBlocks._pass

    def interrupted(self, *words):
        if self.b.min() < 0.0:
            raise KeyboardInterrupt
        one_pass(self, *words)

    monkeypatch.setattr(SetBlocks, "_pass", interrupted)
    fit = dual_blocks(sets, 1.0, tol=1e-9, max_iter=300, callback=None)
    assert fit.interrupted
    assert (fit.dual >= 0.0).all()
    for w in rng.normal(size=(20, sets.dimension)):
        assert (fit.planes.slopes @ w + fit.planes.offsets <= sets.risk(w)[0] + 1e-9).all()


def test_shares_are_put_back_as_they_were():
    n, p, most = 3, 2, 4
    planes = _core.KeptPlanes(np.arange(0, 2 * n + 1, 2), np.ones(n), most)
    slopes = np.arange(1.0, 1.0 + n * p)
    planes.add(np.zeros(n * p), np.ones(n), slopes)
    shares = np.zeros((n, most))
    shares[:, 0], shares[:, 1] = 1.5, -0.5  # beyond the simplex: the first plane has all
    planes.put_shares(shares.ravel())
    found = np.empty(n * most)
    planes.copy_shares(found)
    assert np.array_equal(found.reshape(n, most), np.eye(most)[[0, 0, 0]])
    shares[:, 0], shares[:, 1] = 0.25, 0.75
    planes.put_shares(shares.ravel())
    v = np.empty(n * p)
    assert planes.dual(v) == 0.75 * n
    np.testing.assert_allclose(v, -0.75 * slopes)
    for call in (planes.copy_shares, planes.put_shares):
        with pytest.raises(ValueError, match="shares must have an entry for each plane"):
            call(np.zeros(1))


def test_planes_of_a_wide_problem_are_extrapolated():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 30))
    Y = X @ rng.normal(size=(30, 3)) + 3 * rng.normal(size=(40, 3)) > 0
    hinge = MarginRescaling("jaccard")
    risk = LinearRisk(X, arrange(Y, "rows", None, None), hinge, True, Serial())
    fit = dual_blocks(risk.linear_sets(), 1.0, tol=1e-4, max_iter=60, callback=None)
    assert fit.converged
    assert fit.learner == "kept_planes"
