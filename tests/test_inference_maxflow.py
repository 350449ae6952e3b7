"""Largest flows against SciPy and all sets, and grids against lists of edges."""

from itertools import product

import numpy as np
import pytest
from flow_problems import check_flow, random_graph
from hypothesis import given
from hypothesis import strategies as st
from reference import smallest_cut
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from setwise.inference import FlowGraph, maxflow
from setwise.inference._flows._maxflow import Flow

INF = float("inf")
E = [[0, 1]]


def scipy_value(n, edges, capacities, reverse, source, sink):
    rows, columns = np.concatenate([edges, edges[:, ::-1]]).T.astype(np.int32)
    numbers = np.concatenate([capacities, reverse]).astype(np.int32)
    return maximum_flow(
        csr_array((numbers, (rows, columns)), shape=(n, n)), source, sink
    ).flow_value


# ---------------------------------------------------------------------------------------- one graph


def test_values_are_those_of_scipy():
    rng = np.random.default_rng(0)
    for _ in range(1000):
        n, edges, c, r = random_graph(rng)
        source, sink = (int(k) for k in rng.permutation(n)[:2])
        flow = maxflow(edges, c, r, n=n, source=source, sink=sink)
        assert flow.value == flow.bound == scipy_value(n, edges, c, r, source, sink)
        assert flow.exact
        assert flow.gap == 0
        assert isinstance(flow.value, int)
        assert flow.mask[source]
        assert not flow.mask[sink]
        s, t = (np.where(np.arange(n) == k, flow.value, 0) for k in (source, sink))
        check_flow(maxflow(edges, c, r, source=s, sink=t), n, edges, c, r, s, t)
        real = maxflow(edges, c / 7, r / 7, n=n, source=source, sink=sink)
        assert real.exact
        assert real.value == pytest.approx(flow.value / 7, abs=1e-12)


@st.composite
def problems(draw, most=6):
    n = draw(st.integers(0, most))
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] != p[1])
    edges = draw(st.lists(pair, max_size=10)) if n > 1 else []
    numbers = st.integers(0, 6)
    if draw(st.booleans()):
        numbers = st.floats(0, 6).map(lambda x: round(x, 6))

    def array(length):
        return np.array(draw(st.lists(numbers, min_size=length, max_size=length)), float)

    m = len(edges)
    return n, np.array(edges, int).reshape(-1, 2), array(m), array(m), array(n), array(n)


@given(problems())
def test_cut_is_the_smallest_of_all(problem):
    n, edges, c, r, s, t = problem
    flow = maxflow(edges, c, r, n=n, source=s, sink=t)
    assert flow.value == pytest.approx(smallest_cut(*problem), abs=1e-9)
    check_flow(flow, n, edges, c, r, s, t, 1e-9)


@given(problems(), st.data())
def test_infinite_terminals_tie_nodes_to_their_sides(problem, data):
    n, edges, c, r, s, t = problem
    for v in range(n):
        side = data.draw(st.integers(0, 3))
        s[v], t[v] = (INF, t[v]) if side == 0 else (s[v], INF) if side == 1 else (s[v], t[v])
    flow = maxflow(edges, c, r, n=n, source=s, sink=t)
    assert flow.value == pytest.approx(smallest_cut(*problem), abs=1e-9)
    check_flow(flow, *problem, 1e-9)


def test_degenerate_graphs_have_answers():
    for empty in ([], np.zeros((0, 2), int)):
        flow = maxflow(empty, [], n=0, source=[], sink=[])
        assert (flow.value, flow.mask.shape, flow.residuals.shape) == (0, (0,), (0, 2))
    assert maxflow([], [], source=[3, 0], sink=[1, 4]).value == 1
    assert maxflow([], [], n=5, source=0, sink=4).value == 0
    assert maxflow([[0, 1]], 7, source=0, sink=1).value == 7
    assert maxflow([[0, 1], [0, 1], [1, 0]], 1, source=0, sink=1).flows.tolist() == [1, 1, 0]
    flow = maxflow([[0, 1], [2, 3]], 2.5, source=0, sink=3)  # no path
    assert (flow.value, flow.mask[0], flow.mask[3]) == (0.0, True, False)
    assert FlowGraph.grid((0, 4), 1).solve() == 0
    assert FlowGraph.grid((), 1).n == 1


def test_integers_are_exact_up_to_their_limit():
    big = 2**61 - 1
    flow = maxflow([[0, 1]], [big], source=[big, 0], sink=[0, big])
    assert flow.value == flow.bound == big
    assert maxflow([[0, 1], [1, 2]], [2**60, 2**60 + 1], source=0, sink=2).value == 2**60
    with pytest.raises(ValueError, match=r"sum of all capacities must be below 2\*\*63, got more"):
        maxflow([[0, 1]], [2**62], source=[2**62, 0], sink=[0, 1])
    graph = FlowGraph(2, [[0, 1]], 2**62)
    graph.set_terminals([5, 0], [0, 5])
    for call in (
        lambda: graph.set_capacities([0], 2**63 - 1),
        lambda: graph.set_terminals([2**62, 0], [0, 9]),
        lambda: graph.set_terminals(2**62, 2**62, nodes=[1]),
    ):
        with pytest.raises(ValueError, match="sum of all capacities"):
            call()
        assert graph.solve() == 5  # nothing was done


