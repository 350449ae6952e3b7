"""Regions, label costs and more labels in learnt fields, against every labelling."""

import numpy as np
import pytest
import reference
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

import setwise as sw
from setwise import FieldBoost, FieldSVM
from setwise.estimators._fields import _boost_proof, _higher_order_maps
from setwise.estimators._fields._couplings import Couplings
from setwise.estimators._fields._field_risk import FieldRisk
from setwise.estimators._fields._graphs import read_graphs


def problem(rng, sizes, n_labels, d=2, k=1, layers=2):
    """Chains with random features, labels, costs and regions, some nodes in none."""
    X, Y = [], []
    for n in sizes:
        edges = np.array([(i, i + 1) for i in range(n - 1)]).reshape(-1, 2)
        regions = rng.integers(-1, 2, size=(n, layers)) * 7 + (rng.random() < 0.5)
        graph = rng.normal(size=(n, d)), edges, rng.random((n - 1, k)), np.maximum(regions, -1)
        X.append(graph)
        Y.append(rng.integers(0, n_labels, n))
    Y[0][:n_labels] = np.arange(n_labels)
    return X, Y, [rng.random(n) for n in sizes]


def planes_of(X, Y, costs, n_labels, truncation, label_costs):
    return [
        reference.field_planes(x, y, n_labels, c, truncation, label_costs)
        for x, y, c in zip(X, Y, costs, strict=True)
    ]


@pytest.mark.parametrize("n_labels", [2, 3, 4])
@pytest.mark.parametrize(("seed", "truncation"), [(0, 0.5), (1, 0.3), (2, 0.1), (3, 0.3)])
def test_the_risk_is_that_of_the_worst_labelling(n_labels, seed, truncation):
    rng = np.random.default_rng(seed)
    X, Y, costs = problem(rng, [5, 2, 4], n_labels, d=0, k=0)
    graphs = read_graphs(X)
    couplings = Couplings(graphs, n_labels, truncation, label_costs=True)
    maps = _higher_order_maps.best_maps(graphs, couplings, n_labels, 1)
    truth, c = np.concatenate(Y), np.concatenate(costs)
    risk = FieldRisk(graphs, truth, n_labels, c, maps, couplings)
    nodes = rng.normal(size=(len(truth), n_labels))
    nodes[:, 0] *= n_labels > 2
    kinds = 1 if n_labels == 2 else n_labels
    couple = rng.exponential(1.0, sum(couplings.lengths))
    scores = np.concatenate([nodes[:, -kinds:].T.ravel(), couple])
    assert len(scores) == risk.offsets[-1]
    expected = []
    for i, (y, cost) in enumerate(zip(graphs.of_nodes(truth), costs, strict=True)):
        field = couplings.field(i, -nodes, couple)
        every = reference.all_labelings(len(y), n_labels)
        loss = np.array([cost[z != y].sum() for z in every])
        expected.append((loss + field.energy(y) - field.energy(every)).max())
    found, slope, most = risk.prove(scores)
    assert found == pytest.approx(np.mean(expected), abs=1e-9)
    assert most == pytest.approx(np.mean(expected), abs=1e-9)
    for value, _ in (risk(scores), risk.afresh(scores)):
        assert value <= np.mean(expected) + 1e-9
    assert risk.exact == (n_labels == 2)
    # The plane of the labels found passes through the loss of these labels at zero scores.
    assert 0 <= found - slope @ scores <= c.sum() / len(Y) + 1e-9


@pytest.mark.parametrize("n_labels", [2, 3, 4])
@pytest.mark.parametrize(("C", "label_costs"), [(0.3, True), (3.0, True), (3.0, False)])
def test_the_linear_field_is_the_best_over_all_labellings(n_labels, C, label_costs):
    rng = np.random.default_rng(n_labels)
    X, Y, costs = problem(rng, [4, 2], n_labels)
    model = FieldSVM(C, tol=1e-6, truncation=0.4, label_costs=label_costs, fit_intercept=False)
    model.fit(X, Y, costs)
    planes = planes_of(X, Y, costs, n_labels, 0.4, label_costs)
    first = model.coef_.size
    w = np.concatenate([model.coef_.ravel(), model.edge_coef_, model.region_coef_])
    if label_costs:
        w = np.append(w, model.label_costs_)
    best = reference.least_objective(planes, C, range(first, len(w)))
    mine = 0.5 * w @ w + C * sum((b + a @ w).max() for a, b in planes)
    assert mine == pytest.approx(best, rel=1e-4, abs=1e-6)
    assert model.history_.dual[-1] <= best + 1e-6
    assert model.certified_
    assert np.all(w[first:] >= 0)
    for x, y in zip(X, Y, strict=True):
        field = model.to_field(x)
        every = reference.all_labelings(len(y), n_labels)
        slopes = reference.field_planes(x, y, n_labels, np.ones(len(y)), 0.4, label_costs)[0]
        np.testing.assert_allclose(field.energy(y) - field.energy(every), slopes @ w, atol=1e-9)


