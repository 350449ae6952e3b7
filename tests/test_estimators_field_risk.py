"""The separation oracle of a field: cuts and moves against every labelling."""

import numpy as np
import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st

from setwise.estimators._fields._field_risk import FieldRisk
from setwise.estimators._fields._graphs import read_graphs
from setwise.estimators._fields._potts_maps import BatchMaps


@st.composite
def problems(draw, n_labels=2):
    """A few graphs of a few nodes; the features are the nodes and edges themselves."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    X, Y, weights = [], [], []
    for n in sizes:
        edges = draw(strategies.edges(n))
        X.append((np.zeros((n, 1)), edges, np.zeros((len(edges), 1))))
        Y.append(draw(st.lists(st.integers(0, n_labels - 1), min_size=n, max_size=n)))
        weights.append(draw(strategies.arrays(n, 0.0, 2.0)))
    graphs = read_graphs(X)
    kinds = 1 if n_labels == 2 else n_labels
    nodes = draw(strategies.arrays(kinds * len(graphs.nodes)))
    edges = draw(strategies.arrays(len(graphs.edges), 0.0, 3.0))
    return graphs, Y, weights, np.concatenate([nodes, edges])


def brute_force(graphs, Y, weights, scores, n_labels):
    """The risk of each graph, over all of its labellings."""
    kinds = 1 if n_labels == 2 else n_labels
    f = scores[: kinds * len(graphs.nodes)].reshape(kinds, -1)
    if n_labels == 2:
        f = np.vstack([np.zeros(f.shape[1]), f])
    g = scores[kinds * len(graphs.nodes) :]
    risks = []
    for i, (truth, cost) in enumerate(zip(Y, weights, strict=True)):
        first, begin, end = graphs.node_starts[i], *graphs.edge_starts[i : i + 2]

        def energy(z, first=first, begin=begin, end=end):
            total = -sum(f[label, first + p] for p, label in enumerate(z))
            for e in range(begin, end):
                p, q = graphs.edges[e] - first
                total += g[e] * (z[p] != z[q])
            return total

        every = reference.all_labelings(len(truth), n_labels)
        wrong = [sum(c for c, a, b in zip(cost, z, truth, strict=True) if a != b) for z in every]
        gains = [w + energy(truth) - energy(z) for w, z in zip(wrong, every, strict=True)]
        risks.append(max(gains))
    return np.array(risks)


def risk_of(graphs, Y, weights, n_labels=2):
    maps = BatchMaps(graphs, n_labels, 1)
    return FieldRisk(graphs, np.concatenate(Y), n_labels, np.concatenate(weights), maps)


@given(problems())
def test_cuts_find_the_most_violated_labels(problem):
    graphs, Y, weights, scores = problem
    risk = risk_of(graphs, Y, weights)
    expected = brute_force(graphs, Y, weights, scores, 2)
    values, rows = risk.each(scores)
    np.testing.assert_allclose(values, expected, atol=1e-9)
    value, slope = risk(scores)
    np.testing.assert_allclose(value, expected.mean(), atol=1e-9)
    np.testing.assert_allclose(rows.toarray().mean(axis=0), slope, atol=1e-12)
    np.testing.assert_allclose(risk.prove(scores)[::2], expected.mean(), atol=1e-9)
    assert risk.exact


@given(problems(), st.integers(0, 2**32 - 1))
def test_a_plane_touches_the_risk_and_stays_below_it(problem, seed):
    graphs, Y, weights, scores = problem
    risk = risk_of(graphs, Y, weights)
    value, slope = risk(scores)
    rng = np.random.default_rng(seed)
    n = len(graphs.nodes)
    other = np.concatenate([rng.normal(0, 3, n), rng.exponential(2.0, len(scores) - n)])
    there = brute_force(graphs, Y, weights, other, 2).mean()
    assert there >= value + slope @ (other - scores) - 1e-9


@given(problems(n_labels=3), st.integers(0, 2**32 - 1))
def test_moves_give_planes_below_the_risk_and_a_bound_above_it(problem, seed):
    graphs, Y, weights, scores = problem
    risk = risk_of(graphs, Y, weights, 3)
    expected = brute_force(graphs, Y, weights, scores, 3).mean()
    value, slope = risk(scores)
    again, _ = risk.afresh(scores)
    found, _, most = risk.prove(scores)
    assert not risk.exact
    assert value - 1e-9 <= again <= expected + 1e-9
    assert again - 1e-9 <= found <= expected + 1e-9
    assert most >= expected - 1e-9
    assert risk.at_most(scores) >= most - 1e-9
    assert found == pytest.approx(most, abs=1e-9)  # so few labellings are all tried
    rng = np.random.default_rng(seed)
    n = 3 * len(graphs.nodes)
    other = np.concatenate([rng.normal(0, 3, n), rng.exponential(2.0, len(scores) - n)])
    assert (
        brute_force(graphs, Y, weights, other, 3).mean() >= value + slope @ (other - scores) - 1e-9
    )


@pytest.mark.parametrize("n_labels", [2, 3])
def test_segments_are_nodes_and_edges(n_labels):
    X = [(np.zeros((3, 2)), [[0, 1]], np.ones((1, 2))), (np.zeros((2, 2)), [], [])]
    risk = risk_of(read_graphs(X), [[0, 1, 0], [1, 0]], [np.ones(3), np.ones(2)], n_labels)
    assert risk.offsets.tolist() == ([0, 5, 6] if n_labels == 2 else [0, 5, 10, 15, 16])
    assert risk(np.zeros(risk.offsets[-1]))[0] == 2.5  # everything wrong, in the mean


def test_weights_below_zero_by_rounding_do_no_harm():
    X = [(np.zeros((2, 1)), [[0, 1]], np.ones((1, 1)))]
    risk = risk_of(read_graphs(X), [[0, 1]], [np.ones(2)])
    value, slope = risk(np.array([0.5, 0.5, -1e-13]))
    assert value == pytest.approx(2.0)
    assert slope.tolist() == [1.0, -1.0, 0.0]
