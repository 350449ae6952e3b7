"""Modular, Cardinality, Counts, ConcaveOfModular: their definitions, laws and closed forms.

A family is tested by being listed in FAMILIES, beside its definition as a function of a set.
"""

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from math import log1p, sqrt

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import arrays, numbers, orders, sizes, submodular_functions

from setwise.functions import (
    Cardinality,
    ConcaveOfModular,
    Counts,
    Modular,
    Oracle,
    Ratio,
    SetFunction,
    Table,
    base_vertex,
    lovasz_extension,
    tabulate,
)

# Sums of a handful of numbers of order one: a few units in the last place.
ROUNDING = 1e-12


def hill(total):
    return total * (4.0 - total)


def bent(n, q):
    return np.minimum(n, 2.0) + 0.5 * np.sqrt(q)


def product(n, q):
    return n * q - 0.5 * n


@dataclass(frozen=True)
class Family:
    function: SetFunction
    definition: Callable[[frozenset[int]], float]


WEIGHTS = [1.0, -2.0, 0.5, 3.0]
SPREAD = [0.5, 0.0, 1.25, 2.0]
SPLIT = np.array([True, False, True, True, False])
GRID = np.array([[0.0, 1.0, -1.0], [2.0, 2.5, 0.5], [2.0, 4.0, 4.0], [1.0, 1.0, 7.0]])


def sum_of(weights):
    return lambda chosen: sum(weights[i] for i in chosen)


def entry(values):
    return lambda chosen: values[len(chosen)]


def of_counts(formula, split):
    """A set function from a formula of (n, q), the numbers inside and outside the split."""
    inside = {i for i, is_in in enumerate(split) if is_in}
    return lambda chosen: float(formula(len(chosen & inside), len(chosen - inside)))


def one_minus_jaccard(m):
    return lambda n, q: 1 - (m - n) / (m + q) if m else min(1, q)


def one_minus_f(beta, m):
    """From precision and recall."""

    def loss(n, q):
        hits = m - n
        if m == 0:
            return min(1, q)
        b = beta**2
        return 1 - (1 + b) * hits / ((1 + b) * hits + b * n + q)

    return loss


def f_ratio(beta, m):
    return Ratio(m, beta)


def supermodular_part(beta, m):
    """G(n) = l(n, 0) - n l(1, 0), as the notes give it."""
    loss = one_minus_f(beta, m)
    return lambda n, q: loss(n, 0) - n * loss(1, 0)


def submodular_part(beta, m):
    loss, convex = one_minus_f(beta, m), supermodular_part(beta, m)
    return lambda n, q: loss(n, q) - convex(n, q)


def concave(curve, weights):
    return lambda chosen: curve(sum(weights[i] for i in chosen))


CONVEX, CONCAVE = [0.0, 0.0, 1.0, 3.0, 6.0], [0.0, 3.0, 5.0, 5.0, 4.0]
BENT, CONSTANT = [1.0, 3.0, 2.0, 2.0, 5.0], [2.0, 2.0, 2.0, 2.0]
FIVE, NONE, ALL, LAST = SPLIT, np.zeros(4, bool), np.ones(4, bool), np.arange(4) == 3