def all_stumps(X, low):
    columns = [np.ones(len(X)), np.full(len(X), low)]
    for x in X.T:
        for t in np.unique(x)[:-1]:
            columns += [np.where(x > t, 1.0, low), np.where(x > t, low, 1.0)]
    return np.column_stack(columns)


@pytest.mark.filterwarnings("ignore:no weak learner lowers the objective")
@pytest.mark.parametrize(("n_labels", "kind"), [(2, "stump"), (3, "stump"), (3, "feature")])
@pytest.mark.parametrize("C", [2.0, 20.0])
def test_the_boosted_field_is_the_full_linear_program(n_labels, kind, C):
    rng = np.random.default_rng(n_labels)
    X, Y, costs = problem(rng, [3, 2], n_labels, layers=1)
    model = FieldBoost(kind, C=C, tol=1e-7, n_estimators=500, truncation=0.3)
    model.fit(X, Y, costs)
    nodes, pairs = np.vstack([x[0] for x in X]), np.vstack([x[2] for x in X])
    if kind == "stump":
        nodes, pairs = all_stumps(nodes, -1.0), all_stumps(pairs, 0.0)
    else:
        nodes = np.hstack([nodes, -nodes])
    wide = [
        (nodes[a : a + len(y)], x[1], pairs[b : b + len(x[1])], x[3])
        for x, y, a, b in zip(X, Y, (0, 3), (0, 2), strict=True)
    ]
    planes = planes_of(wide, Y, costs, n_labels, 0.3, False)
    rows = [np.hstack([a, np.tile(-np.eye(2)[i], (len(b), 1))]) for i, (a, b) in enumerate(planes)]
    cost = np.concatenate([np.ones(planes[0][0].shape[1]), np.full(2, C / 2)])
    best = linprog(cost, np.vstack(rows), -np.concatenate([b for _, b in planes]), method="highs")
    risks = []
    for x, y, c in zip(X, Y, costs, strict=True):
        field, every = model.to_field(x), reference.all_labelings(len(y), n_labels)
        loss = np.array([c[z != y].sum() for z in every])
        risks.append((loss + field.energy(y) - field.energy(every)).max())
    mine = model.estimator_weights_.sum() + C * np.mean(risks)
    assert best.success
    assert mine == pytest.approx(best.fun, rel=1e-5, abs=1e-6)
    assert model.history_.dual[-1] <= best.fun + 1e-6
    assert model.certified_
    assert model.gap_ <= 1e-6
    assert model.feature_importances_.shape == (2 + 1 + 1,)


