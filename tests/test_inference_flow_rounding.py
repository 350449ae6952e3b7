"""Flows beside hard seeds and after large capacities, in exact rationals: nothing small is lost."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setwise.inference import FlowGraph, maxflow

EPS = Fraction(2) ** -52
UNITS = 256  # of the last place of what the smallest cut pays beyond min(source, sink)


def exact_cuts(problem, sides):
    """The capacities (as rationals) of the cuts whose source sides are the rows of ``sides``."""
    edges, c, r, s, t = problem
    c, r, s, t = ([Fraction(float(x)) for x in array] for array in (c, r, s, t))
    cuts = []
    for a in sides:
        cut = sum(t[v] if a[v] else s[v] for v in range(len(s)))
        for e, (i, j) in enumerate(edges):
            cut += c[e] if a[i] and not a[j] else r[e] if a[j] and not a[i] else 0
        cuts.append(cut)
    return cuts


def check_answer(graph, problem):
    """The mask is a smallest cut, the value is below the bound, and both are its capacity."""
    s, t = problem[3:]
    n = len(s)
    every = (np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1
    *cuts, cut = exact_cuts(problem, [*every, graph.mask.ravel()])
    base = sum(Fraction(float(x)) for x in np.minimum(s, t))
    rounding = UNITS * EPS * (min(cuts) - base)
    assert cut - min(cuts) <= rounding
    value, bound = Fraction(float(graph.value)), Fraction(float(graph.bound))
    assert value <= bound
    assert abs(value - cut) <= rounding + 2 * EPS * cut
    assert abs(bound - cut) <= rounding + 2 * EPS * cut


@pytest.mark.parametrize("seed", [1e12, 1e16, 1e20, 1e300, np.inf])
def test_value_beside_seeds_is_what_was_sent(seed):
    flow = maxflow([[0, 1]], 0.3, source=[seed, 0.0], sink=[0.0, seed])
    assert flow.value == flow.bound == 0.3
    assert flow.exact
    assert flow.mask.tolist() == [True, False]
    chain = maxflow([[0, 1], [1, 2]], [seed if seed < 1e300 else 9.0, 0.3], source=[seed, 0.1, 0.0],
                    sink=[0.0, 0.2, seed])  # fmt: skip
    assert chain.value == pytest.approx(0.5, abs=1e-15)
    assert chain.value <= chain.bound
    assert chain.exact


@pytest.mark.parametrize("edges_first", [False, True])
def test_old_capacities_leave_nothing_behind(edges_first):
    graph = FlowGraph(2, [[0, 1]], 1e16)
    graph.set_terminals([1e16, 0.0], [0.0, 1e16])
    assert graph.solve() == 1e16
    changes = [
        lambda: graph.set_terminals([0.3, 0.0], [0.0, 0.7]),
        lambda: graph.set_capacities([0], 0.2),
    ]
    for change in reversed(changes) if edges_first else changes:
        change()
    assert graph.solve() == graph.bound == 0.2
    assert graph.mask.tolist() == [True, False]


def seeds():
    """Numbers as they are in practice, and now and then a hard seed."""
    plain = st.floats(0, 8).map(lambda x: round(x, 3))
    hard = st.sampled_from([1e9, 1e12, 1e16, 1e17, 1e20])
    return st.one_of(st.just(0.0), plain, plain, plain, hard)


@st.composite
def histories(draw, most=5):
    """Edges, and the problems of a sequence: each a change of some terminals or capacities."""
    n = draw(st.integers(2, 5))
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] != p[1])
    edges = draw(st.lists(pair, min_size=1, max_size=7))
    large_edges = draw(st.booleans())
    plain = st.floats(0, 8).map(lambda x: round(x, 3))

    def array(count, numbers):
        return np.array(draw(st.lists(numbers, min_size=count, max_size=count)))

    m, of_edges = len(edges), seeds() if large_edges else plain
    steps = [
        ("all", [array(m, of_edges), array(m, of_edges), array(n, seeds()), array(n, seeds())])
    ]
    for _ in range(draw(st.integers(0, most))):
        if draw(st.booleans()):
            which = draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True))
            steps.append(
                ("terminals", [which, array(len(which), seeds()), array(len(which), seeds())])
            )
        else:
            which = draw(st.lists(st.integers(0, m - 1), min_size=1, unique=True))
            numbers = of_edges if draw(st.booleans()) else plain
            steps.append(("edges", [which, array(len(which), numbers), array(len(which), numbers)]))
    return n, np.array(edges), steps


@given(histories())
def test_warm_is_cold_after_any_history(history):
    n, edges, steps = history
    (_, (c, r, s, t)), *changes = steps
    graph = FlowGraph(n, edges, c, r, dtype=float)
    graph.set_terminals(s, t)
    graph.solve()
    check_answer(graph, (edges, c, r, s, t))
    for kind, (which, first, second) in changes:
        if kind == "edges":
            c[which], r[which] = first, second
            graph.set_capacities(which, first, second)
        else:
            s[which], t[which] = first, second
            graph.set_terminals(first, second, nodes=which)
        if kind == "edges" or which[0] % 2:  # now and then two changes at once
            graph.solve()
            check_answer(graph, (edges, c, r, s, t))
    cold = maxflow(edges, c, r, n=n, source=s, sink=t)
    check_answer(cold, (edges, c, r, s, t))
    assert cold.exact
    assert cold.gap >= 0


@given(histories(most=0), st.sampled_from([1e-12, 1e7, 1e9]))
def test_exactness_does_not_depend_on_the_unit(history, unit):
    n, edges, ((_, (c, r, s, t)), *_) = history
    one = maxflow(edges, c, r, n=n, source=s, sink=t)
    other = maxflow(edges, unit * c, unit * r, n=n, source=unit * s, sink=unit * t)
    assert one.exact
    assert other.exact
    assert other.gap <= 1e-13 * max(1.0, other.bound / max(one.bound, 1e-300)) * max(one.bound, 0.0)


@pytest.mark.parametrize("seed", [1e12, 1e17, 1e20])
def test_grids_forget_seeds_that_were_taken_away(seed):
    """Seeds set, solved and taken away again, from a grid: its cut is that of a fresh one."""
    rng = np.random.default_rng(0)
    shape = (12, 10)
    for _ in range(20):
        weights = rng.random((2, *shape))
        s, t = rng.random((2, *shape)) * 2
        graph = FlowGraph.grid(shape, weights)
        graph.set_terminals(s, t)
        graph.solve()
        for _ in range(4):
            pixels = rng.permutation(s.size)[:6]
            hard = [np.where(rng.random(6) < 0.5, seed, 0.0) for _ in range(2)]
            graph.set_terminals(*hard, nodes=pixels)
            value = graph.solve()
            assert value <= graph.bound
            graph.set_terminals(s.ravel()[pixels], t.ravel()[pixels], nodes=pixels)
            value = graph.solve()
            fresh = FlowGraph.grid(shape, weights)
            fresh.set_terminals(s, t)
            assert value == pytest.approx(fresh.solve(), rel=1e-14)
            assert graph.bound == pytest.approx(fresh.bound, rel=1e-14)
            assert value <= graph.bound


def test_flows_beside_seeds_are_flows():
    """After capacities fall, each side sends back what it cannot send on, seeds or not."""
    rng = np.random.default_rng(1)
    for _ in range(40):
        n, m = 6, 12
        tails = rng.integers(0, n, m)
        edges = np.stack([tails, (tails + rng.integers(1, n, m)) % n], 1)
        c, r, s, t = rng.random(m), rng.random(m), rng.random(n), rng.random(n)
        for hard in (s, t):
            hard[rng.integers(n)] = 10.0 ** rng.integers(9, 21)
        graph = FlowGraph(n, edges, c, r)
        graph.set_terminals(s, t)
        graph.solve()
        e = rng.permutation(m)[:6]
        c[e] *= 0.1
        graph.set_capacities(e, c[e], r[e])
        graph.solve()
        check_answer(graph, (edges, c, r, s, t))
        flows, residuals = graph.flows, graph.residuals
        np.testing.assert_allclose(residuals, np.stack([c - flows, r + flows], 1), atol=1e-14)
        assert (residuals >= 0).all()
        net = np.bincount(edges[:, 1], flows, n) - np.bincount(edges[:, 0], flows, n)
        assert (net <= t + 1e-14).all()
        assert (-net <= s + 1e-14).all()
        check_answer(graph, (edges, c, r, s, t))


def test_changes_that_cancel_leave_no_rounding_in_the_value():
    """What was sent over edges of 1, and sent back, is not seen in a flow of 3e-19."""
    edges = [[0, 4], [1, 2], [3, 1], [0, 2], [0, 3], [4, 2], [4, 3], [1, 0]]
    capacities = np.array([3.37088693, 1e8, 0.0, 0.0, 1e-8, 3.188833, 0.0, 0.0])
    graph = FlowGraph(5, edges, capacities, dtype=float)
    graph.solve()
    graph.set_terminals([3e-19], [2.754e-08], nodes=[3])
    graph.solve()
    graph.set_capacities([7], [1.5388])
    graph.set_capacities([0], [3.08806224])
    assert graph.solve() == graph.bound == 3e-19


def test_large_terminals_leave_no_rounding_in_small_ones():
    graph = FlowGraph(2, [[0, 1]], [1.0], dtype=float)
    for base in (1e20, 3.0, 1e-10, 1e-300):
        graph.set_terminals([base, 0.3 * base], [2 * base, base])
        assert graph.solve() == graph.bound == pytest.approx(1.3 * base, rel=1e-15)


@pytest.mark.parametrize("large", [1e12, 1e16, 1e20, 1e300])
@pytest.mark.parametrize("by_edges", [False, True])
def test_what_a_change_leaves_behind_takes_no_digits(large, by_edges):
    """An arc that is opened is saturated first; little ones that meet that are not rounded away."""
    edges = np.array([[0, 1], [1, 2], [2, 3]])
    c, s, t = np.array([0.3, 2 * large, 1.0]), np.array([1.0, 0, 0, 0]), np.array([0, 0, 0, 0.1])
    if by_edges:
        graph = FlowGraph(4, edges, c * [1, 0, 1], c * [1, 0, 1])
        graph.set_terminals(s, t)
        assert graph.solve() == 0.0
        graph.set_capacities([1], c[1:2], c[1:2])
    else:
        graph = FlowGraph(4, edges, c, c)
        graph.set_terminals([0, large, 0, 0], [0, 0, large, 0])
        assert graph.solve() == large
        graph.set_terminals(s, t)
    assert graph.solve() == 0.1
    check_answer(graph, (edges, c, c, s, t))
    assert graph.flows.tolist() == [0.1, 0.1, 0.1]


@pytest.mark.parametrize("large", [1e12, 5e19])
def test_blocks_are_joined_by_large_edges(large):
    """What goes over an edge of 0.5 goes on over one of 5e19 between two other blocks."""
    edges = np.array([[0, 1], [1, 2], [2, 3]])
    c, s, t = np.array([1.0, 0.5, large]), np.array([2.0, 0, 1e-20, 0]), np.array([0, 0, 0, large])
    graph = FlowGraph(4, edges, c, c)
    graph.set_terminals(s, t)
    graph._graph.solve(1, small_blocks=True)
    check_answer(graph, (edges, c, c, s, t))
    assert graph.flows.tolist() == [0.5, 0.5, 0.5]
    check_answer(graph, (edges, c, c, s, t))
