"""FieldSVM: the problem it says it solves, solved; and what a fitted field can be asked."""

import pickle

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV

import setwise as sw
from setwise import FieldSVM


def chain(n):
    return np.array([(i, i + 1) for i in range(n - 1)]).reshape(-1, 2)


def graphs_of(rng, sizes, n_labels=2, d=2, k=2):
    """Random features and labels."""
    X = [(rng.normal(size=(n, d)), chain(n), rng.random((n - 1, k))) for n in sizes]
    Y = [rng.integers(0, n_labels, n) for n in sizes]
    Y[0][:n_labels] = np.arange(n_labels)
    return X, Y


def with_ones(X):
    return [(np.column_stack([x, np.ones(len(x))]), e, phi) for x, e, phi in X]


def stripes(rng, n_graphs, size=8, noise=1.2, n_labels=2):
    """Grids of a left and a right part, each node a noisy measurement of its label."""
    edges = sw.fields.grid_edges((size, size))
    X, Y = [], []
    for _ in range(n_graphs):
        at = np.sort(rng.integers(1, size, size=n_labels - 1))
        labels = np.searchsorted(at, np.tile(np.arange(size), size), side="right")
        means = np.eye(n_labels)[labels] if n_labels > 2 else 2.0 * labels[:, None] - 1
        x = means + noise * rng.normal(size=(size * size, means.shape[1]))
        X.append((x, edges, np.ones((len(edges), 1))))
        Y.append(labels)
    return X, Y


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.1, 1.0, 10.0]))
def test_the_optimum_is_that_of_the_program_over_all_labellings(seed, C):
    rng = np.random.default_rng(seed)
    X, Y = graphs_of(rng, [3, 2, 4])
    costs = [rng.random(len(y)) for y in Y]
    model = FieldSVM(C, tol=1e-7).fit(X, Y, node_weights=costs)
    planes = [
        reference.field_planes(x, y, 2, c) for x, y, c in zip(with_ones(X), Y, costs, strict=True)
    ]
    best = reference.least_objective(planes, C, range(3, 5))
    w = np.concatenate([model.coef_[0], model.intercept_, model.edge_coef_])
    mine = 0.5 * w @ w + C * sum((b + a @ w).max() for a, b in planes)
    assert mine == pytest.approx(best, rel=1e-5, abs=1e-6)
    assert model.history_.dual[-1] <= best + 1e-6
    assert np.all(model.edge_coef_ >= 0)
    assert model.certified_


@given(st.integers(0, 2**32 - 1))
def test_with_three_labels_the_gap_is_honest(seed):
    rng = np.random.default_rng(seed)
    X, Y = graphs_of(rng, [3, 3], n_labels=3)
    model = FieldSVM(1.0, tol=1e-5).fit(X, Y)
    planes = [
        reference.field_planes(x, y, 3, np.ones(len(y)))
        for x, y in zip(with_ones(X), Y, strict=True)
    ]
    best = reference.least_objective(planes, 1.0, range(9, 11))
    of_labels = np.column_stack([model.coef_, model.intercept_])
    w = np.concatenate([of_labels.ravel(), model.edge_coef_])
    mine = 0.5 * w @ w + sum((b + a @ w).max() for a, b in planes)
    zero = sum(b.max() for _, b in planes)
    assert mine - best <= model.gap_ * (zero - best) + 1e-6
    assert model.certified_  # so few labellings are all tried
    assert model.gap_ <= model.tol


def coupled(seed):
    """Three labels, dense graphs of four to seven nodes, edge features that couple strongly."""
    rng = np.random.default_rng(seed)
    d, k, scale = rng.integers(1, 4), rng.integers(1, 3), rng.choice([1.0, 3.0, 10.0])
    X, Y = [], []
    for n in rng.integers(4, 7, rng.integers(1, 4)):
        edges = np.array([(i, j) for i in range(n) for j in range(i) if rng.random() < 0.6], int)
        edges = np.concatenate([chain(n), edges.reshape(-1, 2)])
        X.append((rng.normal(size=(n, d)), edges, scale * rng.random((len(edges), k))))
        Y.append(rng.integers(0, 3, n))
    Y[0][:3] = 0, 1, 2
    return X, Y, float(rng.choice([0.1, 1.0, 10.0]))


