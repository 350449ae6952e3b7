"""Newton's steps along the central path: the minimum over planes of every set, and its bound."""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from setwise import SetClassifier
from setwise.estimators._sets._set_risk import LinearRisk
from setwise.learning import Serial, one_slack
from setwise.learning._cutting_planes._fit import PlaneShares
from setwise.learning._dual_blocks import _dual_blocks, _learn_linear, _path_blocks
from setwise.learning._dual_blocks._central_path import CentralPath, hinge_path
from setwise.learning._dual_blocks._dual_blocks import dual_blocks
from setwise.learning._dual_blocks._learn_linear import learn_linear
from setwise.losses._scoring._layout import arrange
from setwise.surrogates import get

KINDS = [("margin", "jaccard"), ("slack", "jaccard"), ("decomposed", "dice"), ("lovasz", "jaccard")]
each_kind = pytest.mark.parametrize(("surrogate", "loss"), KINDS, ids=[s for s, _ in KINDS])


def grouped_sets(sizes, d, surrogate, loss):
    random = np.random.default_rng(0)
    n = sum(sizes)
    X = random.normal(size=(n, d))
    y = X @ random.normal(size=d) + np.sqrt(d) * random.normal(size=n) > 0
    sets = arrange(y, "groups", np.repeat(np.arange(len(sizes)), sizes), None)
    return LinearRisk(X, sets, get(surrogate, loss), True, Serial()).linear_sets()


def linear_sets(n, d, p, surrogate, loss, *, sparse=False, weight=None):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d))
    if sparse:
        X = sp.random(n, d, density=0.4, random_state=0, format="csr")
    Y = X @ random.normal(size=(d, p)) + np.sqrt(d) * random.normal(size=(n, p)) > 0
    sets = arrange(Y, "rows", None, weight)
    return LinearRisk(X, sets, get(surrogate, loss), True, Serial()).linear_sets()


def by_steps(sets, C, **options):
    options = {"tol": 1e-3, "max_iter": 100, "callback": None, "by": "steps", **options}
    return dual_blocks(sets, C, **options)


def assert_same_minimum(fit, other):
    """Each bound is below the value that the other one has found."""
    assert fit.bound <= other.value * (1 + 1e-12)
    assert other.bound <= fit.value * (1 + 1e-12)


@each_kind
@pytest.mark.parametrize(("n", "d"), [(60, 8), (15, 20)])
def test_the_minimum_is_that_of_planes_of_all_sets(n, d, surrogate, loss):
    weight = np.random.default_rng(1).integers(0, 4, size=n).astype(float)
    sets = linear_sets(n, d, 3, surrogate, loss, sparse=d == 20, weight=weight)
    for C in (0.02, 1.0, 100.0):
        fit = by_steps(sets, C)
        assert fit.converged
        assert fit.learner == "interior_point"
        assert fit.n_iter < 50
        assert fit.value == 0.5 * fit.w @ fit.w + C * sets.risk(fit.w)[0]
        assert_same_minimum(fit, one_slack(sets.risk, sets.dimension, C, tol=1e-2))


@each_kind
def test_steps_come_as_near_as_they_are_asked(surrogate, loss):
    sets = linear_sets(40, 6, 3, surrogate, loss)
    fit = by_steps(sets, 3.0, tol=1e-7)
    assert fit.converged
    assert np.all(np.diff(fit.history.dual) >= 0)
    assert_same_minimum(fit, by_steps(sets, 3.0))


def test_the_path_ends_at_the_minimum_over_its_planes():
    """No plane is added: against an independent solver of the same program."""
    random = np.random.default_rng(3)
    n, d, p = 12, 4, 2
    X, prices = random.normal(size=(n, d)), random.uniform(0.1, 3.0, size=n)
    heights, slopes = random.uniform(0.5, 2.0, size=n), random.normal(size=(n, p))
    path = CentralPath(X, prices, p, 4)
    path.begin(heights, slopes)
    for _ in range(25):
        if not path.step():
            break
    planes = [
        (c * np.array([np.zeros(p * d), np.outer(a, x).ravel()]), c * np.array([0.0, h]))
        for c, a, x, h in zip(prices, slopes, X, heights, strict=True)
    ]
    least = reference.least_objective(planes, 1.0)
    total, v = path.dual()
    bound = total - 0.5 * float(np.sum((v.T @ X) ** 2))
    tops = np.maximum(heights + np.einsum("ip,ip->i", slopes, path.scores), 0.0)
    value = 0.5 * float(np.sum(path.W**2) + 2.0 * prices @ tops)
    assert bound - 1e-6 <= least <= value + 1e-6
    assert value - bound <= 1e-5 * value
    assert np.allclose(path.shares().sum(axis=1), 1.0)


@each_kind
def test_passes_and_steps_go_on_from_each_other(surrogate, loss):
    sets = linear_sets(30, 12, 3, surrogate, loss)
    if surrogate != "lovasz":
        passes = by_steps(sets, 20.0, by="passes", most_passes=30)
        assert not passes.converged
        cold, warm = by_steps(sets, 20.0), by_steps(sets, 20.0, init=passes)
        assert warm.converged
        assert warm.n_iter <= cold.n_iter
        assert_same_minimum(warm, cold)
    fit = by_steps(sets, 20.0)
    assert isinstance(fit.dual, PlaneShares)
    assert by_steps(sets, 20.0, init=fit).n_iter == 1
    assert by_steps(sets, 10.0, init=fit).converged


