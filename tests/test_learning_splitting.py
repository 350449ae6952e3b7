"""Splitting: its passes, the minimum that they lead to from a price nearby, and what they leave."""

import numpy as np
import pytest

from setwise import _core
from setwise.estimators._sets._set_risk import LinearRisk
from setwise.learning import Serial, Threads
from setwise.learning._dual_blocks import _splitting
from setwise.learning._dual_blocks._dual_blocks import _blocks, dual_blocks
from setwise.learning._dual_blocks._learn_linear import learn_linear
from setwise.losses import CountsLoss, Exponential, Jaccard
from setwise.losses._scoring._layout import arrange
from setwise.surrogates import LovaszHinge

LOSSES = {
    "jaccard": Jaccard(),
    "exponential": Exponential(),
    "counts": CountsLoss(lambda n, q, m, r: np.sqrt(n + 2.0 * q)),
    "scaled": 2.5 * Jaccard(),
}
each_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())


def draw(n, d, p, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=(d, p)) + 2 * rng.normal(size=(n, p)) > 0


def linear_sets(X, Y, loss, weight=None, executor=None):
    sets = arrange(Y, "rows", None, weight)
    return LinearRisk(X, sets, LovaszHinge(loss), True, executor or Serial()).linear_sets()


@pytest.mark.parametrize("n", [1, 3, 4, 10])
@pytest.mark.parametrize("p", [1, 4, 7, 12, 25])
def test_a_pass_is_what_it_says(n, p):
    rng = np.random.default_rng(n + p)
    sets = linear_sets(rng.normal(size=(n, 3)), rng.random((n, p)) < 0.4, Jaccard())
    blocks = _core.SetBlocks(
        sets.labels.positive,
        sets.labels.offsets,
        sets.weights,
        0,
        np.empty(0),
        np.empty(0, np.int64),
    )
    y = np.where(sets.labels.positive.reshape(n, p), 1.0, -1.0)
    rho, relaxed = 0.7, 1.8
    K = sets.features.products
    factor, failed = _splitting._factored(K, 1 / rho)
    assert not failed
    assert np.allclose(np.triu(factor).T @ np.triu(factor), K + np.eye(n) / rho)
    z = rng.normal(size=(n, p))
    expected, steps = z.copy(), []
    for _ in range(3):
        b = np.empty(n * p)
        _core.project_sets(blocks, expected.ravel(), b)
        b = b.reshape(n, p)
        a = np.linalg.solve(K + np.eye(n) / rho, y * (1 + (2 * b - expected) / rho))
        expected = expected + relaxed * (y * a - b)
        steps.append(np.linalg.norm(y * a - b))
    at_b, at_a, sizes = np.empty((n, p)), np.empty((n, p)), np.empty(3)
    done = _core.split_passes(blocks, factor, rho, relaxed, 9, np.inf, z, at_b, at_a, sizes)
    assert done == 3
    for ours, theirs in ((z, expected), (at_b, b), (at_a, a), (sizes, steps)):
        assert np.allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    assert _core.split_passes(blocks, factor, rho, relaxed, 2, np.inf, z, at_b, at_a, sizes) == 2


@each_loss
@pytest.mark.parametrize("path", [(0.1, 0.3, 2.0), (2.0, 0.3, 0.1)], ids=["rising", "falling"])
def test_a_path_has_the_minima_of_its_fits(loss, path):
    weight = np.linspace(0.2, 3.0, 40)
    sets = linear_sets(*draw(40, 25, 5), loss, weight)
    fit = learn_linear(sets, path[0])
    for C in path[1:]:
        fit = learn_linear(sets, C, init=fit)
        alone = learn_linear(sets, C, tol=1e-5)
        assert fit.learner == "splitting"
        assert fit.converged
        assert fit.value == 0.5 * fit.w @ fit.w + C * sets.risk(fit.w)[0]
        assert fit.bound <= alone.value
        assert alone.bound <= fit.value <= alone.value + 1e-3 * fit.gap_scale
        planes = fit.planes.offsets + fit.planes.slopes @ alone.w
        assert planes.max() <= sets.risk(alone.w)[0] * (1 + 1e-9)


def test_passes_go_on_where_they_seem_too_many(monkeypatch):
    sets = linear_sets(*draw(60, 30, 4), Jaccard())
    first = learn_linear(sets, 0.1)
    monkeypatch.setattr(_splitting, "WARM_PASSES", 8)
    fit = learn_linear(sets, 1.0, init=first, tol=1e-6)
    assert fit.learner == "splitting, dual_blocks"
    assert fit.converged
    assert fit.bound <= learn_linear(sets, 1.0).value