FAMILIES = {
    "modular": Family(Modular(WEIGHTS), sum_of(WEIGHTS)),
    "modular increasing": Family(Modular(SPREAD), sum_of(SPREAD)),
    "modular on nothing": Family(Modular([]), sum_of([])),
    "cardinality convex": Family(Cardinality(CONVEX), entry(CONVEX)),
    "cardinality concave": Family(Cardinality(CONCAVE), entry(CONCAVE)),
    "cardinality neither": Family(Cardinality(BENT), entry(BENT)),
    "cardinality constant": Family(Cardinality(CONSTANT), entry(CONSTANT)),
    "cardinality of one": Family(Cardinality([1.0, 0.0]), entry([1.0, 0.0])),
    "cardinality on nothing": Family(Cardinality([7.0]), entry([7.0])),
    "counts formula": Family(Counts(bent, SPLIT), of_counts(bent, SPLIT)),
    "counts product": Family(Counts(product, SPLIT), of_counts(product, SPLIT)),
    "counts table": Family(Counts(GRID, SPLIT), of_counts(lambda n, q: GRID[n, q], SPLIT)),
    "counts on nothing": Family(Counts([[2.0]], np.zeros(0, bool)), lambda chosen: 2.0),
    "jaccard": Family(Counts(Ratio(3), FIVE), of_counts(one_minus_jaccard(3), FIVE)),
    "jaccard, no positive": Family(Counts(Ratio(0), NONE), of_counts(one_minus_jaccard(0), NONE)),
    "jaccard, no negative": Family(Counts(Ratio(4), ALL), of_counts(one_minus_jaccard(4), ALL)),
    "dice": Family(Counts(f_ratio(1, 3), FIVE), of_counts(one_minus_f(1, 3), FIVE)),
    "dice, no positive": Family(Counts(f_ratio(1, 0), NONE), of_counts(one_minus_f(1, 0), NONE)),
    "dice, no negative": Family(Counts(f_ratio(1, 4), ALL), of_counts(one_minus_f(1, 4), ALL)),
    "dice, one positive": Family(Counts(f_ratio(1, 1), LAST), of_counts(one_minus_f(1, 1), LAST)),
    "f-2": Family(Counts(f_ratio(2, 3), FIVE), of_counts(one_minus_f(2, 3), FIVE)),
    "f-1/2": Family(Counts(f_ratio(0.5, 3), FIVE), of_counts(one_minus_f(0.5, 3), FIVE)),
    "f of dice": Family(
        Counts(f_ratio(1, 3).parts()[0], FIVE), of_counts(submodular_part(1, 3), FIVE)
    ),
    "g of dice": Family(
        Counts(f_ratio(1, 3).parts()[1], FIVE), of_counts(supermodular_part(1, 3), FIVE)
    ),
    "f of f-2": Family(
        Counts(f_ratio(2, 4).parts()[0], ALL), of_counts(submodular_part(2, 4), ALL)
    ),
    "root of modular": Family(ConcaveOfModular(np.sqrt, SPREAD), concave(sqrt, SPREAD)),
    "logarithm of modular": Family(ConcaveOfModular(np.log1p, SPREAD), concave(log1p, SPREAD)),
    "hill of modular": Family(ConcaveOfModular(hill, SPREAD), concave(hill, SPREAD)),
    "root of one weight": Family(ConcaveOfModular(np.sqrt, [0, 2.0, 0]), concave(sqrt, [0, 2, 0])),
    "root on nothing": Family(ConcaveOfModular(np.sqrt, []), concave(sqrt, [])),
}

each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())


def oracle_of(family: Family) -> Oracle:
    return Oracle(
        lambda mask: family.definition(frozenset(np.flatnonzero(mask).tolist())), family.function.n
    )


# --------------------------------------------------------------------------------------------- laws


@each_family
def test_value_is_the_definition(family):
    function, masks = family.function, reference.all_masks(family.function.n)
    expected = reference.all_values(oracle_of(family))
    np.testing.assert_allclose(function(masks), expected, atol=ROUNDING)
    np.testing.assert_allclose(reference.all_values(function), expected, atol=ROUNDING)
    np.testing.assert_allclose(tabulate(function).values, expected, atol=ROUNDING)


@each_family
def test_gains_are_differences_along_every_order_and_prefix(family):
    function, oracle = family.function, oracle_of(family)
    values = reference.all_values(oracle)
    for order in permutations(range(function.n)):
        expected = reference.gains(values, order)
        for length in range(function.n + 1):
            prefix = np.array(order[:length], int)
            np.testing.assert_allclose(function.gains(prefix), expected[:length], atol=ROUNDING)
    np.testing.assert_allclose(oracle.gains(order), reference.gains(values, order))


@each_family
@pytest.mark.parametrize("statement", ["is_submodular", "is_supermodular", "is_increasing"])
def test_no_statement_contradicts_brute_force(family, statement):
    said = getattr(family.function, statement)
    truth = getattr(reference, statement)(reference.all_values(oracle_of(family)))
    assert said in (truth, None)
    assert said in (True, False, None), "an answer is a Python truth value"