@each_kind
def test_groups_take_steps_too(surrogate, loss):
    sets = grouped_sets([1, 4, 3, 6, 2, 5, 4], 12, surrogate, loss)
    for C in (0.1, 10.0):
        fit = by_steps(sets, C)
        assert fit.converged
        assert fit.value == 0.5 * fit.w @ fit.w + C * sets.risk(fit.w)[0]
        assert_same_minimum(fit, one_slack(sets.risk, sets.dimension, C, tol=1e-2))
    assert by_steps(sets, 10.0, init=fit).n_iter == 1


def test_wide_groups_get_steps_after_planes(monkeypatch):
    monkeypatch.setattr(_learn_linear, "_SHORT", 5)
    sets = grouped_sets([3] * 20, 80, "margin", "jaccard")
    fit = learn_linear(sets, 10.0)
    assert fit.learner == "one_slack, interior_point"
    assert fit.converged
    assert_same_minimum(fit, one_slack(sets.risk, sets.dimension, 10.0, tol=1e-2))


@pytest.mark.parametrize("C", [0.1, 100.0])
def test_one_label_ends_where_liblinear_does(C):
    random = np.random.default_rng(5)
    X = random.normal(size=(80, 12))
    signs = np.where(X[:, 0] + 3.0 * random.normal(size=80) > 0, 1.0, -1.0)
    b, w = hinge_path(X, signs, np.full(80, C), 1e-6)
    svc = LinearSVC(
        loss="hinge", C=C, fit_intercept=False, tol=1e-8, max_iter=1_000_000, random_state=0
    ).fit(X, signs)

    def value(w):
        return 0.5 * w @ w + C * np.maximum(1.0 - signs * (X @ w), 0.0).sum()

    bound = b.sum() - 0.5 * np.sum((X.T @ (signs * b)) ** 2)
    assert np.all((b >= 0.0) & (b <= C))
    assert bound <= value(svc.coef_[0]) * (1 + 1e-12)
    assert value(w) <= value(svc.coef_[0]) * (1 + 1e-5)
    assert value(w) - bound <= 1e-5 * value(w)


def test_labels_that_passes_do_not_end_get_steps(monkeypatch):
    """With elements that cost nothing, and for any number of threads to the last bit."""
    random = np.random.default_rng(2)
    X = random.normal(size=(60, 25))
    Y = random.uniform(size=(60, 3)) < 0.5
    weight = random.integers(0, 3, size=60).astype(float)
    fits = {}
    for before in (0, 1 << 40):
        monkeypatch.setattr(_dual_blocks, "_BEFORE_STEPS", before)
        for n_jobs in (1, 2):
            model = SetClassifier("hamming", "hinge", C=300.0, n_jobs=n_jobs)
            fits[before, n_jobs] = model.fit(X, Y, sample_weight=weight)
    steps, passes = fits[0, 1], fits[1 << 40, 1]
    assert steps.gap_ <= 1e-3
    assert steps.history_.dual[-1] <= passes.history_.primal[-1]
    assert passes.history_.dual[-1] <= steps.history_.primal[-1]
    assert np.array_equal(steps.coef_, fits[0, 2].coef_)


def test_few_planes_prove_what_they_can(monkeypatch):
    sets = linear_sets(25, 6, 4, "margin", "jaccard")
    whole = by_steps(sets, 1.0)
    monkeypatch.setattr(_path_blocks, "MOST_KEPT", 4)
    few = by_steps(sets, 1.0, max_iter=40)
    assert_same_minimum(few, whole)
    for w in (whole.w, few.w, np.zeros(sets.dimension)):
        plane = few.planes.offsets[0] + few.planes.slopes[0] @ w
        assert plane <= sets.risk(w)[0] * (1 + 1e-12)


def test_a_hard_problem_gets_steps_and_an_easy_one_none():
    sets = linear_sets(60, 30, 4, "margin", "jaccard")
    assert learn_linear(sets, 1e-3).learner == "kept_planes"
    hard = learn_linear(sets, 1e3)
    assert hard.learner == "kept_planes, interior_point"
    assert hard.converged


def test_numbers_without_room_end_the_steps():
    """What overflows is no step; the bound is that of the last one."""
    random = np.random.default_rng(0)
    path = CentralPath(1e160 * random.normal(size=(8, 3)), np.ones(8), 2, 4)
    path.begin(np.ones(8), random.normal(size=(8, 2)))
    assert not all(path.step() for _ in range(200))
    assert np.isfinite(path.shares()).all()


def test_control_c_leaves_the_best_so_far():
    sets = linear_sets(40, 6, 3, "slack", "jaccard")

    def callback(now):
        if now.n_iter == 4:
            raise KeyboardInterrupt

    fit = by_steps(sets, 10.0, callback=callback)
    assert fit.interrupted
    assert_same_minimum(fit, by_steps(sets, 10.0))


def test_begins_beside_planes_of_large_scores():
    """A room of 1e-9 is lost beside planes of 1e10; slacks of 0 made all weights NaN."""
    path = CentralPath(np.full((2, 1), 1e5), np.ones(2), 1, 4)
    ones = np.ones(2)
    start = PlaneShares(ones.astype(np.int64), 0.5 * ones, 3e10 * ones, -ones)
    path.begin_with(start, 1e-9)
    total, v = path.dual()
    assert np.isfinite(total)
    assert np.isfinite(v).all()
