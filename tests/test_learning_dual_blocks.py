"""Dual blocks: projections onto polymatroids, the minimum they lead to, and its certificate."""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import LinearSVC
from strategies import arrays, masks

from setwise import SetClassifier, _core
from setwise.estimators._sets._set_risk import LinearRisk
from setwise.learning import Serial, one_slack
from setwise.learning._dual_blocks._dual_blocks import (
    LabelBlocks,
    SetBlocks,
    _blocks,
    dual_blocks,
    is_near,
)
from setwise.learning._dual_blocks._learn_linear import learn_linear
from setwise.losses import CountsLoss, Exponential, Hamming, Jaccard
from setwise.losses._labels import read_labels
from setwise.losses._scoring._layout import arrange
from setwise.surrogates import LovaszHinge, MarginRescaling

# Of every kind that the kernels project onto.
LOSSES = {
    "jaccard": Jaccard(),
    "exponential": Exponential(),
    "counts": CountsLoss(lambda n, q, m, r: np.sqrt(n + 2.0 * q)),
    "hamming": Hamming(),
    "scaled": 2.5 * Jaccard(),
}
each_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())


def linear_sets(X, Y, loss, *, intercept=True, groups=None, weight=None):
    """What SetClassifier hands to a learner."""
    positive = np.asarray(Y) > 0
    sets = arrange(positive, "auto", groups, weight)
    risk = LinearRisk(X, sets, LovaszHinge(loss), intercept, Serial())
    return risk.linear_sets()


def fit_blocks(sets, C, **options):
    return dual_blocks(sets, C, **{"tol": 1e-3, "max_iter": 300, "callback": None, **options})


def least(sets, C):
    """The minimum, over every vertex of every set."""
    X = sets.X.toarray() if sp.issparse(sets.X) else sets.X
    if sets.intercept:
        X = np.column_stack([X, np.ones(len(X))])
    risks = []
    for i, weight in enumerate(sets.weights):
        truth = sets.labels.row(i)
        values = reference.all_values(sets.surrogate.loss.set_function(truth))
        slopes, offsets = reference.hinge_planes(values, case=1)
        signed = slopes * (2.0 * truth - 1.0)
        if sets.by_label:
            planes = np.einsum("kj,d->kjd", signed, X[i]).reshape(len(signed), -1)
        else:
            planes = signed @ X[sets.labels.offsets[i] : sets.labels.offsets[i + 1]]
        risks.append((weight * planes, weight * offsets))
    return reference.least_objective(risks, C)


def assert_honest(fit, sets, C, minimum):
    assert fit.value == pytest.approx(0.5 * fit.w @ fit.w + C * sets.risk(fit.w)[0], rel=1e-12)
    slack = 2e-6 * max(1.0, minimum)
    assert fit.bound - slack <= minimum <= fit.value + slack
    assert np.all(np.diff(fit.history.primal) <= 0)
    assert np.all(np.diff(fit.history.dual) >= -1e-12 * np.maximum(1.0, fit.history.primal[1:]))
    assert len(fit.history.primal) == fit.n_iter


# -------------------------------------------------------------------------------------- projections


@given(data=st.data())
def test_projections_meet_their_inequality(data):
    """<z - b, c - b> <= 0 for every c of the polymatroid, and b is one of them."""
    loss = data.draw(st.sampled_from(list(LOSSES.values())))
    truth = data.draw(st.integers(1, 6).flatmap(masks))
    scale = data.draw(st.sampled_from([1e-3, 1.0, 1e3]))
    z = scale * data.draw(arrays(len(truth))) * data.draw(st.sampled_from([0.1, 1.0, 1e6]))
    labels = read_labels(truth[None])
    found, factor = LovaszHinge(loss)._polymatroids(labels)
    sets = _core.SetBlocks(
        labels.positive,
        labels.offsets,
        np.array([scale * factor]),
        found.kind,
        found.tables,
        found.starts,
    )
    b = np.empty(len(truth))
    _core.project_sets(sets, z, b)
    values = scale * reference.all_values(loss.set_function(truth))
    worst = values.max()
    assert np.all(b >= 0)
    assert np.all(reference.all_masks(len(truth)) @ b <= values - values[0] + 1e-12 * worst)
    assert 1.0 <= _core.largest_excess(sets, b) <= 1.0 + 1e-12
    towards = z - b
    order = np.argsort(-towards, kind="stable")
    most = np.maximum(towards[order], 0.0) @ reference.gains(values, order)
    assert most - towards @ b <= 1e-11 * worst * max(np.abs(z).max(), worst)