@each_family
def test_what_surrogates_ask_is_what_brute_force_says(family):
    """Of a family, of a multiple, and of its sum with one of the size and equal weights."""
    function, n = family.function, family.function.n
    sizes, even = Cardinality(np.sin(np.arange(n + 1.0))), Modular(np.full(n, 0.3))
    for asked in (function, 0.7 * function, 0.7 * function + 1.3 * sizes + 0.9 * even):
        values = reference.all_values(asked)
        assert asked._largest_gain() == pytest.approx(reference.largest_gain(values), abs=ROUNDING)
        reached = asked._all_values()
        assert reached[0] == pytest.approx(values[0], abs=ROUNDING)
        assert reached.min() == pytest.approx(values.min(), abs=ROUNDING)
        assert asked._is_nonnegative is None or values.min() >= values[0] - ROUNDING
        counts = asked._as_counts()
        if counts is not None:
            np.testing.assert_allclose(reference.all_values(counts), values, atol=ROUNDING)
    assert (counts is None) == (function._split is None)


@each_family
def test_a_walk_has_the_value_of_its_set(family):
    function, rng = family.function, np.random.default_rng(0)
    walk = function._walk()
    for i in rng.integers(function.n, size=20) if function.n else ():
        (walk.drop if walk.mask[i] else walk.add)(i)
        np.testing.assert_allclose(walk.value(), function._values(walk.mask[None]), atol=ROUNDING)


@each_family
def test_lovasz_extension_is_the_integral_over_thresholds(family):
    function = family.function
    values = reference.all_values(oracle_of(family))
    rng = np.random.default_rng(0)
    for w in [*rng.normal(size=(5, function.n)), *rng.integers(-1, 2, size=(5, function.n))]:
        expected = reference.lovasz_by_integral(values, w)
        assert lovasz_extension(function, w) == pytest.approx(expected, abs=1e-10)
        vertex = base_vertex(function, w)
        assert w @ vertex == pytest.approx(expected, abs=1e-10)
        assert vertex.sum() == pytest.approx(values[-1] - values[0], abs=ROUNDING)


@each_family
def test_pickle_gives_an_equal_function_back(family):
    function = family.function
    again = pickle.loads(pickle.dumps(function))
    assert repr(again) == repr(function)
    masks = reference.all_masks(function.n)
    np.testing.assert_array_equal(again(masks), function(masks))
    with pytest.raises(AttributeError, match="immutable"):
        again.n = 3


def test_a_table_of_counts_stays_read_only_when_pickled():
    again = pickle.loads(pickle.dumps(Counts(GRID, SPLIT)))
    assert not again.formula.values.flags.writeable


@each_family
def test_a_copy_is_the_function_itself(family):
    assert copy.copy(family.function) is family.function
    assert copy.deepcopy(family.function) is family.function


@each_family
def test_nothing_in_it_can_be_changed(family):
    function = family.function
    with pytest.raises(AttributeError, match=f"{type(function).__name__} is immutable"):
        function.n = 3
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del function.n
    assert not any(
        value.flags.writeable for value in vars(function).values() if isinstance(value, np.ndarray)
    )


@each_family
def test_repr_says_what_it_is(family):
    text = repr(family.function)
    assert text.startswith(type(family.function).__name__)
    assert "object at 0x" not in text


def test_pickling_a_lambda_is_an_error_that_says_what_to_do():
    for function in (
        Counts(lambda n, q: n + q, SPLIT),
        ConcaveOfModular(lambda total: np.sqrt(total), SPREAD),
    ):
        with pytest.raises(pickle.PicklingError, match="define it with def at the top level"):
            pickle.dumps(function)


def test_the_caller_keeps_the_arrays():
    values = np.array([0.0, 1.0, 1.5])
    function = Cardinality(values)
    values[:] = 9.0
    assert function([True, True]) == 1.5


# ---------------------------------------------------------------------------------- drawn instances


