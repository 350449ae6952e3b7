"""Largest flows against SciPy and all sets, grids against lists of edges, warm against cold."""

import copy
import pickle
import threading
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import smallest_cut
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from setwise import _core
from setwise.inference import Flow, FlowGraph, maxflow, maxflow_batch
from setwise.inference._flows._capacities import check_size

INF = float("inf")


def random_graph(rng, largest=20, high=30):
    n = int(rng.integers(2, largest))
    m = int(rng.integers(0, 4 * n))
    tails = rng.integers(0, n, m)
    edges = np.stack([tails, (tails + rng.integers(1, n, m)) % n], 1)
    return n, edges, rng.integers(0, high, m), rng.integers(0, high, m) * rng.integers(0, 2, m)


def scipy_value(n, edges, capacities, reverse, source, sink):
    rows, columns = np.concatenate([edges, edges[:, ::-1]]).T.astype(np.int32)
    numbers = np.concatenate([capacities, reverse]).astype(np.int32)
    return maximum_flow(
        csr_array((numbers, (rows, columns)), shape=(n, n)), source, sink
    ).flow_value


def check_flow(flow, n, edges, capacities, reverse, source, sink, tolerance=0.0):
    """It is a flow, the mask is a cut, and their equality proves both best."""
    assert (flow.residuals >= 0).all()
    np.testing.assert_allclose(flow.residuals[:, 0], capacities - flow.flows, atol=tolerance)
    np.testing.assert_allclose(flow.residuals[:, 1], reverse + flow.flows, atol=tolerance)
    net = np.zeros(n, flow.flows.dtype)
    np.add.at(net, edges[:, 1], flow.flows)
    np.subtract.at(net, edges[:, 0], flow.flows)
    assert (net <= sink + tolerance).all()
    assert (-net <= source + tolerance).all()
    a, (i, j) = flow.mask.ravel(), edges.T
    cut = source[~a].sum() + sink[a].sum()
    cut += capacities[a[i] & ~a[j]].sum() + reverse[a[j] & ~a[i]].sum()
    assert abs(flow.bound - cut) <= tolerance
    assert abs(flow.value - cut) <= tolerance


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


# ------------------------------------------------------------------------------- changes and copies


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


# ---------------------------------------------------------------------------------------- bad input

