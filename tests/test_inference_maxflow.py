"""Largest flows against SciPy, cuts against all sets, warm starts against cold ones."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from setwise.inference import FlowGraph, maxflow, maxflow_batch


def random_graph(rng, largest=20, high=30):
    n = int(rng.integers(2, largest))
    m = int(rng.integers(0, 4 * n))
    tails = rng.integers(0, n, m)
    edges = np.stack([tails, (tails + rng.integers(1, n, m)) % n], 1)
    return n, edges, rng.integers(0, high, m), rng.integers(0, high, m) * rng.integers(0, 2, m)


def scipy_value(n, edges, capacities, reverse, source, sink):
    both = np.concatenate([edges, edges[:, ::-1]])
    matrix = csr_array(
        (np.concatenate([capacities, reverse]).astype(np.int32), both.T.astype(np.int32)),
        shape=(n, n),
    )
    matrix.sum_duplicates()
    return maximum_flow(matrix, source, sink).flow_value


def check_flow(flow, n, edges, capacities, reverse, source, sink, tolerance=0):
    """A flow, a cut and their equality: each certifies the other."""
    assert (flow.residuals >= 0).all()
    assert (flow.flows <= capacities + tolerance).all() and (
        -flow.flows <= reverse + tolerance
    ).all()
    np.testing.assert_allclose(flow.residuals[:, 0], capacities - flow.flows, atol=tolerance)
    np.testing.assert_allclose(flow.residuals[:, 1], reverse + flow.flows, atol=tolerance)
    net = np.zeros(n, flow.flows.dtype)
    np.add.at(net, edges[:, 1], flow.flows)
    np.subtract.at(net, edges[:, 0], flow.flows)
    assert (net <= sink + tolerance).all() and (-net <= source + tolerance).all()
    a = flow.mask
    i, j = edges.T
    cut = (
        source[~a].sum()
        + sink[a].sum()
        + capacities[a[i] & ~a[j]].sum()
        + reverse[a[j] & ~a[i]].sum()
    )
    np.testing.assert_allclose(flow.bound, cut, atol=tolerance)
    np.testing.assert_allclose(flow.value, cut, atol=tolerance)


def test_values_are_those_of_scipy():
    rng = np.random.default_rng(0)
    for _ in range(1000):
        n, edges, c, r = random_graph(rng)
        source, sink = (int(k) for k in rng.permutation(n)[:2])
        flow = maxflow(edges, c, r, n=n, source=source, sink=sink)
        assert flow.value == scipy_value(n, edges, c, r, source, sink)
        assert flow.exact and flow.gap == 0 and isinstance(flow.value, int)
        assert flow.mask[source] and not flow.mask[sink]
        real = maxflow(edges, c / 7, r / 7, n=n, source=source, sink=sink)
        assert real.value == pytest.approx(flow.value / 7, abs=1e-12)


def test_warm_is_cold():
    rng = np.random.default_rng(1)
    for k in range(400):
        n, edges, c, r = random_graph(rng, 14)
        scale = 1 if k % 2 else 1 / 7
        dtype = int if k % 2 else float
        s, t = rng.integers(0, 20, (2, n))
        graph = FlowGraph(n, edges, c * scale, r * scale, dtype=dtype)
        graph.set_terminals(s * scale, t * scale)
        for _ in range(6):
            graph.solve()
            cold = maxflow(edges, c * scale, r * scale, n=n, source=s * scale, sink=t * scale)
            assert graph.value == pytest.approx(cold.value, abs=1e-10 * (1 - k % 2))
            check_flow(
                graph, n, edges, c * scale, r * scale, s * scale, t * scale, 0 if k % 2 else 1e-10
            )
            check_flow(
                cold, n, edges, c * scale, r * scale, s * scale, t * scale, 0 if k % 2 else 1e-10
            )
            if rng.random() < 0.7:
                v = rng.permutation(n)[: rng.integers(0, n + 1)]
                s[v], t[v] = rng.integers(0, 20, (2, len(v)))
                graph.set_terminals(s[v] * scale, t[v] * scale, nodes=v)
            if rng.random() < 0.7:
                e = rng.permutation(len(c))[: rng.integers(0, len(c) + 1)]
                c[e], r[e] = rng.integers(0, 20, (2, len(e)))
                graph.set_capacities(e, c[e] * scale, r[e] * scale)


def test_batch():
    rng = np.random.default_rng(2)
    graphs = []
    for _ in range(20):
        n, edges, c, r = random_graph(rng)
        graph = FlowGraph(n, edges, c, r)
        graph.set_terminals(*rng.integers(0, 9, (2, n)))
        graphs.append(graph)
    values = maxflow_batch([g.copy() for g in graphs], n_jobs=3)
    assert values == [g.solve() for g in graphs]