@given(st.data())
def test_any_table_of_counts_is_a_set_function(data):
    m, r = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
    split = np.array(data.draw(st.permutations([True] * m + [False] * r)), bool)
    grid = data.draw(arrays((m + 1) * (r + 1))).reshape(m + 1, r + 1)
    function = Counts(grid, split)
    values = reference.all_values(Oracle(lambda a: grid[a[split].sum(), a[~split].sum()], m + r))
    np.testing.assert_array_equal(reference.all_values(function), values)
    order = data.draw(orders(m + r))
    np.testing.assert_array_equal(function.gains(order), reference.gains(values, order))
    # A table knows everything about itself, and takes the same differences for rounding.
    for statement in ("is_submodular", "is_supermodular", "is_increasing"):
        assert getattr(function, statement) is getattr(Table(values), statement)


@given(st.data())
def test_any_values_of_the_size_are_a_set_function(data):
    values = data.draw(sizes.flatmap(lambda n: arrays(n + 1)))
    function, n = Cardinality(values), len(values) - 1
    table = Table(reference.all_values(Oracle(lambda mask: values[mask.sum()], n)))
    order = data.draw(orders(n))
    np.testing.assert_array_equal(function.gains(order), table.gains(order))
    for statement in ("is_submodular", "is_supermodular", "is_increasing"):
        assert getattr(function, statement) is getattr(table, statement)


@given(sizes.flatmap(lambda n: st.tuples(arrays(n, 0.0, 3.0), arrays(n))), numbers(0.0, 12.0))
def test_a_truncated_sum_is_submodular_and_increasing(weights_and_w, limit):
    weights, w = weights_and_w
    function = ConcaveOfModular(lambda total: np.minimum(total, limit), weights)
    values = reference.all_values(function)
    assert reference.is_submodular(values)
    assert function.is_increasing is True
    assert reference.is_increasing(values)
    expected = reference.lovasz_by_integral(values, w)
    # |w| <= 4 and F <= 18: a hundred roundings of numbers below 72.
    assert lovasz_extension(function, w) == pytest.approx(expected, abs=1e-11)


@given(st.data())
def test_base_vertex_maximises_over_the_base_polytope(data):
    function = data.draw(submodular_functions(data.draw(st.integers(1, 5))))
    w = data.draw(arrays(function.n))
    values = reference.all_values(function)
    vertex = base_vertex(function, w)
    assert reference.in_base_polytope(values, vertex)
    best = reference.lovasz_by_permutations(values, w)
    assert w @ vertex == pytest.approx(best, abs=1e-9)
    assert lovasz_extension(function, w) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_lovasz_extension_maximises_over_the_permutations_of_six(seed):
    rng = np.random.default_rng(seed)
    function = ConcaveOfModular(np.sqrt, rng.random(6)) + Modular(rng.normal(size=6))
    w = rng.normal(size=6)
    expected = reference.lovasz_by_permutations(reference.all_values(function), w)
    assert lovasz_extension(function, w) == pytest.approx(expected, abs=1e-12)


def test_a_convex_curve_is_refused():
    with pytest.raises(ValueError, match=r"concave must be concave on \[0, 3\], got"):
        ConcaveOfModular(np.square, [1.0, 2.0])


# ------------------------------------------------------------------------ the closed forms of Ratio

# beta in {1, 1.5, 2}: their squares are exact in binary, so that Fraction sees the same numbers.
EXACT = {"jaccard": None, "dice": 1.0, "f-1.5": 1.5, "f-2": 2.0}
COUNTS = [0, 1, 2, 5, 17, 400]

each_ratio = pytest.mark.parametrize("beta", EXACT.values(), ids=EXACT.keys())


def exact_ratio(beta, m):
    b = Fraction(1 if beta is None else beta) ** 2
    a, c, d = (b, b, 0) if beta is None else (b, 1 + b, 1)
    return lambda n, q: (a * n + q) / (c * m - d * n + q)


def assert_equals(computed, exact):
    """Within eight units in the last place, however small: the closed forms do not cancel."""
    computed, exact = np.asarray(computed), np.array([float(value) for value in exact])
    np.testing.assert_allclose(computed, exact, rtol=8 * np.finfo(float).eps, atol=0)