def test_no_gap_at_all_is_more_than_passes_promise():
    sets = linear_sets(*draw(40, 25, 3), Jaccard())
    fit = learn_linear(sets, 0.3, init=learn_linear(sets, 0.1), tol=0.0, max_iter=8)
    assert fit.learner == "splitting, dual_blocks"
    assert fit.bound <= learn_linear(sets, 0.3).value


@pytest.mark.parametrize("lost", ["factor", "dual"])
def test_without_a_factor_or_a_dual_passes_start_where_it_would(monkeypatch, lost):
    sets = linear_sets(*draw(40, 25, 3), Jaccard())
    first = learn_linear(sets, 0.1)
    if lost == "factor":
        monkeypatch.setattr(_splitting, "_factored", lambda products, added: (products, True))
    else:
        monkeypatch.setattr(_splitting, "norm", lambda array: 0.0)
    fit = learn_linear(sets, 0.3, init=first)
    assert fit.learner == "splitting, dual_blocks"
    assert fit.converged
    assert fit.bound <= learn_linear(sets, 0.3).value


def test_what_passes_go_on_from_is_no_worse_than_the_start(monkeypatch):
    """At a high price the first passes are far off, and their dual may be below 0."""
    sets = linear_sets(*draw(90, 32, 4), Jaccard())
    first = learn_linear(sets, 30.0)
    monkeypatch.setattr(_splitting, "WARM_PASSES", 6)
    left = dual_blocks(
        sets, 100.0, tol=1e-6, max_iter=300, callback=None, init=first, by="splitting"
    )
    assert left.learner == "splitting"
    assert not left.converged
    blocks, start = _blocks(sets, 100.0, left), _blocks(sets, 100.0, first)
    duals = [of.total - 0.5 * np.vdot(of.W, of.W) for of in (blocks, start)]
    assert duals[0] >= duals[1] * (1 - 1e-9)
    fit = learn_linear(sets, 100.0, init=first)
    assert fit.converged


def test_a_large_matrix_is_left_to_passes(monkeypatch):
    monkeypatch.setattr(_splitting, "_FACTOR_WORK", 0.0)
    sets = linear_sets(*draw(60, 25, 4), Jaccard())
    fit = learn_linear(sets, 0.3, init=learn_linear(sets, 0.1))
    assert fit.learner == "dual_blocks"
    assert fit.converged
    assert fit.bound <= learn_linear(sets, 0.3).value


def test_examples_that_are_all_told_apart():
    """Every slack is 0, and says nothing of the price of slacks."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20, 38))
    sets = linear_sets(X, rng.random((20, 4)) < 0.5, Jaccard())
    fit = learn_linear(sets, 50.0)
    for C in (100.0, 30.0):
        fit = learn_linear(sets, C, init=fit)
        assert fit.converged
        assert "splitting" in fit.learner
        assert fit.bound <= learn_linear(sets, C).value


def test_control_c_leaves_the_best_so_far():
    sets = linear_sets(*draw(40, 25, 3), Jaccard())
    first = learn_linear(sets, 0.3)
    whole = learn_linear(sets, 1.0, tol=1e-6)
    for rounds in (1, 2):

        def callback(now, rounds=rounds):
            if now.n_iter == rounds:
                raise KeyboardInterrupt

        fit = learn_linear(sets, 1.0, tol=1e-9, init=first, callback=callback)
        assert fit.interrupted
        assert fit.n_iter == rounds
        assert fit.bound <= whole.value
        assert whole.bound <= fit.value == 0.5 * fit.w @ fit.w + sets.risk(fit.w)[0]
        again = dual_blocks(sets, 1.0, tol=1e-3, max_iter=300, callback=None, init=fit)
        assert again.converged


def test_the_number_of_threads_changes_no_bit():
    X, Y = draw(60, 40, 5)

    def path(executor):
        sets = linear_sets(X, Y, Jaccard(), executor=executor)
        return learn_linear(sets, 1.0, init=learn_linear(sets, 0.3))

    one = path(Serial())
    assert one.learner == "splitting"
    for n_jobs in (2, 3):
        threads = Threads(n_jobs)
        other = path(threads)
        threads.close()
        assert np.array_equal(one.w, other.w)
        assert np.array_equal(one.history.dual, other.history.dual)
