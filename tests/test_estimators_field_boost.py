"""FieldBoost: the linear program over all weak learners and all labellings, and what follows."""

import pickle

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

import setwise as sw
from setwise import FieldBoost
from setwise.estimators._fields._field_search import FieldSearch, Indicators, PlainFeatures
from setwise.learning import StumpSearch

# So few weak learners by design.
few = pytest.mark.filterwarnings("ignore:.* stopped at n_estimators")


def chain(n):
    return np.array([(i, i + 1) for i in range(n - 1)]).reshape(-1, 2)


def rings(rng, n_graphs, size=8, noise=0.6):
    """Grids where a disc is to be found; the measurement is far from 0 in it, on either side."""
    edges = sw.fields.grid_edges((size, size))
    at = np.stack(np.divmod(np.arange(size * size), size), axis=1)
    X, Y = [], []
    for _ in range(n_graphs):
        middle = rng.uniform(size / 4, 3 * size / 4, 2)
        labels = (((at - middle) ** 2).sum(axis=1) < (size / 3.5) ** 2).astype(int)
        x = 2.0 * labels * rng.choice([-1, 1], len(at)) + noise * rng.normal(size=len(at))
        differ = labels[edges[:, 0]] != labels[edges[:, 1]]
        contrast = np.abs(differ + 0.3 * rng.normal(size=len(edges)))
        X.append((np.column_stack([x, rng.normal(size=len(at))]), edges, contrast[:, None]))
        Y.append(labels)
    return X, Y


def all_stumps(X, low):
    """The answers of every decision stump on rows of X, with ``low`` for no: (n, J)."""
    columns = [np.ones(len(X)), np.full(len(X), low)]
    for x in X.T:
        for t in np.unique(x)[:-1]:
            columns += [np.where(x > t, 1.0, low), np.where(x > t, low, 1.0)]
    return np.column_stack(columns)


def least_value(X, Y, C, weights, of_nodes, of_edges):
    """The linear program with every column and every labelling, by scipy."""
    nodes = of_nodes(np.vstack([x[0] for x in X]))
    pairs = of_edges(np.vstack([x[2] for x in X]))
    first = begin = 0
    rows, heights = [], []
    for i, (x, y, c) in enumerate(zip(X, Y, weights, strict=True)):
        n, e = len(x[0]), len(x[1])
        graph = nodes[first : first + n], x[1], pairs[begin : begin + e]
        slopes, loss = reference.field_planes(graph, y, 2, c)
        rows.append(np.hstack([slopes, np.tile(-np.eye(len(X))[i], (len(loss), 1))]))
        heights.append(-loss)
        first, begin = first + n, begin + e
    cost = np.concatenate([np.ones(nodes.shape[1] + pairs.shape[1]), np.full(len(X), C / len(X))])
    answer = linprog(cost, np.vstack(rows), np.concatenate(heights), method="highs")
    assert answer.success
    return answer.fun


def objective(model, X, Y, C, weights):
    """1'w + C R by enumeration, of the fitted weights."""
    risks = []
    for x, y, c in zip(X, Y, weights, strict=True):
        field = model.to_field(x)
        every = reference.all_labelings(len(y), 2)
        loss = np.array([np.asarray(c)[z != y].sum() for z in every])
        risks.append((loss + field.energy(y) - field.energy(every)).max())
    return model.estimator_weights_.sum() + C * np.mean(risks)


@pytest.mark.filterwarnings("ignore:no weak learner lowers the objective")
@pytest.mark.parametrize("kind", ["stump", "feature"])
@given(seed=st.integers(0, 2**32 - 1), C=st.sampled_from([1.0, 5.0, 40.0]))
def test_the_optimum_is_that_of_the_full_linear_program(kind, seed, C):
    rng = np.random.default_rng(seed)
    sizes = [3, 2]
    X = [(rng.normal(size=(n, 2)), chain(n), rng.random((n - 1, 2))) for n in sizes]
    Y = [rng.integers(0, 2, n) for n in sizes]
    Y[0][:2] = 0, 1
    weights = [rng.random(n) for n in sizes]
    model = FieldBoost(kind, C=C, tol=1e-7, n_estimators=500).fit(X, Y, weights)
    if kind == "stump":
        best = least_value(
            X, Y, C, weights, lambda x: all_stumps(x, -1.0), lambda x: all_stumps(x, 0.0)
        )
    else:
        best = least_value(X, Y, C, weights, lambda x: np.hstack([x, -x]), lambda x: x)
    assert objective(model, X, Y, C, weights) == pytest.approx(best, rel=1e-5, abs=1e-6)
    assert model.history_.dual[-1] <= best + 1e-6
    assert model.certified_
    assert np.all(model.estimator_weights_ >= 0)
    assert all(model.to_field(x).is_submodular for x in X)


