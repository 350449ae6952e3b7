"""Grids whose edges are computed and not stored, of every shape and neighbourhood."""

import pickle
from itertools import product

import numpy as np
import pytest
from flow_problems import check_flow

from setwise.inference import FlowGraph

INF = float("inf")
CUBE = [o for o in product((-1, 0, 1), repeat=3) if o > (0, 0, 0)]
FACES = [o for o in CUBE if np.abs(o).sum() == 1]


def edges_of(shape, offsets):
    """The edges of a grid and the places of their weights, pixel by pixel."""
    edges, places = [], []
    for k, offset in enumerate(offsets):
        for p in np.ndindex(*shape):
            q = tuple(np.add(p, offset))
            if all(0 <= x < side for x, side in zip(q, shape, strict=True)):
                edges.append([np.ravel_multi_index(x, shape) for x in (p, q)])
                places.append((k, *p))
    rows = np.array(places, int).reshape(-1, len(shape) + 1)
    return np.array(edges, int).reshape(-1, 2), tuple(rows.T)


def random_grid(rng):
    """A shape, some of whose sides may be 1, and offsets, each turned one way or the other."""
    shape = tuple(int(rng.choice(sides)) for sides in ([1, 3, 9, 14], [1, 3, 5, 6], [1, 2, 4, 6]))
    kind = rng.integers(3)
    if kind == 0:
        offsets = FACES
    elif kind == 1:
        offsets = CUBE
    else:
        offsets = rng.permutation(CUBE)[: rng.integers(1, 8)].tolist()
        offsets = [*offsets, [2, 0, -1]] if rng.random() < 0.3 else offsets
    return shape, np.array(offsets) * rng.choice([-1, 1], (len(offsets), 1))


@pytest.mark.parametrize("dtype", [int, float])
def test_random_volumes_are_the_graphs_of_their_edges(dtype):
    rng = np.random.default_rng(3)
    scale, tolerance, compact = (1, 0, 0) if dtype is int else (1 / 7, 1e-10, 0)
    for _ in range(50):
        shape, offsets = random_grid(rng)
        n, (edges, places) = int(np.prod(shape)), edges_of(shape, offsets)
        w, back = rng.integers(0, 9, (2, len(offsets), *shape)) * rng.integers(
            0, 2, (2, len(offsets), *shape)
        )
        back = w if rng.random() < 0.5 else back
        s, t = (rng.integers(0, 12, (2, n)) * scale).astype(dtype)
        if rng.random() < 0.3:  # two seeds, and nothing else
            s, t = np.zeros((2, n), dtype)
            s[0], t[-1] = (20, 20) if n > 1 else (0, 0)
        if dtype is float and rng.random() < 0.3 and n > 1:
            s[0], t[0], s[-1], t[-1] = INF, 0, 0, INF
        c, r = w[places] * scale, back[places] * scale
        reverse = None if back is w else back * scale
        graph = FlowGraph.grid(shape, w * scale, reverse, offsets=offsets, dtype=dtype)
        compact += graph._graph.compact
        assert np.array_equal(graph.edges, edges)
        graph.set_terminals(s, t)
        order = rng.permutation(n)  # where a node of the list is: not at the distances of a grid
        for _ in range(3):
            graph.solve()
            check_flow(graph, n, edges, c, r, s, t, tolerance)
            plain = FlowGraph(n, order[edges], c, r, dtype=dtype)
            at = np.argsort(order)
            plain.set_terminals(s[at], t[at])
            assert abs(plain.solve() - graph.value) <= tolerance
            v = rng.permutation(n)[: rng.integers(0, n + 1)]
            s[v], t[v] = rng.integers(0, 12, (2, len(v))) * scale
            graph.set_terminals(s[v], t[v], nodes=v)
            e = rng.permutation(len(c))[: rng.integers(0, len(c) + 1)]
            c[e], r[e] = rng.integers(0, 9, (2, len(e))) * scale
            graph.set_capacities(e, c[e], r[e])
    assert 10 <= compact < 50


