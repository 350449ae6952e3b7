"""Flows in blocks of nodes that are joined: a best one, and the same on any number of threads."""

import numpy as np
import pytest
from flow_problems import check_flow, random_graph
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow

from setwise.fields import grid_edges
from setwise.inference import FlowGraph, maxflow

JOBS = (1, 2, 4)


def bits(graph):
    return [np.asarray(x).tobytes() for x in (graph.value, graph.bound, graph.mask, graph.flows)]


def assert_same_bits(graphs):
    first, *others = map(bits, graphs)
    assert all(other == first for other in others)


def random_grid(rng):
    shape = tuple(rng.integers(1, 9, rng.integers(1, 4)).tolist())
    edges = FlowGraph.grid(shape, 1).edges
    return int(np.prod(shape)), edges, *rng.integers(0, 9, (2, len(edges)))


def least_cut(n, edges, c, r, s, t):
    """By SciPy: the source and the sink are two more nodes."""
    i, j = edges.T
    nodes, ends = np.arange(n), np.full((2, n), [[n], [n + 1]])
    tails = np.concatenate([i, j, ends[0], nodes]).astype(np.int32)
    heads = np.concatenate([j, i, nodes, ends[1]]).astype(np.int32)
    capacities = np.concatenate([c, r, s, t]).astype(np.int32)
    whole = coo_array((capacities, (tails, heads)), shape=(n + 2, n + 2)).tocsr()
    return maximum_flow(whole, n, n + 1).flow_value


@pytest.mark.parametrize("dtype", [int, float])
@pytest.mark.parametrize("make", [random_graph, random_grid])
def test_small_blocks_find_a_largest_flow(make, dtype):
    rng = np.random.default_rng(2)
    scale, tolerance = (1, 0) if dtype is int else (1 / 7, 1e-10)
    for k in range(60):
        n, edges, c, r = make(rng)
        s, t = rng.integers(0, 20, (2, n)) * (rng.random((2, n)) < rng.choice([0.1, 0.5, 1.0]))
        if k % 3 == 0:
            c, r = c * rng.integers(0, 2, len(c)), r * 0
        problem = n, edges, c * scale, r * scale, s * scale, t * scale
        graph = FlowGraph(n, *problem[1:4], dtype=dtype)
        graph.set_terminals(*problem[4:])
        copies = [graph.copy() for _ in JOBS]
        for jobs, twin in zip(JOBS, copies, strict=True):
            twin._graph.solve(jobs, small_blocks=True)
        assert abs(copies[0].value - least_cut(n, edges, c, r, s, t) * scale) <= tolerance
        assert_same_bits(copies)
        check_flow(copies[0], *problem, tolerance)
        # A warm start from what blocks have found.
        v = rng.permutation(n)[: rng.integers(0, n + 1)]
        s[v], t[v] = rng.integers(0, 20, (2, len(v)))
        copies[0].set_terminals(s[v] * scale, t[v] * scale, nodes=v)
        copies[0].solve()
        assert abs(copies[0].value - least_cut(n, edges, c, r, s, t) * scale) <= tolerance


def picture(rng, shape, weight):
    graph = FlowGraph.grid(shape, weight * rng.random((len(shape), *shape)))
    pull = rng.normal(0.0, 1.0, shape)
    graph.set_terminals(np.maximum(pull, 0.0), np.maximum(-pull, 0.0))
    return graph


@pytest.mark.parametrize(
    ("shape", "weight"),
    # The last is so stiff that blocks are given up: their paths are longer than they are thick.
    [((420, 320), 1.0), ((52 * 2, 36, 36), 0.5), ((1400, 100), 1.0), ((300, 450), 8.0)],
)
def test_threads_change_no_bit(shape, weight):
    graph = picture(np.random.default_rng(3), shape, weight)
    copies = [graph.copy() for _ in JOBS]
    for jobs, twin in zip(JOBS, copies, strict=True):
        twin.solve(n_jobs=jobs)
    assert_same_bits(copies)
    # The smallest cut of random floats is the only one, whichever way it is found.
    graph._graph.solve(1, small_blocks=True)
    np.testing.assert_array_equal(graph.mask, copies[0].mask)
    np.testing.assert_allclose(graph.value, copies[0].value, rtol=1e-13)
    assert copies[0].bound - copies[0].value <= 1e-13 * copies[0].value


def test_edge_lists_in_blocks():
    """A grid with a few long edges has blocks, and its answer is proved."""
    rng = np.random.default_rng(4)
    edges = grid_edges((1400, 100))
    edges = np.concatenate([edges, [[0, 139_999], [70_000, 5]]])
    weights = rng.random(len(edges))
    pull = rng.normal(0.0, 1.0, 140_000)
    flows = [
        maxflow(
            edges, weights, weights, source=np.maximum(pull, 0), sink=np.maximum(-pull, 0), n_jobs=k
        )
        for k in (1, 2)
    ]
    assert flows[0].exact
    assert_same_bits(flows)
    check_flow(
        flows[0], 140_000, edges, weights, weights, np.maximum(pull, 0), np.maximum(-pull, 0), 1e-8
    )


def test_hard_seeds_in_blocks():
    """Ties of infinite capacity, in blocks with no other terminals."""
    rng = np.random.default_rng(5)
    graph = FlowGraph.grid((40, 20), 1.0 + rng.random((2, 40, 20)))
    source, sink = np.zeros((2, 40, 20))
    source[3, 3] = sink[35, 15] = np.inf
    graph.set_terminals(source, sink)
    twin = graph.copy()
    graph._graph.solve(2, small_blocks=True)
    assert np.isclose(graph.value, twin.solve(), rtol=1e-14)
    np.testing.assert_array_equal(graph.mask, twin.mask)
