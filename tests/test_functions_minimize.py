"""Exact minimisation: brute force, certificates, ties, a second opinion by maximum flow."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow
from strategies import numbers, set_functions, submodular_functions

from setwise.functions import (
    Cardinality,
    ConcaveOfModular,
    Counts,
    Coverage,
    Cut,
    Modular,
    Oracle,
    Table,
    minimize,
    tabulate,
)
from setwise.functions._minimization._corral import Corral


def unit(values):
    """Return the largest number that divides all differences of the values."""
    steps = [Fraction(value) - Fraction(values[0]) for value in values]
    parts = math.lcm(*[step.denominator for step in steps])
    return math.gcd(*[int(step * parts) for step in steps]) / parts


def assert_certificate(function, result):
    """The value is that of the mask, the bound that of x, and x is in the base polytope."""
    values = tabulate(function).values
    scale = max(1.0, np.abs(values).max())
    assert result.value == function(result.mask)
    assert result.gap == result.value - result.bound >= 0
    assert 0 <= result.excess <= min(result.gap + 1e-12 * scale, result.gap_scale)
    proved = result.excess <= result.rounding
    assert result.relative_gap == (0.0 if proved else result.excess / result.gap_scale)
    assert reference.in_base_polytope(values, result.x)
    from_x = values[0] + np.minimum(result.x, 0).sum()
    # No value lies less than a unit below another, where all are multiples of it.
    rounding = 1e-12 * scale
    assert result.bound <= from_x + rounding or result.value == result.bound < from_x + unit(values)
    assert result.bound <= reference.minimum(values) + 1e-12 * scale


def assert_minimum(function):
    result = minimize(function)
    assert result.converged
    assert result.exact
    assert result.certified
    assert result.relative_gap <= 1e-9
    least = reference.minimum(tabulate(function).values)
    assert result.value == pytest.approx(least, rel=1e-9, abs=1e-9)
    assert_certificate(function, result)


@given(submodular_functions(), numbers())
def test_every_submodular_function_is_minimised(function, shift):
    assert_minimum(function + Cardinality(np.full(function.n + 1, shift)))


@pytest.mark.parametrize("weight", [1e-2, 1e-5, 1e-7])
def test_small_parts_beside_a_large_one_are_proved(weight):
    """What all vertices share costs no digits of what they do not."""
    large = Coverage([[], [], [], [], [0]], [1.0])
    assert_minimum(large + Cut([[0, 1], [2, 3]], weights=weight, n=5))


def test_tiny_edges_beside_one_item_are_proved():
    """A tight gap does not end the search while edges of 1e-7 stand open beside a weight of 1."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        n = int(rng.integers(3, 8))
        covers = rng.random(n) < 0.6
        item = Coverage([[0] if covered else [] for covered in covers], np.ones(int(covers.any())))
        edges = random_edges(rng, n, int(rng.integers(1, 5)))
        small = Cut(edges, weights=10.0 ** -rng.integers(2, 8), n=n)
        assert_minimum(item + small + Cardinality(np.ones(n + 1)))


def test_every_directed_graph_of_five_edges_is_minimised():
    """The corral keeps a new vertex whose weight is 0 after a step of rounding alone."""
    arcs = list(itertools.permutations(range(4), 2))
    for edges in itertools.combinations(arcs, 5):
        assert minimize(Cut(edges, weights=1.512307, n=4, directed=True)).exact


def grid(height, width):
    index = np.arange(height * width).reshape(height, width)
    across = np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()], axis=1)
    down = np.stack([index[:-1].ravel(), index[1:].ravel()], axis=1)
    return np.concatenate([across, down])


def random_edges(rng, n, count):
    first = rng.integers(0, n, size=count)
    return np.stack([first, (first + rng.integers(1, n, size=count)) % n], axis=1)


def cut_with_unaries(rng, n):
    edges = random_edges(rng, n, 3 * n)
    return Cut(edges, rng.exponential(size=3 * n), n=n) + Modular(2 * rng.normal(size=n))


def directed_cut_with_unaries(rng, n):
    edges = random_edges(rng, n, 3 * n)
    return Cut(edges, rng.random(3 * n), n=n, directed=True) + Modular(rng.normal(size=n))


def cut_with_ties(rng, n):
    edges = random_edges(rng, n, 2 * n)
    return Cut(edges, n=n) + Modular(rng.integers(-2, 3, size=n).astype(float))