@pytest.mark.parametrize("p", [3, 20, 60])
def test_jaccards_own_projection_is_that_of_its_table(p):
    """Pools of one element after the other, against cuts over the whole grid of counts."""
    rng = np.random.default_rng(p)
    truth = rng.random((40, p)) < 0.3
    truth[:, 0] = True  # an empty truth has no table of two counts
    z = rng.normal(size=truth.size)
    z[::5] = np.round(z[::5], 1)  # ties
    table = CountsLoss(lambda n, q, m, r: (n + q) / np.maximum(m + q, 1))
    answers = []
    for loss in (Jaccard(), table):
        labels = read_labels(truth)
        found, factor = LovaszHinge(loss)._polymatroids(labels)
        scales = np.full(len(truth), factor)
        words = (found.kind, found.tables, found.starts)
        sets = _core.SetBlocks(labels.positive, labels.offsets, scales, *words)
        answers.append((found.kind, np.empty(truth.size)))
        _core.project_sets(sets, z, answers[-1][1])
    (own, b), (other, c) = answers
    assert own != other
    np.testing.assert_allclose(b, c, rtol=0, atol=1e-13)


# -------------------------------------------------------------------------------------- the minimum


@st.composite
def problems(draw, grouped):
    n, d = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    X = draw(arrays(n * d, -2.0, 2.0)).reshape(n, d)
    if grouped:
        groups = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
        return X, draw(masks(n)), groups, None
    p = draw(st.integers(1, 3))
    weight = 0.25 * np.array(draw(st.lists(st.integers(1, 8), min_size=n, max_size=n)))
    return X, draw(masks(n * p)).reshape(n, p), None, weight


@pytest.mark.parametrize("grouped", [False, True], ids=["rows", "groups"])
@given(data=st.data())
def test_the_minimum_of_all_vertices(grouped, data):
    loss = data.draw(st.sampled_from(list(LOSSES.values())))
    X, Y, groups, weight = data.draw(problems(grouped))
    C = data.draw(st.sampled_from([0.1, 1.0, 10.0]))
    intercept = data.draw(st.booleans())
    X = sp.csr_matrix(X) if data.draw(st.booleans()) else X
    sets = linear_sets(X, Y, loss, intercept=intercept, groups=groups, weight=weight)
    fit = fit_blocks(sets, C, max_iter=15)
    assert_honest(fit, sets, C, least(sets, C))
    assert fit.learner == "dual_blocks"


SHAPES = [(60, 8, 2), (40, 25, 3), (30, 60, 3), (20, 200, 2)]


def draw(n, d, p, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    Y = X @ random.normal(size=(d, p)) + np.sqrt(d) * random.normal(size=(n, p)) > 0
    return X, Y


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("n", "d", "p"), SHAPES)
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_the_hinge_is_liblinears(n, d, p, C, sparse):
    X, Y = draw(n, d, p)
    if sparse:
        X = sp.random(n, d, density=0.3, random_state=0, format="csr")
    weight = np.random.default_rng(1).integers(1, 4, size=n).astype(float)
    sets = linear_sets(X, Y, Hamming(), weight=weight)
    fit = fit_blocks(sets, C, tol=1e-5)
    svc = LinearSVC(loss="hinge", dual=True, C=C, tol=1e-8, max_iter=100_000, random_state=0)
    value = 0.0
    for y in Y.T:
        svc.fit(X, y, sample_weight=weight)
        slack = 1 - np.where(y, 1.0, -1.0) * svc.decision_function(X)
        value += 0.5 * float(np.sum(svc.coef_**2) + np.sum(svc.intercept_**2))
        value += C * float(weight @ np.maximum(slack, 0))
    assert fit.converged
    assert fit.bound <= value * (1 + 1e-9)
    assert fit.value == pytest.approx(value, rel=2e-5)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("n", "d", "p"), SHAPES)
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_jaccard_is_that_of_planes(n, d, p, C, sparse):
    """Each bound is below the value that the other one has found."""
    X, Y = draw(n, d, p)
    if sparse:
        X = sp.random(n, d, density=0.3, random_state=0, format="csr")
    sets = linear_sets(X, Y, Jaccard())
    fit = fit_blocks(sets, C, tol=1e-4)
    other = one_slack(sets.risk, sets.dimension, C, tol=1e-2)
    assert fit.converged
    assert fit.bound <= other.value
    assert other.bound <= fit.value
    assert fit.value <= other.value * (1 + 1e-4)


def test_each_kind_of_features_and_of_blocks_is_met():
    """So that the shapes above are those that they are meant to be."""
    kinds = {
        (type(s.features.rows).__name__, type(_blocks(s, 1.0, None)).__name__)
        for shape in SHAPES
        for X, Y in [draw(*shape)]
        for features in (X, sp.csr_matrix(X))
        for loss in (Hamming(), Jaccard())
        for s in [linear_sets(features, Y, loss)]
    }
    rows = {"DenseRows", "SparseRows", "GramRows"}
    assert {row for row, _ in kinds} == rows
    assert {block for _, block in kinds} == {LabelBlocks.__name__, SetBlocks.__name__}
    pulled = _blocks(linear_sets(*draw(60, 8, 2), Jaccard()), 30.0, None)
    assert pulled._acceleration.pull > 0