def test_sums_of_floats_stay_finite():
    most = 1.5 * 2.0**1020
    assert maxflow(E, most, source=0, sink=1).value == most
    for call in (
        lambda: maxflow([[0, 1]] * 3, [1e308] * 3, source=0, sink=1),
        lambda: maxflow(E, 1.0, source=[1e308, 0.0], sink=[0.0, 1e308]),
    ):
        with pytest.raises(ValueError, match=r"sum of all capacities must be below 2\*\*1022"):
            call()
    graph = FlowGraph(2, E, most / 4, most / 4)
    # From one node to the other and back: old and new capacities are never too much together.
    for source, sink in [([0.0, most], 0.0), ([most, 0.0], 0.0), ([0.0, most], [most, 0.0])] * 2:
        graph.set_terminals(source, sink)
        assert graph.solve() == graph.bound == (most / 4 if np.ndim(sink) else 0.0)
    graph.set_terminals([INF, 0.0], [0.0, INF])  # what is infinite does not count
    graph.set_capacities([0], most, most / 2)
    with pytest.raises(ValueError, match="sum of all capacities"):
        graph.set_capacities([0], most, 2 * most)
    assert graph.solve() == graph.bound == most


def test_unsigned_edges_and_nodes_in_arrays_are_taken():
    for kind in (np.uint8, np.uint16, np.uint32, np.uint64, np.int8):
        edges = np.array([[0, 1], [1, 2]], kind)
        assert maxflow(edges, [3, 2], source=kind(0), sink=np.array(2, kind)).value == 2
        assert maxflow(edges[:0], [], source=0, sink=1).value == 0


def test_floats_need_no_tolerance():
    """Capacities of very different size; what is left of a used one is exactly zero."""
    tiny = maxflow([[0, 1], [1, 2]], [1e-300, 1e300], source=0, sink=2)
    assert tiny.value == 1e-300
    assert tiny.residuals[0, 0] == 0.0
    assert maxflow([[0, 1]], np.float32([0.1]), source=0, sink=1).value == float(np.float32(0.1))


def test_result_is_frozen():
    flow = maxflow(E, 1, source=0, sink=1)
    assert isinstance(flow, Flow)
    with pytest.raises(AttributeError):
        flow.value = 2
    assert flow == flow
    assert flow != maxflow(E, 1, source=0, sink=1)  # arrays in it: no other is the same


# -------------------------------------------------------------------------------------------- grids

OFFSETS = {
    "2-d, 4": ((9, 8), [[0, 1], [1, 0]]),
    "2-d, 8": ((9, 8), [[0, 1], [1, 0], [1, 1], [1, -1]]),
    "2-d, 16": ((12, 11), [[0, 1], [1, 0], [1, 1], [1, -1], [1, 2], [1, -2], [2, 1], [2, -1]]),
    "3-d, 6": ((7, 5, 6), [[0, 0, 1], [0, 1, 0], [1, 0, 0]]),
    "3-d, 26": (
        (6, 5, 4),
        [o for o in product((-1, 0, 1), repeat=3) if o > (0, 0, 0)],
    ),
    "1-d": ((40,), [[-1], [3]]),
    "narrow": ((30, 2), [[0, 1], [1, -1]]),  # two offsets, one step
}


@pytest.mark.parametrize("name", OFFSETS)
@pytest.mark.parametrize("dtype", [int, float])
def test_grid_is_the_graph_of_its_edges(name, dtype):
    shape, offsets = OFFSETS[name]
    rng = np.random.default_rng(0)
    n = int(np.prod(shape))
    weights, reverse = rng.integers(0, 9, (2, len(offsets), *shape)).astype(dtype)
    s, t = rng.integers(0, 12, (2, *shape)).astype(dtype)
    graph = FlowGraph.grid(shape, weights, reverse, offsets=offsets)
    graph.set_terminals(s, t)
    edges, c, r = [], [], []
    for k, offset in enumerate(offsets):
        for p in np.ndindex(*shape):
            q = tuple(np.add(p, offset))
            if all(0 <= x < side for x, side in zip(q, shape, strict=True)):
                edges.append([np.ravel_multi_index(x, shape) for x in (p, q)])
                c.append(weights[k][p])
                r.append(reverse[k][p])
    edges, c, r = np.array(edges), np.array(c), np.array(r)
    assert np.array_equal(graph.edges, edges)
    assert graph.dtype == dtype
    graph.solve()
    assert graph.mask.shape == shape
    check_flow(graph, n, edges, c, r, s.ravel(), t.ravel())
    # An isolated edge far off makes the list one that no grid has.
    far = np.array([[n, n + 2 * n]])
    plain = FlowGraph(3 * n + 1, np.concatenate([edges, far]), np.append(c, 1), np.append(r, 1))
    assert not plain._graph.compact
    plain.set_terminals(*(np.append(x.ravel(), np.zeros(2 * n + 1, dtype)) for x in (s, t)))
    assert plain.solve() == graph.value


def test_lists_of_grid_edges_are_recognised():
    edges = FlowGraph.grid((20, 30), 1).edges
    rng = np.random.default_rng(0)
    shuffled = rng.permutation(edges)
    flipped = np.where(rng.random((len(edges), 1)) < 0.5, edges, edges[:, ::-1])
    for kind, pairs in product((np.int32, np.int64), (edges, shuffled, flipped)):
        graph = FlowGraph(600, pairs.astype(kind), 1)
        assert graph._graph.compact
        assert np.array_equal(graph.edges, pairs)
    assert not FlowGraph(600, np.concatenate([edges, edges[:1]]), 1)._graph.compact
    assert not FlowGraph(600, edges[::3], 1)._graph.compact