def coverage_minus_modular(rng, n):
    sets = [rng.integers(0, 2 * n, size=4) for _ in range(n)]
    return Coverage(sets) - Modular(rng.integers(0, 9, size=n) / 2)


def concave_plus_modular_plus_cut(rng, n):
    concave = 3.0 * Cardinality(np.sqrt(np.arange(n + 1)))
    return concave + Modular(rng.normal(size=n)) + Cut(random_edges(rng, n, n), 0.2, n=n)


def log_minus_modular(rng, n):
    weights = rng.random(n)
    return ConcaveOfModular(np.log1p, 10 * weights) - Modular(0.3 * rng.random(n))


def iwata(n):
    """|A| |V - A| - sum of (5 i - 2 n) over A, i = 1..n: Iwata's test function."""
    k = np.arange(n + 1.0)
    return Cardinality(k * (n - k)) - Modular(5.0 * np.arange(1, n + 1) - 2.0 * n)


FAMILIES = [
    cut_with_unaries,
    directed_cut_with_unaries,
    cut_with_ties,
    coverage_minus_modular,
    concave_plus_modular_plus_cut,
    log_minus_modular,
]


@pytest.mark.parametrize("family", FAMILIES)
def test_random_members_of_a_family_are_minimised(family):
    rng = np.random.default_rng(0)
    for n in range(2, 10):
        for _ in range(8):
            assert_minimum(family(rng, n))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_hundred_elements_are_minimised_with_proof(family):
    result = minimize(family(np.random.default_rng(1), 100))
    assert result.exact


@pytest.mark.parametrize("n", range(1, 13))
def test_iwatas_function(n):
    assert_minimum(iwata(n))


def test_iwatas_function_at_two_hundred():
    # Removing the element i from the set of the last k changes F by 5 i - 2 n - (n - 2 k + 1), so
    # the best set is a tail; the best tail by trying all.
    n = 200
    result = minimize(iwata(n))
    tails = np.tri(n + 1, n, -1, bool)[:, ::-1]
    assert result.exact
    assert result.value == iwata(n)(tails).min()


@pytest.mark.parametrize("integral", [True, False])
def test_a_grid_agrees_with_a_maximum_flow(integral):
    rng = np.random.default_rng(2)
    edges = grid(12, 15)
    n = 180
    weights = rng.integers(1, 1000, size=len(edges))
    unary = rng.integers(-2500, 2500, size=n)
    scale = 1.0 if integral else 1 / 700
    result = minimize(Cut(edges, scale * weights, n=n) + Modular(scale * unary))
    # Source n side = inside: cutting (source, i) leaves i out, which costs a gain that is lost.
    rows = np.concatenate([edges[:, 0], edges[:, 1], np.full(n, n), np.arange(n)])
    columns = np.concatenate([edges[:, 1], edges[:, 0], np.arange(n), np.full(n, n + 1)])
    capacities = [weights, weights, np.maximum(-unary, 0), np.maximum(unary, 0)]
    ends = (rows.astype(np.int32), columns.astype(np.int32))  # SciPy 1.13 takes no others
    graph = csr_array((np.concatenate(capacities).astype(np.int32), ends), shape=(n + 2, n + 2))
    flow = maximum_flow(graph, n, n + 1).flow_value
    assert result.exact
    assert result.value == pytest.approx(scale * (flow + np.minimum(unary, 0).sum()), rel=1e-9)


@pytest.mark.parametrize("scale", [1e-8, 1e5, 1e200])
def test_scale_does_not_matter(scale):
    function = cut_with_ties(np.random.default_rng(3), 40)
    plain, scaled = minimize(function), minimize(scale * function)
    assert scaled.exact
    assert scaled.value == pytest.approx(scale * plain.value, rel=1e-9)


def test_a_minimum_of_zero_on_a_large_scale():
    result = minimize(1e6 * Cut(grid(10, 10), n=100))
    assert result.exact
    assert result.value == 0.0


def test_no_element():
    result = minimize(Table([3.0]))
    assert (result.value, result.bound, result.gap) == (3.0, 3.0, 0.0)
    assert result.mask.shape == result.x.shape == (0,)
    assert result.exact


@pytest.mark.parametrize(("values", "expected"), [([1.0, -2.0], True), ([1.0, 4.0], False)])
def test_one_element(values, expected):
    result = minimize(Table(values))
    assert result.mask.tolist() == [expected]
    assert result.value == min(values)
    assert result.exact