def test_an_example_without_features():
    """|x| = 0: its slack is 1 whatever the weights, and its share is as large as can be."""
    X, Y = np.zeros((3, 2)), np.array([[1, 0], [0, 0], [1, 1]])
    for loss in LOSSES.values():
        sets = linear_sets(X, Y, loss, intercept=False)
        fit = fit_blocks(sets, 2.0, tol=0.0)
        assert fit.converged
        assert fit.value == pytest.approx(2.0 * fit.risk_at_zero)
        assert not fit.w.any()


# ---------------------------------------------------------------------------- starts, ends, threads


@each_loss
@pytest.mark.parametrize("path", [(0.1, 1.0, 20.0), (20.0, 1.0, 0.1)], ids=["rising", "falling"])
def test_a_fit_at_another_price_is_a_start(loss, path):
    sets = linear_sets(*draw(40, 25, 3), loss)
    fit = None
    for C in path:
        fit = fit_blocks(sets, C, tol=1e-4, init=fit)
        alone = fit_blocks(sets, C, tol=1e-4)
        assert fit.converged
        assert fit.bound <= alone.value
        assert alone.bound <= fit.value
        planes = fit.planes.offsets + fit.planes.slopes @ alone.w
        assert planes.max() <= sets.risk(alone.w)[0] * (1 + 1e-9)


@pytest.mark.parametrize("loss", [Jaccard(), Hamming()], ids=["jaccard", "hamming"])
def test_weights_of_a_near_price_are_proved_by_passes(loss):
    """Of many samples and weights, where planes would need many rounds for the proof alone."""
    sets = linear_sets(*draw(600, 25, 20), loss)
    fit = learn_linear(sets, 0.02)
    for C in (0.05, 0.1, 0.03):
        fit = learn_linear(sets, C, init=fit)
        alone = learn_linear(sets, C)
        assert fit.learner == "dual_blocks"
        assert fit.converged
        assert fit.bound <= alone.value
        assert alone.bound <= fit.value
        assert fit.value == 0.5 * fit.w @ fit.w + C * sets.risk(fit.w)[0]
    assert not is_near(fit, 100 * fit.C)


def test_both_in_turn_are_one_fit():
    """Features of very different sizes: planes, then blocks, then Newton's steps."""
    X, Y = draw(60, 12, 6)
    X = X * np.geomspace(1e-2, 1e3, 12)
    seen = []
    sets = linear_sets(X, Y, Jaccard())
    fit = learn_linear(sets, 10.0, tol=1e-7, max_iter=130, callback=seen.append)
    assert fit.learner == "one_slack, dual_blocks, interior_point"
    assert [now.n_iter for now in seen] == list(range(1, fit.n_iter + 1))
    assert np.all(np.diff([now.seconds for now in seen]) >= 0)
    assert np.all(np.diff(fit.history.primal) <= 0)
    assert np.all(np.diff(fit.history.dual) >= 0)
    assert len(fit.history.primal) == fit.n_iter <= 130
    other = fit_blocks(sets, 10.0, tol=1e-2, max_iter=30)
    assert fit.bound <= other.value
    assert other.bound <= fit.value


def test_control_c_leaves_the_best_so_far():
    sets = linear_sets(*draw(40, 25, 3), Jaccard())
    whole = fit_blocks(sets, 10.0, tol=1e-6)
    for rounds in (1, 3, 5):

        def callback(now, rounds=rounds):
            if now.n_iter == rounds:
                raise KeyboardInterrupt

        fit = learn_linear(sets, 10.0, tol=1e-6, callback=callback)
        assert fit.interrupted
        assert fit.n_iter == rounds
        assert fit.bound <= whole.value
        assert fit.value >= whole.bound
        assert fit.value == 0.5 * fit.w @ fit.w + 10.0 * sets.risk(fit.w)[0]


@pytest.mark.parametrize("surrogate", ["hinge", "lovasz"])
def test_the_number_of_threads_changes_no_bit(surrogate):
    X, Y = draw(40, 60, 5)
    one = SetClassifier(surrogate=surrogate, C=10.0).fit(X, Y)
    assert one.learner_ == "dual_blocks"
    for n_jobs in (2, 3):
        model = SetClassifier(surrogate=surrogate, C=10.0, n_jobs=n_jobs).fit(X, Y)
        assert np.array_equal(model.coef_, one.coef_)
        assert np.array_equal(model.history_.dual, one.history_.dual)


def test_the_learner_is_chosen_by_shape():
    wide, tall = draw(60, 100, 3), draw(2000, 5, 20)
    assert SetClassifier().fit(*wide).learner_ == "dual_blocks"
    assert SetClassifier().fit(*tall).learner_ == "one_slack"
    # No maximum over a polymatroid; greedy maxima, which are no planes below; one set alone.
    greedy = MarginRescaling("jaccard", maximizer="greedy")
    assert SetClassifier(surrogate="margin", C=0.01).fit(*wide).learner_ == "kept_planes"
    with pytest.warns(UserWarning, match="exact"):
        assert SetClassifier(surrogate=greedy, C=0.01).fit(*wide).learner_ == "one_slack"
    assert SetClassifier(C=0.01).fit(wide[0], wide[1][:, 0]).learner_ == "one_slack"