G = FlowGraph(2, [[0, 1]], 1)
R = FlowGraph(2, [[0, 1]], 1.0)
E = [[0, 1]]


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: FlowGraph(-1, [], []), ValueError, "n must be at least 0, got -1"),
        (lambda: FlowGraph(2.0, [], []), TypeError, "n must be an integer, got float"),
        (lambda: FlowGraph(2, [[0, 2]], 1), ValueError, r"edges must lie between 0 and 1, got \(0"),
        (lambda: FlowGraph(2, [[-1, 1]], 1), ValueError, "edges must lie between 0 and 1, got"),
        (lambda: FlowGraph(2, [[1, 1]], 1), ValueError, r"two different nodes, got \(1, 1\)"),
        (
            lambda: FlowGraph(2, [0, 1], 1),
            ValueError,
            r"edges must have shape \(E, 2\), got \(2,\)",
        ),
        (lambda: FlowGraph(2, [[0.0, 1.0]], 1), TypeError, "edges must hold integers, got dtype"),
        (
            lambda: FlowGraph(2, E, -1),
            ValueError,
            "capacities must be finite and not negative, got",
        ),
        (lambda: FlowGraph(2, E, [np.nan]), ValueError, "capacities must be finite .* got nan"),
        (lambda: FlowGraph(2, E, [INF]), ValueError, "capacities must be finite .* got inf"),
        (lambda: FlowGraph(2, E, [1, 2]), ValueError, r"capacities must be .*\(1,\), got \(2,\)"),
        (lambda: FlowGraph(2, E, ["1"]), TypeError, "capacities must hold real numbers, got dtype"),
        (lambda: FlowGraph(2, E, [1j]), TypeError, "capacities must hold real numbers, got dtype"),
        (lambda: FlowGraph(2, E, 1, [-2]), ValueError, "reverse must be finite .* got -2"),
        (lambda: FlowGraph(2, E, 1.5, dtype=int), TypeError, "capacities must hold integers in a"),
        (lambda: FlowGraph(2, E, np.uint64([2**63])), ValueError, r"must be below 2\*\*63, got 92"),
        (
            lambda: G.set_terminals([1.5, 0], 0),
            TypeError,
            "source must hold integers .*dtype=float",
        ),
        (lambda: G.set_terminals([1], 0), ValueError, r"source must be .* \(2,\), got \(1,\)"),
        (lambda: G.set_terminals(0, [0, -1]), ValueError, "sink must not be negative, got -1"),
        (lambda: R.set_terminals(0, [0, np.nan]), ValueError, "sink must hold numbers, got nan"),
        (lambda: R.set_terminals(INF, INF, nodes=[1]), ValueError, "both be infinite .* node 1"),
        (lambda: G.set_terminals(1, 1, nodes=[2]), ValueError, "nodes must lie between 0 and 1"),
        (lambda: G.set_terminals(1, 1, nodes=[0, 0]), ValueError, "nodes must be distinct, got 0"),
        (lambda: G.set_terminals(1, 1, nodes=0), ValueError, "nodes must be one-dimensional"),
        (lambda: G.set_capacities([0.0], 1), TypeError, "edges must hold integers, got dtype"),
        (lambda: G.set_capacities([1], 1), ValueError, "edges must lie between 0 and 0, got 1"),
        (lambda: G.set_capacities([0], [1, 2]), ValueError, r"capacities must be .* got \(2,\)"),
        (lambda: maxflow([["a", "b"]], 1, source=0, sink=1), TypeError, "edges must hold integers"),
        (lambda: maxflow(E, 1, source=0, sink=0), ValueError, "different nodes, got 0 twice"),
        (lambda: maxflow(E, 1, n=2, source=0, sink=2), ValueError, "sink must lie between 0 and 1"),
        (lambda: maxflow(E, 1, source=0, sink=[1, 2]), ValueError, "two nodes or two arrays"),
        (lambda: maxflow(E, 1, source=-1, sink=1), ValueError, "source must be at least 0, got -1"),
        (lambda: maxflow(E, 1, source=[1, 2, 3], sink=[1, 2]), ValueError, r"sink must .*\(3,\)"),
        (lambda: maxflow_batch([1]), TypeError, "graphs must hold FlowGraphs, got int"),
        (lambda: maxflow_batch([G], n_jobs=0), ValueError, "n_jobs must not be 0, got 0"),
        (lambda: maxflow_batch([G], n_jobs=-1.0), TypeError, "n_jobs must be an integer or None"),
        (
            lambda: maxflow_batch([G], n_jobs=np.array([1, 2])),
            TypeError,
            "n_jobs must be an integer or None, got ndarray",
        ),
        (lambda: maxflow_batch(None), TypeError, "graphs must be a sequence of FlowGraphs, got No"),
        (lambda: FlowGraph(2**63, [], []), ValueError, "n must give at most 2147483646 nodes, got"),
        (lambda: FlowGraph(2, E, 1, dtype="abc"), TypeError, "dtype must be a type of .* 'abc'"),
        (lambda: FlowGraph(2, E, 1, dtype=complex), TypeError, "dtype must hold real numbers"),
        (
            lambda: maxflow([[0, 2**63 - 1]], 1, source=0, sink=1),
            ValueError,
            "edges, source and sink must name nodes below 2147483646, got 9223372036854775807",
        ),
        (
            lambda: maxflow(np.array([[0, 2**64 - 1]], np.uint64), 1, source=0, sink=1),
            ValueError,
            "must name nodes below 2147483646, got 18446744073709551615",
        ),
        (lambda: maxflow(E, 1, source=0, sink=2**40), ValueError, "must name nodes below"),
        (
            lambda: maxflow(E, 1, source=np.array(0.0), sink=1),
            TypeError,
            "source must be an integer, got float64",
        ),
        (lambda: maxflow([[0, 1], [1]], 1, source=0, sink=1), TypeError, "edges must be an array"),
        (
            lambda: FlowGraph(2, [[0, 1], [1]], 1),
            TypeError,
            "edges must be .* rows of different lengths",
        ),
        (lambda: FlowGraph(2, E, [[1], [1, 2]]), TypeError, "capacities must be an array of numb"),
        (lambda: FlowGraph(2, E, 1, [[1], [1, 2]]), TypeError, "reverse must be an array of numb"),
        (lambda: maxflow(E, 1, source=[[1], 2], sink=[1]), TypeError, "source must be an array of"),
        (
            lambda: FlowGraph(2, E, np.ma.masked_equal([1], 1)),
            TypeError,
            "capacities must be a plain array, got a masked one",
        ),
        (lambda: G.set_terminals([1, [2]], 0), TypeError, "source must be an array of numbers"),
        (lambda: G.set_terminals(1, 1, nodes=[0, [1]]), TypeError, "nodes must be an array of num"),
        (
            lambda: FlowGraph.grid({}, 1),
            TypeError,
            "shape must be a sequence of integers, got dict",
        ),
        (lambda: FlowGraph.grid({1, 2}, 1), TypeError, "shape must be a sequence .* got set"),
        (lambda: FlowGraph.grid(5, 1), TypeError, "shape must be a sequence of integers, got int"),
        (lambda: FlowGraph.grid((2**20, 2**20), 1), ValueError, "shape must give at most 21474836"),
        (
            lambda: FlowGraph.grid((2**15, 2**15), 1),
            ValueError,
            "shape and offsets must give at most 1073741823 edges, got 2147418112",
        ),
        (
            lambda: FlowGraph.grid((4,), 1, offsets=np.array([[2**64 - 1]], np.uint64)),
            ValueError,
            r"offsets must lie within 2\*\*31 of 0, got 18446744073709551615",
        ),
        (
            lambda: FlowGraph.grid((4,), 1, offsets=[[-(2**62)]]),
            ValueError,
            r"offsets must lie within 2\*\*31 of 0, got -4611686018427387904",
        ),
        (lambda: FlowGraph.grid((2, 2), [[1], [1, 2]]), TypeError, "weights must be an array of n"),
        (lambda: FlowGraph.grid((2, -1), 1), ValueError, "shape must be at least 0, got -1"),
        (
            lambda: FlowGraph.grid((2, 2), [1, 2, 3]),
            ValueError,
            r"weights must broadcast to .*2, 2",
        ),
        (lambda: FlowGraph.grid((2, 2), -1), ValueError, "weights must be finite and not neg"),
        (
            lambda: FlowGraph.grid((4,), 1, offsets=[1]),
            ValueError,
            r"offsets must have shape \(K, 1",
        ),
        (lambda: FlowGraph.grid((4,), 1, offsets=[[0]]), ValueError, "offsets must not be zero"),
        (
            lambda: FlowGraph.grid((4,), 1, offsets=[[1], [-1]]),
            ValueError,
            "each pair .* once, got",
        ),
        (lambda: FlowGraph.grid((4,), 1, offsets=[[1.5]]), TypeError, "offsets must hold integers"),
    ],
)
def test_bad_input_is_one_sentence(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()


def test_what_memory_cannot_hold_is_refused_before_it_is_filled(monkeypatch):
    def refuse(size, kind):
        raise MemoryError

    monkeypatch.setattr("setwise.inference._flows._capacities.np.empty", refuse)
    with pytest.raises(ValueError, match="n must give a graph that fits into memory, got 9 nodes"):
        check_size(9, 1)


def test_kernels_refuse_sizes_that_do_not_fit():
    kind, ends = np.empty(0), np.array([[0, 1]])
    graph = _core.make_flow_graph(2, ends, kind)
    graph.solve()
    one, two, none = np.zeros(1), np.zeros(2), np.zeros(0)
    for call in (
        lambda: _core.make_flow_graph(1, ends, kind),
        lambda: graph.set_all_capacities(two, none),
        lambda: graph.set_all_capacities(one, two),
        lambda: graph.set_all_terminals(two, one),
        lambda: graph.set_terminals(np.array([2]), one, one),
        lambda: graph.set_terminals(np.array([1, 1]), two, two),
        lambda: graph.set_capacities(np.array([1]), one, one),
        lambda: graph.through(2, True),
        lambda: graph.read_sides(np.zeros(1, bool)),
        lambda: graph.read_flows(two, none),
        lambda: graph.read_problem(one, one, one, two),
        lambda: graph.read_edges(np.zeros((2, 2), int)),
        lambda: _core.solve_flow_graphs([graph], 0),
    ):
        with pytest.raises(ValueError, match="must"):
            call()


def test_result_is_frozen():
    flow = maxflow(E, 1, source=0, sink=1)
    assert isinstance(flow, Flow)
    with pytest.raises(AttributeError):
        flow.value = 2
    assert flow == flow
    assert flow != maxflow(E, 1, source=0, sink=1)  # arrays in it: no other is the same