def scattered(rng, n_graphs, n_labels):
    """Regions of nine nodes of one label each, that neighbours know nothing of."""
    edges = sw.fields.grid_edges((6, 6))
    X, Y = [], []
    for _ in range(n_graphs):
        regions = rng.permutation(np.arange(36) // 9)
        labels = rng.integers(0, n_labels, 4)[regions]
        x = np.eye(n_labels)[labels] + rng.normal(size=(36, n_labels))
        X.append((x, edges, np.ones((len(edges), 1)), regions))
        Y.append(labels)
    return X, Y


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize(
    "make", [lambda: FieldSVM(0.1, tol=0.01), lambda: FieldBoost(("feature", "stump"), tol=0.1)]
)
def test_regions_help_where_they_are_of_one_label(make, n_labels):
    X, Y = scattered(np.random.default_rng(n_labels), 18, n_labels)
    model = make().fit(X[:6], Y[:6])
    plain = make().fit([x[:3] for x in X[:6]], Y[:6])
    assert model.score(X[6:], Y[6:]) > plain.score([x[:3] for x in X[6:]], Y[6:]) + 0.03
    assert len(model.to_field(X[0]).potentials) == 2
    assert model.n_region_layers_in_ == 1


def test_label_costs_are_learnt_where_graphs_use_few_labels():
    rng = np.random.default_rng(0)
    X, Y = [], []
    for _ in range(10):
        y = rng.choice([0, 1, 2], 2, replace=False)[rng.integers(0, 2, 30)]
        X.append((np.eye(3)[y] + 0.6 * rng.normal(size=(30, 3)), np.zeros((0, 2), int), []))
        Y.append(y)
    model = FieldSVM(1.0, label_costs=True, tol=1e-2).fit(X[:6], Y[:6])
    assert model.label_costs_.shape == (3,)
    assert (model.label_costs_ > 0).any()
    used = [len(set(z.tolist())) for z in model.predict(X[6:])]
    without = [len(set(z.tolist())) for z in FieldSVM(1.0, tol=1e-2).fit(X, Y).predict(X[6:])]
    assert sum(used) < sum(without)


def test_what_moves_miss_is_searched_for_again(monkeypatch):
    X, Y, _ = problem(np.random.default_rng(0), [5, 4], 3)
    known = FieldBoost(("feature", "stump"), C=20.0).fit(X, Y)

    def blind(self, unary, weights):
        return np.zeros(len(unary), np.int64)

    monkeypatch.setattr(_higher_order_maps.HigherOrderMaps, "__call__", blind)
    again = FieldBoost(("feature", "stump"), C=20.0).fit(X, Y)
    assert again.certified_
    assert again.gap_ <= again.tol
    assert again.history_.primal[-1] == pytest.approx(known.history_.primal[-1], rel=3e-3)


def test_what_cannot_be_proved_is_counted_and_told(monkeypatch):
    X, Y, _ = problem(np.random.default_rng(0), [5, 4], 3)
    proved = _boost_proof.FieldRisk.prove

    def loosely(self, scores):
        value, slope, most = proved(self, scores)
        return value, slope, most + 1.0

    monkeypatch.setattr(_boost_proof.FieldRisk, "prove", loosely)
    with pytest.warns(ConvergenceWarning, match="3 labels the most violated .* not proved"):
        model = FieldBoost(("feature", "stump"), C=20.0).fit(X, Y)
    assert not model.certified_
    assert model.gap_ > model.tol


def test_some_graphs_are_taken():
    X, _, _ = problem(np.random.default_rng(0), [4, 2, 3], 2)
    some = read_graphs(X).take(np.array([2, 0]))
    again = read_graphs([X[2], X[0]])
    for name in vars(again):
        assert np.array_equal(getattr(some, name), getattr(again, name)), name


@pytest.mark.parametrize(
    ("regions", "error", "sentence"),
    [
        ([0], ValueError, r"regions of X\[0\] must have shape \(2,\) or \(2, layers\), got \(1,\)"),
        ([[[0]], [[1]]], ValueError, r"regions of X\[0\] must have shape .* got \(2, 1, 1\)"),
        ([0.5, 1.0], TypeError, r"X\[0\]: regions must hold integers"),
        ([-2, 0], ValueError, r"X\[0\]: regions must hold numbers from 0 on, or -1"),
    ],
)
def test_bad_regions(regions, error, sentence):
    graph = np.zeros((2, 1)), [[0, 1]], [[1.0]], regions
    with pytest.raises(error, match=sentence):
        FieldSVM().fit([graph], [[0, 1]])


def test_layers_are_as_many_in_every_graph():
    graph = np.zeros((2, 1)), [[0, 1]], [[1.0]]
    with pytest.raises(ValueError, match=r"regions of X\[1\] must have 0 layers .* got 1"):
        FieldSVM().fit([graph, (*graph, [0, 0])], [[0, 1], [0, 1]])
    model = FieldSVM().fit([(*graph, [0, 0])], [[0, 1]])
    with pytest.raises(ValueError, match=r"regions of X\[0\] must have 1 layers .* got 0"):
        model.predict([graph])
    with pytest.raises(ValueError, match=r"truncation must be at most 0\.5, got 0\.7"):
        FieldSVM(truncation=0.7).fit([graph], [[0, 1]])
    with pytest.raises(TypeError, match="label_costs must be True or False"):
        FieldSVM(label_costs="all").fit([graph], [[0, 1]])
