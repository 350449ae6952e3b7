"""Graphs that are changed and solved again: warm against cold, copies, pickles, threads."""

import copy
import pickle
import threading

import numpy as np
import pytest
from flow_problems import check_flow, random_graph

from setwise.inference import FlowGraph, maxflow, maxflow_batch

INF = float("inf")


@pytest.mark.parametrize("dtype", [int, float])
@pytest.mark.parametrize("grid", [False, True])
def test_warm_is_cold(dtype, grid):
    rng = np.random.default_rng(1)
    scale, tolerance = (1, 0) if dtype is int else (1 / 7, 1e-10)
    for _ in range(60 if grid else 150):
        n, edges, c, r = random_graph(rng, 14)
        if grid:
            n, edges = 48, FlowGraph.grid((6, 8), 1).edges
            c, r = rng.integers(0, 9, (2, len(edges)))
        s, t = rng.integers(0, 20, (2, n))
        graph = FlowGraph(n, edges, c * scale, r * scale, dtype=dtype)
        assert graph._graph.compact == grid or n < 10
        graph.set_terminals(s * scale, t * scale)
        for _ in range(6):
            graph.solve()
            problem = n, edges, c * scale, r * scale, s * scale, t * scale
            cold = maxflow(*problem[1:4], n=n, source=problem[4], sink=problem[5])
            assert abs(graph.value - cold.value) <= tolerance
            check_flow(graph, *problem, tolerance)
            check_flow(cold, *problem, tolerance)
            if rng.random() < 0.7:
                v = rng.permutation(n)[: rng.integers(0, n + 1)]
                s[v], t[v] = rng.integers(0, 20, (2, len(v)))
                graph.set_terminals(s[v] * scale, t[v] * scale, nodes=v)
            if rng.random() < 0.7:  # often below the present flow
                e = rng.permutation(len(c))[: rng.integers(0, len(c) + 1)]
                c[e], r[e] = rng.integers(0, 20, (2, len(e)))
                graph.set_capacities(e, c[e] * scale, r[e] * scale)


def test_ties_can_be_made_and_undone():
    graph = FlowGraph(3, [[0, 1], [1, 2]], [2.0, 1.0], [2.0, 1.0])
    graph.set_terminals([1.0, 0, 0], [0, 0, 1.0])
    assert graph.solve() == 1.0
    graph.set_terminals(INF, 0.0, nodes=[1])
    assert graph.solve() == 1.0
    graph.set_terminals(0.0, INF, nodes=[2])
    assert graph.solve() == 1.0
    graph.set_terminals(0.5, 0.0, nodes=[0])
    graph.set_terminals(0.25, 0.0, nodes=[1])
    assert graph.solve() == 0.75
    check_flow(
        graph, 3, graph.edges, np.array([2.0, 1]), np.array([2.0, 1]),
        np.array([0.5, 0.25, 0]), np.array([0, 0, INF]), 1e-15,
    )  # fmt: skip


def large_graph(seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    graph = FlowGraph.grid((60, 50), rng.integers(0, 5, (2, 60, 50)).astype(dtype))
    graph.set_terminals(*rng.integers(0, 6, (2, 60, 50)).astype(dtype))
    return graph


def test_copies_are_independent():
    graph = large_graph()
    value, mask = graph.solve(), graph.mask
    for twin in (graph.copy(), copy.copy(graph), copy.deepcopy(graph)):
        assert twin.value == value  # the flow comes along
        twin.set_terminals(0.0, 9.0)
        twin.set_capacities([0, 1], 0.0)
        assert twin.solve() == 0.0
    assert graph.value == value
    assert np.array_equal(graph.mask, mask)


def test_pickle_keeps_the_problem():
    graph = large_graph(dtype=int)
    value = graph.solve()
    twin = pickle.loads(pickle.dumps(graph))
    assert (twin.n, twin.shape, twin.dtype) == (graph.n, graph.shape, graph.dtype)
    assert twin.solve() == value
    tied = FlowGraph(2, [[0, 1]], 1.5)
    tied.set_terminals([INF, 0], [0, INF])
    assert pickle.loads(pickle.dumps(tied)).solve() == 1.5


def test_batch_is_each_alone():
    graphs = [large_graph(seed, int if seed % 2 else float) for seed in range(12)]
    alone = [graph.copy() for graph in graphs]
    values = [graph.solve() for graph in alone]
    for n_jobs in (None, -1, np.int64(-1), 1, 3, 50):
        batch = [graph.copy() for graph in graphs]
        assert maxflow_batch(batch, n_jobs=n_jobs) == values
        for one, other in zip(batch, alone, strict=True):
            assert np.array_equal(one.flows, other.flows)  # to the last bit
    assert maxflow_batch([]) == []
    assert maxflow_batch([graphs[0]] * 5) == values[:1] * 5


def test_one_graph_may_be_shared_by_threads():
    graph = large_graph()
    answer = graph.solve()

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(20):
            graph.set_capacities(rng.permutation(graph.n_edges)[:9], 1.0, 1.0)
            graph._graph.solve()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    graph.set_capacities(np.arange(graph.n_edges), *large_graph().__getstate__()["numbers"][:2])
    assert graph.solve() == pytest.approx(answer)


def test_a_changed_problem_is_not_read():
    """The kernel itself refuses, and goes on from where it was."""
    rng = np.random.default_rng(0)
    graph = FlowGraph.grid((12, 12), rng.integers(0, 9, (2, 12, 12)))
    none = np.empty(0, int)
    for _ in range(4):
        u = rng.integers(-9, 9, (12, 12))
        graph.set_terminals(np.maximum(u, 0), np.maximum(-u, 0))
        for read in (
            lambda: graph._graph.read_flows(np.empty(graph.n_edges, int), none),
            lambda: graph._graph.read_flows(none, np.empty(2 * graph.n_edges, int)),
            lambda: graph._graph.read_sides(np.empty(graph.n, bool)),
            graph._graph.value,
            graph._graph.cut,
        ):
            with pytest.raises(RuntimeError, match="no answer yet"):
                read()
        assert graph.solve() == graph.bound == pickle.loads(pickle.dumps(graph)).solve()


def test_a_graph_may_be_read_while_it_is_changed():
    rng = np.random.default_rng(0)
    graph = FlowGraph.grid((12, 12), rng.integers(0, 9, (2, 12, 12)))
    done = threading.Event()

    def look():
        while not done.is_set():
            try:
                assert (graph.residuals >= 0).all()
            except RuntimeError:
                continue

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(300):
            u = rng.integers(-9, 9, (12, 12))
            graph.set_terminals(np.maximum(u, 0), np.maximum(-u, 0))
            assert graph.solve() == graph.bound
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert graph.value == pickle.loads(pickle.dumps(graph)).solve()


def test_answers_need_a_solution():
    graph = FlowGraph(2, [[0, 1]], 1)
    for name in ("value", "bound", "mask", "flows", "residuals"):
        with pytest.raises(RuntimeError, match=r"no answer yet: call solve\(\) first"):
            getattr(graph, name)
    graph.solve()
    graph.set_terminals([1, 0], [0, 1])
    with pytest.raises(RuntimeError, match="after any change"):
        graph.mask  # noqa: B018