def test_layouts_of_weights_do_not_matter():
    rng = np.random.default_rng(0)
    shape = (9, 6, 5)
    for offsets in (FACES, CUBE):
        full = (len(offsets), *shape)
        s, t = rng.integers(0, 9, (2, *shape))

        def solved(weights, reverse=None, offsets=offsets, s=s, t=t):
            graph = FlowGraph.grid(shape, weights, reverse, offsets=offsets)
            assert graph._graph.compact
            graph.set_terminals(s.astype(graph.dtype), t.astype(graph.dtype))
            return graph.solve(), graph.residuals + graph.flows[:, None] * [1, -1]

        w = rng.integers(0, 9, full)
        value, capacities = solved(w)
        assert np.array_equal(capacities[:, 0], w[edges_of(shape, offsets)[1]])
        wide = np.zeros((2 * len(offsets), 9, 6, 10), int)
        wide[::2, :, :, ::-2] = w
        layouts = [
            np.asfortranarray(w), wide[::2, :, :, ::-2], w.astype(np.float32), w.astype(np.uint8),
            w[::-1][::-1], w.tolist(),
        ]  # fmt: skip
        for same in layouts:
            for again in (solved(same), solved(same, w), solved(w, same)):
                assert again[0] == value
                assert np.array_equal(again[1], capacities)
        for few in (3, rng.integers(0, 9, (len(offsets), 1, 1, 1)), rng.integers(0, 9, (6, 1))):
            repeated, plain = solved(few), solved(np.broadcast_to(few, full).copy())
            assert repeated[0] == plain[0]
            assert np.array_equal(repeated[1], plain[1])


def test_a_volume_travels():
    rng = np.random.default_rng(0)
    graph = FlowGraph.grid((9, 6, 5), rng.random((13, 9, 6, 5)), offsets=CUBE)
    graph.set_terminals(*rng.random((2, 9, 6, 5)))
    graph.solve()
    for other in (graph.copy(), pickle.loads(pickle.dumps(graph))):
        assert other.shape == graph.shape
        assert np.array_equal(other.edges, graph.edges)
        assert abs(other.solve() - graph.value) < 1e-12 * graph.value
        other.set_terminals(0.0, 1.0)
        assert other.solve() == 0
    assert graph.solve() > 0


@pytest.mark.parametrize("bad", [-1.0, INF, float("nan")])
def test_weights_that_lead_nowhere_are_numbers_too(bad):
    weights = np.ones((3, 6, 5, 4))
    weights[2, 5, 4, 3] = bad
    with pytest.raises(ValueError, match="weights must be finite and not negative, got"):
        FlowGraph.grid((6, 5, 4), weights)
    with pytest.raises(ValueError, match="reverse must be finite and not negative, got"):
        FlowGraph.grid((6, 5, 4), 1.0, weights)


def test_a_grid_refuses_more_than_can_be_summed():
    weights = np.full((3, 6, 5, 4), 2**54)
    with pytest.raises(ValueError, match=r"the sum of all capacities must be below 2\*\*63"):
        FlowGraph.grid((6, 5, 4), weights)
    with pytest.raises(ValueError, match=r"the sum of all capacities must be below 2\*\*1022"):
        FlowGraph.grid((6, 5, 4), weights * 2.0**960)
    with pytest.raises(TypeError, match="weights must hold integers in a graph of integers"):
        FlowGraph.grid((6, 5, 4), weights * 1.0, dtype=int)


def test_far_seeds_with_the_cut_at_either_end():
    """All distances of a search rise at once when its root is cut off."""
    for low in (0, -1):
        rng = np.random.default_rng(0)
        weights = rng.integers(5, 9, (2, 40, 40))
        weights[0][low, low], weights[1][low, low] = 1, 2
        if low == -1:
            weights[0][-2, -1], weights[1][-1, -2] = 1, 2
        graph = FlowGraph.grid((40, 40), weights)
        source, sink = np.zeros((2, 40, 40), int)
        source[0, 0] = sink[-1, -1] = 100
        graph.set_terminals(source, sink)
        assert graph.solve() == graph.bound == 3
        assert graph.mask.sum() == (1 if low == 0 else 1599)


def test_a_grid_without_edges_computes_in_the_type_of_its_weights():
    graph = FlowGraph.grid((1, 1), 0.5)
    graph.set_terminals([[0.25]], [[0.75]])
    assert graph.solve() == 0.25
    assert FlowGraph.grid((1, 1), 2).dtype == np.int64