def all_planes(X, Y):
    """Every labelling of every graph, as one matrix of planes each."""
    planes = []
    for (x, edges, phi), y in zip(with_ones(X), Y, strict=True):
        every = reference.all_labelings(len(y), 3)

        def features(z, x=x, edges=edges, phi=phi):
            differ = (z[:, edges[:, 0]] != z[:, edges[:, 1]]).astype(float)
            return np.hstack(
                [*(-(z == label).astype(float) @ x for label in range(3)), differ @ phi]
            )

        planes.append((features(y[None]) - features(every), (every != y).sum(axis=1)))
    return planes


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=settings.default.max_examples // 4)
def test_strong_coupling_of_three_labels_ends_at_the_optimum(seed):
    X, Y, C = coupled(seed)
    planes = all_planes(X, Y)
    dimension, k = planes[0][0].shape[1], X[0][2].shape[1]

    def exact(w):
        worst = [(a, b, int(np.argmax(b + a @ w))) for a, b in planes]
        return sum(b[j] + a[j] @ w for a, b, j in worst), sum(a[j] for a, _, j in worst)

    known = sw.learning.one_slack(
        exact, dimension, C, tol=1e-5, nonnegative=range(dimension - k, dimension), max_iter=1000
    )
    model = FieldSVM(C).fit(X, Y)  # that warns if it is above its tolerance
    of_labels = np.column_stack([model.coef_, model.intercept_])
    w = np.concatenate([of_labels.ravel(), model.edge_coef_])
    mine, zero = 0.5 * w @ w + C * exact(w)[0], C * exact(np.zeros(dimension))[0]
    rounding = 1e-9 * zero
    assert model.certified_
    assert mine - known.value <= model.tol * (zero - known.bound) + rounding
    assert mine - known.value <= model.gap_ * (zero - known.bound) + rounding
    history = model.history_
    assert history.primal[-1] == pytest.approx(mine, abs=rounding)
    assert np.all(history.primal >= known.bound - rounding)  # no objective is below the least
    assert np.all(history.dual <= known.value + rounding)
    assert len(history.seconds) == model.n_iter_


def test_moves_that_settle_are_refuted():
    """Graphs that are too large to try all labellings: the rounding of the relaxation helps."""
    X, Y = stripes(np.random.default_rng(0), 2, size=6, n_labels=3)
    model = FieldSVM(100.0).fit(X, Y)
    assert model.certified_
    assert model.gap_ <= model.tol


def test_no_edges_is_a_support_vector_machine():
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(0)
    X = [(rng.normal(size=(20, 3)), [], np.zeros((0, 1))) for _ in range(4)]
    Y = [(x[0][:, 0] + rng.normal(size=20) > 0).astype(int) for x in X]
    model = FieldSVM(2.0, tol=1e-6, fit_intercept=False).fit(X, Y)
    # A margin of 1 between labels 0 and 1 of a score f is a hinge of margin 1 on f.
    plain = LinearSVC(loss="hinge", C=2.0, fit_intercept=False, tol=1e-8, max_iter=100_000)
    plain.fit(np.vstack([x[0] for x in X]), np.concatenate(Y))
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-3)


def test_learns_to_listen_to_neighbours():
    rng = np.random.default_rng(0)
    X, Y = stripes(rng, 12)
    test, truth = stripes(rng, 8)
    model = FieldSVM(1.0).fit(X, Y)
    scores = np.concatenate(model.decision_function(test))
    alone = np.mean((scores > 0) == np.concatenate(truth))
    assert model.edge_coef_[0] > 0
    assert model.score(test, truth) > max(0.95, alone + 0.1)


def test_several_labels():
    rng = np.random.default_rng(0)
    X, Y = stripes(rng, 10, n_labels=3, noise=0.6)
    test, truth = stripes(rng, 6, n_labels=3, noise=0.6)
    model = FieldSVM(1.0, tol=1e-2).fit(X, Y)
    assert model.coef_.shape == (3, 3)
    assert model.decision_function(test)[0].shape == (64, 3)
    assert model.score(test, truth) > 0.95
    assert model.gap_ >= 0


def test_recovers_a_planted_field():
    """Labels that are the best of a field can be separated, if its margins are large enough."""
    rng = np.random.default_rng(3)
    X, Y = [], []
    for _ in range(10):
        x, phi = rng.normal(size=(12, 2)), rng.random((11, 1))
        field = sw.fields.Field(np.column_stack([np.zeros(12), -x @ [3.0, -2.0]]))
        field += sw.fields.Potts(chain(12), 1.5 * phi[:, 0])
        X.append((x, chain(12), phi))
        Y.append(sw.solve_map(field).labels)
    model = FieldSVM(1e4, tol=1e-4, fit_intercept=False).fit(X, Y)
    assert model.score(X, Y) == 1.0
    direction = model.coef_[0] / np.linalg.norm(model.coef_)
    np.testing.assert_allclose(direction, np.array([3.0, -2.0]) / np.sqrt(13), atol=0.1)


