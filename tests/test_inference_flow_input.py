"""Bad input of flows, for the public calls and for the kernels: one sentence."""

import numpy as np
import pytest

from setwise import _core
from setwise.inference import FlowGraph, maxflow, maxflow_batch
from setwise.inference._flows._capacities import check_size

INF = float("inf")
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
