"""A classifier's scores as node features, and what is tuned on a set loss in folds."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import setwise as sw
from setwise import FieldBoost, FieldSVM
from setwise.estimators._fields._field_measure import Measure, best_biases

LEARNERS = [FieldSVM(0.1, tol=0.01), FieldBoost("feature", tol=0.1)]


def rare(rng, n_graphs, n=20, share=0.15, n_labels=2):
    """Chains whose labels beyond the first are rare, each node a noisy measurement."""
    edges = np.array([(i, i + 1) for i in range(n - 1)])
    X, Y = [], []
    for _ in range(n_graphs):
        labels = np.zeros(n, int)
        for label in range(1, n_labels):
            begin, width = rng.integers(0, n - 4), 1 + int(share * n)
            labels[begin : begin + width] = label
        x = np.eye(n_labels)[labels] + 0.8 * rng.normal(size=(n, n_labels))
        X.append((np.column_stack([x, np.ones(n)]), edges, np.ones((n - 1, 1))))
        Y.append(labels)
    return X, Y


@pytest.mark.parametrize("n_labels", [2, 3])
def test_scores_are_those_of_models_that_had_not_seen_the_graph(n_labels):
    X, Y = rare(np.random.default_rng(0), 6, n_labels=n_labels)
    classifier = LogisticRegression(C=0.5)
    model = FieldSVM(0.1, scores=classifier, cv=3, tol=1e-6).fit(X, Y)

    def scores(fitted, x):
        logs = np.log(fitted.predict_proba(x[0]))
        return logs[:, 1:] - logs[:, :1] if n_labels == 2 else logs

    by_hand = [None] * 6
    for rest, held in KFold(3).split(X):
        nodes, labels = (np.concatenate([part[i] for i in rest]) for part in ([x[0] for x in X], Y))
        fitted = clone(classifier).fit(nodes, labels)
        for i in held:
            by_hand[i] = (scores(fitted, X[i]), *X[i][1:])
    plain = FieldSVM(0.1, tol=1e-6).fit(by_hand, Y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-6)
    whole = clone(classifier).fit(np.concatenate([x[0] for x in X]), np.concatenate(Y))
    told = model.decision_function(X)
    again = plain.decision_function([(scores(whole, x), *x[1:]) for x in X])
    for one, other in zip(told, again, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    beside = FieldSVM(0.1, scores=classifier, passthrough=True, cv=3, tol=0.01).fit(X, Y)
    assert beside.coef_.shape[1] == X[0][0].shape[1] + (1 if n_labels == 2 else 3)
    assert beside.n_features_in_ == model.n_features_in_ == X[0][0].shape[1]


def test_a_fold_may_have_one_label_alone():
    graphs = [([[1.0], [2.0]], [[0, 1]], [[1.0]]), ([[-1.0], [-2.0]], [[0, 1]], [[1.0]])]
    model = FieldSVM(10.0, scores=LogisticRegression()).fit(graphs, [[1, 1], [0, 0]])
    assert len(model.predict(graphs)) == 2


def test_a_fold_may_lack_a_label():
    X, Y = rare(np.random.default_rng(0), 4, n_labels=3)
    Y = [np.minimum(y, 1) for y in Y[:3]] + [Y[3]]
    model = FieldSVM(0.1, scores=DecisionTreeClassifier(random_state=0), cv=4, tol=0.1).fit(X, Y)
    assert model.predict(X)[0].shape == (20,)


@pytest.mark.parametrize("model", LEARNERS)
@pytest.mark.parametrize("measure", ["jaccard", "dice"])
def test_the_bias_is_the_best_in_folds_and_helps_the_measure(model, measure):
    rng = np.random.default_rng(1)
    X, Y = rare(rng, 10)
    test, truth = rare(rng, 30)
    tuned = clone(model).set_params(measure=measure).fit(X, Y)
    plain = clone(model).fit(X, Y)
    assert tuned.bias_[0] == 0
    loss = sw.losses.get(measure)
    value = np.mean([loss(y, z) for y, z in zip(truth, tuned.predict(test), strict=True)])
    before = np.mean([loss(y, z) for y, z in zip(truth, plain.predict(test), strict=True)])
    assert value <= before
    assert tuned.score(test, truth) == pytest.approx(1 - value)
    shift = tuned.decision_function(test)[0] - plain.decision_function(test)[0]
    np.testing.assert_allclose(shift, tuned.bias_[1], atol=1e-9)
    field, other = tuned.to_field(test[0]), plain.to_field(test[0])
    np.testing.assert_allclose(other.unary - field.unary, np.tile(tuned.bias_, (20, 1)), atol=1e-9)
    again = pickle.loads(pickle.dumps(tuned))
    assert all(map(np.array_equal, again.predict(test), tuned.predict(test)))


@pytest.mark.parametrize("n_labels", [2, 3])
def test_no_bias_of_the_grid_is_better(n_labels):
    rng = np.random.default_rng(n_labels)
    fields = [sw.fields.Field(rng.normal(size=(6, n_labels))) for _ in range(5)]
    truth = [rng.integers(0, n_labels, 6) for _ in fields]
    measure = Measure(sw.losses.get("jaccard"), truth, np.arange(n_labels), None)

    def solve(given):
        return [field.unary.argmin(axis=1) for field in given]

    bias = best_biases(fields, measure, solve)

    def value(b):
        return measure([(field.unary - b).argmin(axis=1) for field in fields])

    assert value(bias) <= value(np.zeros(n_labels))
    if n_labels == 2:
        steps = np.concatenate([f.unary[:, 1] - f.unary[:, 0] for f in fields])
        every = [value(np.array([0.0, b])) for b in np.quantile(steps, np.linspace(0.02, 0.98, 33))]
        assert value(bias) == min(every)


def test_weights_of_nodes_count_in_the_measure():
    truth, labels = [np.array([1, 1, 0, 0])], [np.array([1, 0, 1, 0])]
    jaccard = sw.losses.get("jaccard")
    classes = np.arange(2)
    assert Measure(jaccard, truth, classes, None)(labels) == pytest.approx(2 / 3)
    weights = [np.array([6.0, 1.0, 1.0, 9.0])]
    assert Measure(jaccard, truth, classes, weights)(labels) == pytest.approx(2 / 8)
    hamming = Measure(sw.losses.get("hamming"), truth, classes, None)
    assert hamming(labels) == pytest.approx(0.5)  # a share, whatever the loss


def test_decisions_from_marginals():
    rng = np.random.default_rng(2)
    X, Y = rare(rng, 8)
    model = FieldSVM(0.1, measure="jaccard", decision="marginals", tol=0.01).fit(X, Y)
    assert model.temperature_ > 0
    assert not model.bias_.any()
    for x, decision, labels in zip(X, model.decide(X), model.predict(X), strict=True):
        post = sw.marginals(model.to_field(x), "projection", temperature=model.temperature_)
        best = sw.decide(post.probabilities[:, 1], "jaccard")
        assert np.array_equal(decision.mask, best.mask)
        assert decision.expected == best.expected
        assert np.array_equal(labels, best.mask.astype(int))
    mild = model.decide(X[:1], "dice", temperature=2.0)[0]
    post = sw.marginals(model.to_field(X[0]), "projection", temperature=2.0)
    assert np.array_equal(mild.mask, sw.decide(post.probabilities[:, 1], "dice").mask)


def test_more_labels_are_tuned_too():
    rng = np.random.default_rng(0)
    X, Y = rare(rng, 8, n_labels=3)
    model = FieldSVM(0.03, measure="jaccard", tol=0.1).fit(X, Y)
    assert model.bias_.shape == (3,)
    assert 0 <= model.score(X, Y) <= 1


def test_a_search_over_parameters_goes_by_the_measure():
    X, Y = rare(np.random.default_rng(0), 9)
    model = FieldSVM(measure="dice", tol=0.01, cv=3)
    search = GridSearchCV(model, {"C": [0.01, 1.0]}, cv=3).fit(X, Y)
    by_hand = []
    for rest, held in KFold(3).split(X):
        fitted = clone(model).set_params(C=search.best_params_["C"])
        fitted.fit([X[i] for i in rest], [Y[i] for i in rest])
        by_hand.append(fitted.score([X[i] for i in held], [Y[i] for i in held]))
    assert search.best_score_ == pytest.approx(np.mean(by_hand))


def test_threads_change_no_bit():
    X, Y = rare(np.random.default_rng(0), 6)
    one, two = (FieldSVM(0.1, measure="jaccard", n_jobs=jobs).fit(X, Y) for jobs in (1, 2))
    assert np.array_equal(one.bias_, two.bias_)
    assert np.array_equal(one.coef_, two.coef_)


def test_time_that_is_over_leaves_no_bias_and_says_so():
    X, Y = rare(np.random.default_rng(0), 6)
    with pytest.warns(ConvergenceWarning) as said:
        model = FieldSVM(10.0, tol=0.0, measure="jaccard", time_limit=0.0).fit(X, Y)
    assert "FieldSVM chose no bias for its measure: time_limit of 0 s" in str(said[-1].message)
    assert not model.bias_.any()
    assert not model.interrupted_


def test_bad_options():
    X, Y = rare(np.random.default_rng(0), 3)
    three = rare(np.random.default_rng(0), 3, n_labels=3)
    with pytest.raises(TypeError, match="scores must be a classifier with predict_proba or None"):
        FieldSVM(scores=LinearSVC()).fit(X, Y)
    with pytest.raises(TypeError, match=r"scores must be .* got LogisticRegression: "):
        FieldSVM(scores=LogisticRegression).fit(X, Y)
    with pytest.raises(ValueError, match=r"measure: .* got 'overlap'"):
        FieldSVM(measure="overlap").fit(X, Y)
    with pytest.raises(ValueError, match=r"decision must be .*'bias'.* got 'best'"):
        FieldSVM(decision="best").fit(X, Y)
    with pytest.raises(ValueError, match="Y must hold 2 labels for decision='marginals', got 3"):
        FieldSVM(measure="dice", decision="marginals").fit(*three)
    with pytest.raises(ValueError, match="X must hold at least two graphs for folds, got 1"):
        FieldSVM(measure="dice").fit(X[:1], Y[:1])
    with pytest.raises(ValueError, match=r"cv: .*n_splits=7"):
        FieldSVM(measure="dice", cv=7).fit(X, Y)
    with pytest.raises(ValueError, match="cv must leave out every graph once"):
        FieldSVM(measure="dice", cv=[([0], [1])]).fit(X, Y)
    with pytest.raises(TypeError, match="passthrough must be True or False"):
        FieldSVM(passthrough=3).fit(X, Y)
    model = FieldSVM(0.1).fit(X, Y)
    with pytest.raises(ValueError, match="loss must be given where measure is None"):
        model.decide(X)
    with pytest.raises(ValueError, match="temperature must be positive"):
        model.decide(X, "dice", temperature=0.0)
    with pytest.raises(ValueError, match="Y must hold 2 labels for decide, got 3"):
        FieldSVM(0.1, tol=0.1).fit(*three).decide(three[0], "dice")