def test_the_field_is_the_model():
    rng = np.random.default_rng(1)
    X, Y = stripes(rng, 4, size=5)
    model = FieldSVM(0.1).fit(X, Y)
    for x, labels in zip(X, model.predict(X), strict=True):
        field = model.to_field(x)
        assert field.is_submodular
        best = sw.solve_map(field)
        assert best.exact
        assert field.energy(labels) == pytest.approx(best.value)
        assert np.array_equal(labels, best.labels)
    post = sw.marginals(model.to_field(X[0]))
    assert post.probabilities.shape == (25, 2)


@pytest.mark.parametrize("names", [("horse", "sky"), (-1, 1), (False, True), (3, 8)])
def test_any_two_labels(names):
    X, Y = stripes(np.random.default_rng(0), 3, size=4)
    named = [np.array(names)[y] for y in Y]
    model = FieldSVM().fit(X, named)
    plain = FieldSVM().fit(X, Y)
    assert model.classes_.tolist() == sorted(names)
    assert np.array_equal(model.coef_, plain.coef_)
    assert np.array_equal(model.predict(X)[0], np.array(names)[plain.predict(X)[0]])
    assert model.score(X, named) == plain.score(X, Y)


def test_the_number_of_threads_changes_no_bit():
    for n_labels in (2, 3):
        X, Y = stripes(np.random.default_rng(0), 5, size=5, n_labels=n_labels)
        one, two = (FieldSVM(n_jobs=jobs, tol=1e-2).fit(X, Y) for jobs in (1, 2))
        assert np.array_equal(one.coef_, two.coef_)
        assert np.array_equal(one.edge_coef_, two.edge_coef_)
        assert all(map(np.array_equal, one.predict(X), two.predict(X)))


def test_node_weights_are_what_mistakes_cost():
    X, Y = stripes(np.random.default_rng(0), 4, size=4)
    ones = [np.ones(16)] * 4
    assert np.array_equal(FieldSVM().fit(X, Y).coef_, FieldSVM().fit(X, Y, ones).coef_)
    model = FieldSVM(1.0).fit(X, Y)
    right = [p == y for p, y in zip(model.predict(X), Y, strict=True)]
    weights = [np.arange(16.0)] * 4
    expected = np.average(np.concatenate(right), weights=np.concatenate(weights))
    assert model.score(X, Y, node_weights=weights) == pytest.approx(expected)


def test_scikit_learn_manners():
    X, Y = stripes(np.random.default_rng(0), 6, size=4)
    model = FieldSVM(0.5, tol=1e-2)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(C=2.0).C == 2.0
    search = GridSearchCV(FieldSVM(), {"C": [0.01, 1.0]}, cv=3).fit(X, Y)
    assert search.best_params_["C"] in (0.01, 1.0)
    fitted = model.fit(X, Y)
    again = pickle.loads(pickle.dumps(fitted))
    assert all(map(np.array_equal, again.predict(X), fitted.predict(X)))


def test_a_fit_that_ends_early_says_so():
    X, Y = stripes(np.random.default_rng(0), 4)
    with pytest.warns(ConvergenceWarning, match="FieldSVM stopped after 2 rounds"):
        FieldSVM(10.0, max_iter=2).fit(X, Y)
    rounds = []
    early = FieldSVM(10.0).fit(X, Y, callback=lambda p: rounds.append(p) or len(rounds) == 3)
    assert len(rounds) == early.n_iter_ == 3
    assert rounds[-1].relative_gap == early.gap_ > early.tol
    assert FieldSVM(10.0).fit(X, Y, callback=lambda p: "enough").n_iter_ == 1
    several, truth = stripes(np.random.default_rng(0), 2, size=4, n_labels=3)
    early = FieldSVM(10.0).fit(several, truth, callback=lambda p: p.n_iter == 6)
    assert early.coef_.any()
    assert early.history_.primal[-1] < early.history_.primal[0]  # proved at the end