def test_weak_duality_at_every_round():
    X, Y = rings(np.random.default_rng(0), 5, size=6)
    history = FieldBoost(C=50.0).fit(X, Y).history_
    assert np.all(history.primal >= history.dual - 1e-9)
    assert np.all(np.diff(history.primal) <= 1e-9)


def test_learns_what_no_linear_field_can():
    rng = np.random.default_rng(0)
    X, Y = rings(rng, 12)
    test, truth = rings(rng, 8)
    boost = FieldBoost(C=300.0, n_estimators=100).fit(X, Y)
    linear = sw.FieldSVM(1.0).fit(X, Y)
    alone = np.concatenate(boost.decision_function(test)) > 0
    assert boost.score(test, truth) > 0.95
    assert boost.score(test, truth) > np.mean(alone == np.concatenate(truth))
    assert boost.score(test, truth) > linear.score(test, truth) + 0.1


def test_importances_name_what_matters():
    # At other values of C several vertices of the program are the best.
    X, Y = rings(np.random.default_rng(0), 10)
    model = FieldBoost(C=0.7, n_estimators=60).fit(X, Y)
    shares = model.feature_importances_
    assert shares.shape == (3,)
    assert shares.sum() == pytest.approx(1.0)
    assert shares[0] > 3 * shares[1]
    assert shares[2] > shares[1]


def test_the_field_is_the_model():
    X, Y = rings(np.random.default_rng(1), 4, size=5)
    model = FieldBoost(C=30.0).fit(X, Y)
    for x, labels in zip(X, model.predict(X), strict=True):
        best = sw.solve_map(model.to_field(x))
        assert best.exact
        assert np.array_equal(labels, best.labels)
    assert sw.marginals(model.to_field(X[0])).probabilities.shape == (25, 2)


def test_stages_end_at_the_model():
    X, Y = rings(np.random.default_rng(0), 5, size=5)
    model = FieldBoost(C=30.0, n_estimators=20).fit(X, Y)
    stages = list(model.staged_predict(X))
    assert len(stages) == model.stages_.shape[0]
    assert all(map(np.array_equal, stages[-1], model.predict(X)))
    shares = [np.mean(np.concatenate(z) == np.concatenate(Y)) for z in stages]
    assert shares[-1] == pytest.approx(model.score(X, Y))


@few
@pytest.mark.parametrize("kind", ["tree", "feature", DecisionTreeClassifier(max_depth=2)])
def test_other_weak_learners(kind):
    X, Y = rings(np.random.default_rng(0), 5, size=5)
    X = [(np.column_stack([np.abs(x[:, 0]), np.ones(25)]), e, phi) for x, e, phi in X]
    model = FieldBoost((kind, "feature"), C=30.0, n_estimators=10, random_state=0).fit(X, Y)
    assert model.score(X, Y) > 0.7
    assert model.certified_ == (kind == "feature")
    edges = [e for e, s in zip(model.estimators_, model.estimator_segments_, strict=True) if s]
    assert all((learner.predict(np.array([[0.5]])) >= 0).all() for learner in edges)


def test_indicators_are_searched_exactly():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(12, 3)).astype(float)
    every = all_stumps(X, 0.0)
    for _ in range(20):
        weights = rng.normal(size=12)
        best = Indicators(StumpSearch(X))(weights)[0]
        assert weights @ best.response == pytest.approx((weights @ every).max())
        assert np.array_equal(best.response, best.learner.predict(X))
        assert set(best.response) <= {0.0, 1.0}


def test_both_parts_answer_best_first():
    rng = np.random.default_rng(0)
    nodes, pairs = rng.normal(size=(6, 2)), rng.random((5, 2))
    search = FieldSearch(
        PlainFeatures(nodes, signed=True),
        [PlainFeatures(pairs, signed=False)],
        np.array([0, 6, 11]),
    )
    assert search.exact
    for _ in range(20):
        weights = rng.normal(size=11)
        columns = search(weights)
        segments = [slice(0, 6), slice(6, 11)]
        gains = [weights[segments[c.segment]] @ c.response for c in columns]
        assert sorted(c.segment for c in columns) == [0, 1]
        assert gains == sorted(gains, reverse=True)
        assert max(gains) >= np.abs(weights[:6] @ nodes).max() - 1e-12


def test_the_number_of_threads_changes_no_bit():
    X, Y = rings(np.random.default_rng(0), 5, size=5)
    one, two = (FieldBoost(C=30.0, n_jobs=jobs).fit(X, Y) for jobs in (1, 2))
    assert np.array_equal(one.estimator_weights_, two.estimator_weights_)


@few
def test_scikit_learn_manners():
    X, Y = rings(np.random.default_rng(0), 6, size=4)
    model = FieldBoost(C=10.0, n_estimators=10)
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(model, {"C": [1.0, 10.0]}, cv=3).fit(X, Y)
    assert search.best_params_["C"] in (1.0, 10.0)
    fitted = model.fit(X, Y)
    again = pickle.loads(pickle.dumps(fitted))
    assert all(map(np.array_equal, again.predict(X), fitted.predict(X)))