def test_a_constant_function():
    result = minimize(Cardinality(np.full(8, 2.5)))
    assert (result.value, result.bound, result.n_iter) == (2.5, 2.5, 1)
    assert not result.x.any()


@given(set_functions())
def test_unknown_functions_run_but_are_not_certified(function):
    oracle = Oracle(function, function.n)
    result = minimize(oracle)
    assert not result.certified
    assert not result.exact
    assert result.value == oracle(result.mask)
    assert result.gap >= 0


def test_a_declared_oracle_is_certified():
    oracle = Oracle(lambda mask: abs(int(mask.sum()) - 2) * -1.0, 4, submodular=True)
    result = minimize(oracle)
    assert result.exact
    assert result.value == -2.0


def test_more_counts_than_fit_a_grid_run_but_are_not_certified(monkeypatch):
    monkeypatch.setattr("setwise.functions._families._counts.GRID_CELLS", 8)
    function = Counts(lambda n, q: np.sqrt(n + q), [True] * 3 + [False] * 3)
    result = minimize(function + Modular(np.linspace(-1.0, 1.0, 6)))
    assert not result.certified
    assert result.value <= 0.0


def test_a_function_that_is_not_submodular_is_refused_before_any_work():
    calls = []
    oracle = Oracle(lambda mask: calls.append(1) or 0.0, 3, submodular=False)
    with pytest.raises(ValueError, match="function must be submodular to be minimised"):
        minimize(oracle)
    assert not calls


def test_max_iter_stops_with_a_valid_certificate():
    function = cut_with_unaries(np.random.default_rng(4), 10)
    full = minimize(function)
    for limit in range(1, full.n_iter):
        result = minimize(function, max_iter=limit)
        assert result.n_iter == limit
        assert not result.converged
        assert_certificate(function, result)


def test_tol_is_compared_with_the_relative_gap():
    function = cut_with_unaries(np.random.default_rng(5), 100)
    loose, tight = minimize(function, tol=1e-1), minimize(function)
    assert loose.converged
    assert not loose.exact
    assert 1e-9 < loose.relative_gap <= 1e-1
    assert loose.n_iter < tight.n_iter


def test_an_impossible_tolerance_ends_and_says_so():
    function = 0.1 * cut_with_unaries(np.random.default_rng(6), 60)
    result = minimize(function, tol=0.0)
    assert result.relative_gap <= 1e-9
    assert result.converged is (result.exact or result.excess == 0.0)
    assert result.n_iter < 1000


def test_callback_sees_the_gap_close_and_can_stop():
    function = cut_with_unaries(np.random.default_rng(7), 60)
    seen = []
    result = minimize(function, callback=seen.append)
    assert [step.n_iter for step in seen] == list(range(1, result.n_iter + 1))
    assert np.all(np.diff([step.gap for step in seen]) <= 0)
    assert minimize(function, callback=lambda step: step.n_iter == 3).n_iter == 3


def test_a_result_cannot_be_changed():
    result = minimize(Modular([1.0, -1.0]))
    with pytest.raises(AttributeError):
        result.value = 0.0
    with pytest.raises(ValueError, match="read-only"):
        result.mask[0] = True


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"tol": -1.0}, ValueError, "tol must not be negative, got -1"),
        ({"tol": np.nan}, ValueError, "tol must be finite, got nan"),
        ({"tol": "a"}, TypeError, "tol must be a real number, got str"),
        ({"max_iter": 0}, ValueError, "max_iter must be at least 1, got 0"),
        ({"max_iter": 2.5}, TypeError, "max_iter must be an integer, got float"),
    ],
)
def test_bad_input(options, error, sentence):
    with pytest.raises(error, match=sentence):
        minimize(Modular([1.0]), **options)


@given(st.integers(1, 6), st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 1.0, 1e3]))
def test_a_corral_holds_the_point_of_least_norm(n, seed, spread):
    """Wolfe's criterion: a point of a hull has the least norm if none of the hull is beyond it."""
    rng = np.random.default_rng(seed)
    points = spread * rng.normal(size=(3 * n, n))
    points += ((1.0 - points.sum(axis=1)) / n)[:, None]
    corral = Corral(points[0])
    while corral.add(points[np.argmin(points @ corral.point())]):
        assert corral.weights.min() >= 0
        assert corral.weights.sum() == pytest.approx(1.0)
    x = corral.point()
    assert np.min(points @ x) >= x @ x - 1e-9 * spread