def test_a_fit_without_progress_ends_and_says_so(monkeypatch):
    X, Y = stripes(np.random.default_rng(0), 4)
    monkeypatch.setattr("setwise.learning._cutting_planes._learner._PATIENCE", 5)
    monkeypatch.setattr("setwise._foundation._search.STANDS_STILL", 1e-3)
    with pytest.warns(ConvergenceWarning, match="where its gap stands still: scale the features"):
        model = FieldSVM(10.0).fit(X, Y)
    assert 6 <= model.n_iter_ < 20


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize(("unit", "cost"), [(1e-6, 1.0), (1e6, 1.0), (1.0, 1e-6), (1.0, 1e6)])
def test_units_go_into_c(n_labels, unit, cost):
    """Features times a and costs times s with C times s / a^2: the same problem, w times s / a."""
    X, Y = stripes(np.random.default_rng(1), 3, size=4, n_labels=n_labels)
    plain = FieldSVM(1.0, fit_intercept=False).fit(X, Y)
    scaled = [(unit * x, edges, unit * phi) for x, edges, phi in X]
    costs = [np.full(len(y), cost) for y in Y]
    other = FieldSVM(cost / unit**2, fit_intercept=False).fit(scaled, Y, costs)
    assert other.n_iter_ <= 2 * plain.n_iter_
    assert other.gap_ <= other.tol
    objective = plain.history_.primal[-1] * cost**2 / unit**2
    assert other.history_.primal[-1] == pytest.approx(objective, rel=0.01)


@pytest.mark.parametrize(("unit", "C"), [(1.0, 1e6), (1e2, 1e6), (1e3, 1e3), (1e4, 1.0)])
def test_a_high_price_of_large_features_excuses_no_gap(unit, C):
    """Where the labels can be told apart, P is 1e-10 of P(0), and rounding is less than P."""
    rng = np.random.default_rng(0)
    X, Y = [], []
    for _ in range(4):
        x = rng.normal(size=(6, 2))
        y = (x[:, 0] + 0.3 * rng.normal(size=6) > 0).astype(int)
        x[:, 0] += 2 * y - 1
        X.append((unit * x, chain(6), np.full((5, 1), unit)))
        Y.append(y)
    model = FieldSVM(C, fit_intercept=False).fit(X, Y)
    value, bound = model.history_.primal[-1], model.history_.dual[-1]
    assert 0 < value - bound <= 1e-3 * value
    assert model.gap_ == pytest.approx((value - bound) / value, rel=1e-9)
    planes = [reference.field_planes(x, y, 2, np.ones(6)) for x, y in zip(X, Y, strict=True)]
    w = np.concatenate([model.coef_[0], model.edge_coef_])
    mine = 0.5 * w @ w + C * sum((b + a @ w).max() for a, b in planes)
    assert value == pytest.approx(mine, rel=1e-6, abs=1e-15 * 24 * C)  # rounding of P(0)


def test_constant_and_repeated_columns():
    X, Y = stripes(np.random.default_rng(0), 3, size=4)
    wide = [(np.column_stack([x, x, np.full(len(x), 3.0)]), e, phi) for x, e, phi in X]
    model = FieldSVM(1.0, tol=1e-6).fit(wide, Y)
    assert model.gap_ <= 1e-6
    assert model.coef_[0, 0] == pytest.approx(model.coef_[0, 1], abs=1e-3)
    one = FieldSVM().fit(wide[:1], Y[:1])
    assert one.predict(wide[:1])[0].shape == (16,)


def test_a_graph_without_nodes():
    X, Y = stripes(np.random.default_rng(0), 3, size=4)
    nothing = np.zeros((0, 1)), [], []
    model = FieldSVM().fit([*X, nothing], [*Y, []])
    np.testing.assert_allclose(model.coef_, FieldSVM().fit(X, Y).coef_)
    assert model.predict([nothing])[0].shape == (0,)


def test_one_node_and_no_edge():
    X = [([[1.0]], [], []), ([[-1.0]], [], [])]
    model = FieldSVM(10.0).fit(X, [[1], [0]])
    assert [labels.tolist() for labels in model.predict(X)] == [[1], [0]]
    assert model.edge_coef_.shape == (0,)


def test_the_first_graph_need_not_have_edges():
    X, Y = stripes(np.random.default_rng(0), 3, size=4)
    alone = (np.ones((1, 1)), [], [])
    assert FieldSVM().fit([alone, *X], [[1], *Y]).edge_coef_.shape == (X[0][2].shape[1],)