@pytest.mark.parametrize("beta", [*EXACT.values(), 0.5, 1e-3, 1e15])
def test_steps_of_a_ratio_are_exact_differences(beta):
    for m in range(1, 60, 2):
        exact, ratio = exact_ratio(beta, m), Ratio(m, beta)
        n, q = (side.ravel() for side in np.meshgrid(np.arange(m + 1), COUNTS, indexing="ij"))
        pairs = [(int(a), int(b)) for a, b in zip(n, q, strict=True)]
        assert_equals(ratio(n, q), [exact(a, b) for a, b in pairs])
        rise = [exact(a, b + 1) - exact(a, b) for a, b in pairs]
        assert_equals(ratio.step_positive(n.astype(float), q.astype(float)), rise)
        inside = n < m
        fall = [exact(a + 1, b) - exact(a, b) for a, b in pairs if a < m]
        steps = ratio.step_negative(n[inside].astype(float), q[inside].astype(float))
        assert_equals(steps, fall)


@each_ratio
def test_parts_of_a_ratio_are_their_definitions(beta):
    """G(n) = l(n, 0) - n l(1, 0) and its steps, for all m < 60; f is what remains."""
    for m in range(1, 60):
        exact = exact_ratio(beta, m)
        f, g = Ratio(m, beta).parts()
        n = np.arange(m + 1.0)
        convex = [exact(k, 0) - k * exact(1, 0) for k in range(m + 1)]
        assert_equals(g(n, 0.0), convex)
        assert_equals(g.step_negative(n[:-1], np.zeros(m)), np.diff(convex))
        assert not g.step_positive(n, 3.0).any()
        for q in (0, 1, 30):
            remains = np.array([float(exact(k, q) - convex[k]) for k in range(m + 1)])
            # A difference of two numbers below m: it cancels, by at most that much.
            np.testing.assert_allclose(f(n, q), remains, rtol=1e-13, atol=1e-13)
            steps = f.step_negative(n[:-1], np.full(m, float(q)))
            np.testing.assert_allclose(steps, np.diff(remains), rtol=1e-11, atol=1e-11)


@each_ratio
def test_the_closed_parts_are_submodular_and_supermodular_increasing(beta):
    """Second differences over the grid for all m < 60: in n, in q and mixed."""
    for m in range(1, 60):
        f, g = Ratio(m, beta).parts()
        n, q = np.meshgrid(np.arange(m + 1), np.arange(31), indexing="ij")
        for part, sign in ((f, 1.0), (g, -1.0)):
            grid = part(n, q)
            bends = np.diff(grid, 2, axis=0), np.diff(grid, 2, axis=1), np.diff(np.diff(grid).T)
            assert all((sign * bend <= 1e-12).all() for bend in bends)
        assert (np.diff(g(n, q), axis=0) >= 0).all()
        assert (f(n, q) >= -1e-12).all(), "f is not negative, as the notes say"
        assert f.is_increasing(30) is bool((np.diff(f(n, q), axis=0) >= 0).all())


def test_parts_are_not_closed_for_beta_below_one():
    assert f_ratio(0.5, 3).parts() is None
    assert f_ratio(1, 3).parts()[0].parts() is None


@pytest.mark.parametrize("beta", [None, 0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("statement", ["is_submodular", "is_supermodular", "is_increasing"])
def test_a_ratio_tells_the_truth(beta, statement):
    for m, r in ((1, 2), (2, 0), (2, 2), (3, 1)):
        function = Counts(Ratio(m, beta), np.arange(m + r) < m)
        truth = getattr(reference, statement)(reference.all_values(function))
        assert getattr(function, statement) in (truth, None)


def test_a_ratio_without_positives_has_no_false_negative():
    with pytest.raises(ValueError, match="m must be positive for a false negative, got 0"):
        f_ratio(1, 0).step_negative(np.zeros(1), np.zeros(1))


def test_a_ratio_is_made_for_one_number_of_positives():
    with pytest.raises(ValueError, match="formula is made for 2 positives, got 3"):
        Counts(f_ratio(1, 2), SPLIT)