def test_no_edges():
    X = [(np.array([[1.0], [-1.0]]), [], []), (np.array([[2.0], [-2.0]]), [], [])]
    model = FieldBoost(C=10.0).fit(X, [[1, 0], [1, 0]])
    assert [labels.tolist() for labels in model.predict(X)] == [[1, 0], [1, 0]]
    assert model.feature_importances_.tolist() == [1.0]


def test_a_gap_of_rounding_is_none():
    X, Y = rings(np.random.default_rng(0), 2, size=3)
    model = FieldBoost(C=10.0, tol=0.0).fit(X, Y)  # warnings are errors
    assert 0 <= model.gap_ <= 1e-9


def test_ending_at_n_estimators_says_so():
    X, Y = rings(np.random.default_rng(0), 5, size=5)
    with pytest.warns(
        ConvergenceWarning, match="FieldBoost stopped at n_estimators=4 .* tol=0.001"
    ):
        model = FieldBoost(C=30.0, n_estimators=4).fit(X, Y)
    assert model.gap_ > model.tol
    assert model.certified_  # the bound is a proof, whether it was reached or not
    history = model.history_
    assert model.gap_ == pytest.approx(
        history.gap[-1] / min(history.primal[0] - history.dual[-1], history.primal[-1])
    )
    assert FieldBoost(C=30.0).fit(X, Y, callback=lambda p: 1).n_iter_ == 1


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_units_of_costs_and_features_do_not_matter(unit):
    """Costs times s: all weights times s. Stumps see the order of a feature alone."""
    X, Y = rings(np.random.default_rng(2), 4, size=4)
    costs = [np.full(len(y), unit) for y in Y]
    plain, dear = FieldBoost().fit(X, Y), FieldBoost().fit(X, Y, costs)
    assert dear.history_.primal[-1] == pytest.approx(unit * plain.history_.primal[-1], rel=1e-3)
    assert dear.gap_ <= dear.tol
    scaled = [(unit * x, edges, unit * phi) for x, edges, phi in X]
    assert np.array_equal(FieldBoost().fit(scaled, Y).estimator_weights_, plain.estimator_weights_)
    # PlainFeatures themselves are cheaper in a larger unit, for the price of a weight is fixed.
    plain = FieldBoost("feature", C=3.0).fit(X, Y)
    cheap = FieldBoost("feature", C=3.0 / unit).fit(scaled, Y)
    assert cheap.history_.primal[-1] == pytest.approx(plain.history_.primal[-1] / unit, rel=1e-3)
    assert cheap.gap_ <= cheap.tol


def test_nothing_to_learn():
    """Weights that are not worth their price stay away, and that is an answer."""
    X, Y = rings(np.random.default_rng(0), 2, size=3)
    with pytest.warns(UserWarning, match="raise C"):
        model = FieldBoost(C=1e-6).fit(X, Y)
    assert model.estimator_weights_.sum() == 0
    assert model.predict(X)[0].shape == (9,)
    assert model.feature_importances_.tolist() == [0.0, 0.0, 0.0]


def test_bad_input():
    X, Y = rings(np.random.default_rng(0), 2, size=3)
    with pytest.raises(ValueError, match=r"Y must hold at least two labels, got \[0\]"):
        FieldBoost().fit(X, [np.zeros(9, int)] * 2)
    with pytest.raises(ValueError, match=r"estimator must be one of .*'stump'.* got 'bush'"):
        FieldBoost("bush").fit(X, Y)
    with pytest.raises(TypeError, match=r"estimator must be one of .* got int"):
        FieldBoost(("stump", 3)).fit(X, Y)
    without = [(nodes, edges, np.zeros((len(edges), 0))) for nodes, edges, _ in X]
    with pytest.raises(ValueError, match=r"estimator must be one of .*'feature' .* 'bush'"):
        FieldBoost(("stump", "bush")).fit(without, Y)
    for learner in ("stump", "feature"):
        with pytest.raises(ValueError, match="node_features must have at least one column"):
            FieldBoost(learner).fit([(nodes[:, :0], edges, f) for nodes, edges, f in X], Y)
    with pytest.raises(ValueError, match=r"C times the risk of zero scores must be below 1e\+20"):
        FieldBoost().fit(X, Y, node_weights=[np.full(9, 1e30)] * 2)
    with pytest.raises(ValueError, match="C must be positive, got -1"):
        FieldBoost(C=-1.0).fit(X, Y)
    with pytest.raises(NotFittedError):
        FieldBoost().predict(X)
    with pytest.raises(NotFittedError):
        _ = FieldBoost().feature_importances_