def test_graphs_may_come_one_by_one():
    X, Y = stripes(np.random.default_rng(0), 3, size=4)
    model = FieldSVM().fit(iter(X), iter(Y))
    assert model.score(iter(X), iter(Y)) == model.score(X, Y)


GOOD = (np.zeros((2, 1)), [[0, 1]], [[1.0]])


@pytest.mark.parametrize(
    ("X", "Y", "error", "sentence"),
    [
        (3, [[0, 1]], TypeError, "X must be a sequence of graphs, got int"),
        ([], [], ValueError, "X must hold at least one graph, got none"),
        ([np.zeros((2, 1))], [[0, 1]], TypeError, r"X\[0\] must be a tuple .* got ndarray"),
        ([GOOD[:2]], [[0, 1]], TypeError, r"X\[0\] must be a tuple .* got 2 entries"),
        (
            [GOOD, (np.zeros((2, 1)), [[0, 1]], [[-1.0]])],
            [[0, 1], [0, 1]],
            ValueError,
            r"edge_features of X\[1\] must not be negative, so that cuts .* got -1",
        ),
        (
            [(np.zeros((2, 1)), [[0, 2]], [[1.0]])],
            [[0, 1]],
            ValueError,
            r"X\[0\]: edges must join the field's 2 variables, numbered from 0, got 2",
        ),
        (
            [(np.zeros((2, 1)), [[1, 1]], [[1.0]])],
            [[0, 1]],
            ValueError,
            r"X\[0\]: edges must join two different variables, got \(1, 1\)",
        ),
        (
            [(np.zeros((2, 1)), [[0, 1]], [1.0])],
            [[0, 1]],
            ValueError,
            r"edge_features of X\[0\] must have shape \(1, any\), got \(1,\)",
        ),
        (
            [(np.array([[0.0], [np.nan]]), [[0, 1]], [[1.0]])],
            [[0, 1]],
            ValueError,
            r"node_features of X\[0\] must be finite, got nan",
        ),
        (
            [GOOD, (np.zeros((2, 2)), [[0, 1]], [[1.0]])],
            [[0, 1], [0, 1]],
            ValueError,
            r"node_features of X\[1\] must have 1 columns, got 2",
        ),
        ([GOOD], 3, TypeError, "Y must be a sequence of arrays, got int"),
        ([GOOD], [[0, 1], [0, 1]], ValueError, "Y must have an array for each of 1 graphs, got 2"),
        ([GOOD], [[0, 1, 1]], ValueError, r"Y\[0\] must have shape \(2,\), got \(3,\)"),
        (
            [GOOD, GOOD],
            [[0, 1], ["a", "b"]],
            TypeError,
            "Y must be of one kind, got both words and numbers",
        ),
        ([GOOD], [[0, 0]], ValueError, r"Y must hold at least two labels, got \[0\]"),
        (
            [GOOD],
            [np.array(["a", 1], object)],
            TypeError,
            "Y must hold labels of one kind, got int, str",
        ),
        ([GOOD], [[0.5, 0.0]], ValueError, "Y must hold labels, got numbers that are not whole"),
    ],
)
def test_bad_input(X, Y, error, sentence):
    with pytest.raises(error, match=sentence):
        FieldSVM().fit(X, Y)


def test_bad_options():
    with pytest.raises(ValueError, match="C must be positive, got 0"):
        FieldSVM(0.0).fit([GOOD], [[0, 1]])
    with pytest.raises(TypeError, match="callback must be callable or None, got int"):
        FieldSVM().fit([GOOD], [[0, 1]], callback=3)
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        FieldSVM(n_jobs=0).fit([GOOD], [[0, 1]])
    with pytest.raises(ValueError, match="node_weights must not be negative, got -1"):
        FieldSVM().fit([GOOD], [[0, 1]], node_weights=[[1.0, -1.0]])
    with pytest.raises(NotFittedError):
        FieldSVM().predict([GOOD])
    model = FieldSVM().fit([GOOD], [[0, 1]])
    with pytest.raises(ValueError, match=r"node_features of X\[0\] must have 1 columns, got 2"):
        model.predict([(np.zeros((2, 2)), [[0, 1]], [[1.0]])])
    with pytest.raises(ValueError, match="node_weights must not be zero for every node"):
        model.score([GOOD], [[0, 1]], node_weights=[[0.0, 0.0]])
