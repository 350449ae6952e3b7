"""Random graphs with capacities, and the proof that a flow on one is best."""

import numpy as np


def random_graph(rng, largest=20, high=30):
    n = int(rng.integers(2, largest))
    m = int(rng.integers(0, 4 * n))
    tails = rng.integers(0, n, m)
    edges = np.stack([tails, (tails + rng.integers(1, n, m)) % n], 1)
    return n, edges, rng.integers(0, high, m), rng.integers(0, high, m) * rng.integers(0, 2, m)


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
