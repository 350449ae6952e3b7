"""decompose: F = f + g with g = D F, against linear programs written out from Definition 6."""

from dataclasses import dataclass
from math import comb

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import arrays, numbers, submodular_functions

from setwise.functions import (
    Cardinality,
    ConcaveOfModular,
    Counts,
    Cut,
    Modular,
    Oracle,
    Ratio,
    SetFunction,
    Table,
    decompose,
)

# B_D paper, Proposition 5 as the notes correct it: from four elements on D need not be unique.
TWO_OPTIMA = np.array([0, 2, 1, 1, 2, 4, 0, 5, 5, 1, 5, 0, 1, 5, 3, 5.0])


def zigzag(n, q):
    """Neither submodular nor supermodular, in either count."""
    return np.abs(n - 2.0) + np.sin(3.0 * q) + 0.3 * n * q


def f_ratio(beta, m):
    return Ratio(m, beta)


def split(m, r):
    """m positives among m + r elements, not all of them first."""
    positive = np.arange(m + r) < m
    return np.roll(positive, 1)


rng = np.random.default_rng(0)

FUNCTIONS = {
    "modular": Modular([1.0, -2.0, 0.5]),
    "cardinality concave": Cardinality([0.0, 3.0, 5.0, 5.0, 4.0]),
    "cardinality convex": Cardinality([0.0, 0.0, 1.0, 3.0, 6.0]),
    "cardinality neither": Cardinality([1.0, 3.0, 2.0, 2.0, 5.0, 4.0]),
    "cardinality on one": Cardinality([1.0, 3.0]),
    "cardinality on nothing": Cardinality([1.0]),
    "counts zigzag": Counts(zigzag, split(3, 2)),
    "counts table": Counts(rng.normal(size=(3, 4)), split(2, 3)),
    "counts supermodular": Counts(lambda n, q: n * q + n**2 - 3.0 * q + 1.0, split(2, 2)),
    "jaccard": Counts(Ratio(3), split(3, 2)),
    "dice": Counts(f_ratio(1, 3), split(3, 2)),
    "dice, no positive": Counts(f_ratio(1, 0), split(0, 3)),
    "f-2": Counts(f_ratio(2, 3), split(3, 3)),
    "f-1/2": Counts(f_ratio(0.5, 3), split(3, 3)),
    "table": Table(rng.normal(size=16)),
    "table on five": Table(rng.integers(0, 4, size=32).astype(float)),
    "table with a constant": Table(rng.normal(size=8) + 5.0),
    "table on one": Table([3.0, 1.0]),
    "table on nothing": Table([3.0]),
    "oracle": Oracle(lambda mask: float(mask.sum() == 2) + mask[0], 4),
    "oracle declared supermodular": Oracle(
        lambda mask: float(mask.sum()) ** 2 - 7 * mask[0], 4, supermodular=True
    ),
    "supermodular sum": -ConcaveOfModular(np.sqrt, [1.0, 2.0, 3.0]),
    "cut": Cut([[0, 1], [1, 2], [0, 2]], [1.0, 2.0, 0.5], n=3),
    "minus a cut": -Cut([[0, 1], [1, 2], [0, 2]], [1.0, 2.0, 0.5], n=3),
    "cardinality + modular": Cardinality([0.0, 1.0, 0.0, 2.0]) + Modular([1.0, 2.0, 3.0]),
    "2 cardinality - modular": 2.0 * Cardinality([0.0, 1.0, 0.0, 2.0]) - Modular([1.0, 1.0, 1.0]),
    "scaled dice + modular": 3.0 * Counts(f_ratio(1, 2), split(2, 2)) + Modular([1, -1, 0, 2.0]),
    "cardinality + counts": Cardinality([0.0, 1, 0, 2, 2, 1]) + Counts(zigzag, split(3, 2)),
    "restriction": Table(rng.normal(size=32)).restrict([3, 0, 4]),
    "two optima": Table(TWO_OPTIMA),
}

each_function = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())


@dataclass(frozen=True)
class Parts:
    whole: np.ndarray
    f: np.ndarray
    g: np.ndarray


def parts_of(function: SetFunction) -> Parts:
    f, g = decompose(function)
    assert f.n == g.n == function.n
    return Parts(*(reference.all_values(part) for part in (function, f, g)))


def assert_feasible(parts: Parts) -> None:
    """F = f + g to 1e-9, f submodular, g supermodular and increasing, g(empty) = 0."""
    np.testing.assert_allclose(parts.f + parts.g, parts.whole, rtol=0, atol=1e-9)
    assert parts.g[0] == 0
    assert parts.f[0] == parts.whole[0]
    size = np.abs(parts.whole).max()  # the parts are differences of such numbers
    assert reference.is_submodular(parts.f + size)
    assert reference.is_supermodular(parts.g + size)
    assert reference.is_increasing(parts.g + size)


def assert_least(parts: Parts) -> None:
    """The sum of g over all sets is the optimum of the linear program.

    Both are floating-point programs with 1e-7 as the tolerance of each of their rows.
    """
    least = reference.least_supermodular_sum(parts.whole)
    assert parts.g.sum() == pytest.approx(least, rel=1e-6, abs=1e-6)


# --------------------------------------------------------------------------------------------- laws


@each_function
def test_parts_are_feasible_and_least(function):
    parts = parts_of(function)
    assert_feasible(parts)
    assert_least(parts)
    assert decompose(function).exact is True


@each_function
def test_parts_say_what_they_are(function):
    f, g = decompose(function)
    assert f.is_submodular in (True, None)
    assert g.is_supermodular in (True, None)


@given(st.integers(0, 4).flatmap(lambda n: arrays(1 << n)))
def test_any_table(values):
    parts = parts_of(Table(values))
    assert_feasible(parts)
    assert_least(parts)


@pytest.mark.parametrize("n", [5, 6, 7])
def test_larger_tables(n):
    values = np.random.default_rng(n).integers(0, 9, size=1 << n).astype(float)
    parts = parts_of(Table(values))
    assert_feasible(parts)
    assert_least(parts)


def test_a_table_of_twelve():
    values = np.random.default_rng(12).random(1 << 12)
    f, g = decompose(Table(values))
    np.testing.assert_allclose(f.values + g.values, values, atol=1e-9)
    assert f.is_submodular
    assert g.is_supermodular
    assert g.is_increasing
    # The recursion alone is feasible too, so that the program can only be better.
    greedy = reference.least_by_size(values)
    assert g.values.sum() <= greedy.sum() + 1e-6


def test_beyond_twelve_elements_it_must_be_declared():
    with pytest.raises(ValueError, match=r"at most 12 elements .* got 13: declare it as"):
        decompose(Oracle(lambda mask: float(mask[0] and mask[1]), 13))


def test_beyond_twelve_elements_what_is_known_is_enough():
    function = Oracle(lambda mask: float(mask.any()), 13)
    declared = Oracle(function.function, 13, submodular=True)
    assert not decompose(declared).g(np.ones(13, bool))
    supermodular = decompose(Oracle(lambda mask: float(mask.all()), 13, supermodular=True))
    assert supermodular.exact
    assert supermodular.g(np.ones(13, bool)) == 1


def test_any_object_but_a_set_function_is_a_type_error():
    with pytest.raises(TypeError, match="function must be a set function, got list"):
        decompose([0.0, 1.0])


def test_what_a_decomposition_is():
    answer = decompose(Cardinality([0.0, 1.0, 1.0, 2.0]))
    assert list(answer) == [answer.f, answer.g]
    with pytest.raises(AttributeError):
        answer.exact = False


# ------------------------------------------------------------------------------------- closed forms


@given(st.integers(0, 6).flatmap(lambda n: arrays(n + 1)))
def test_cardinality(values):
    """g(0) = g(1) = 0, and its second difference is the positive part of that of F."""
    parts = parts_of(Cardinality(values))
    assert_feasible(parts)
    assert_least(parts)
    if not Cardinality(values).is_submodular:
        g = decompose(Cardinality(values)).g
        np.testing.assert_array_equal(g.values[:2], 0.0)
        bend = np.maximum(np.diff(values, 2), 0.0)
        np.testing.assert_allclose(np.diff(g.values, 2), bend, atol=1e-12)


def test_cardinality_at_a_million():
    n = 10**6
    values = np.abs(np.arange(n + 1) / n - 0.5)
    f, g = decompose(Cardinality(values))
    # V-shaped: all the bend is at the middle, and f is a line.
    np.testing.assert_allclose(f.values, values[0] - np.arange(n + 1) / n, atol=1e-9)
    assert g(np.arange(n) < n // 2) == pytest.approx(0.0, abs=1e-9)
    assert g(np.ones(n, bool)) == pytest.approx(1.0, abs=1e-9)


def test_a_slight_bend_is_a_bend_however_many_there_are():
    """(k / n)^2 at two million: bends of 5e-13 that add up to all of it."""
    n = 2 * 10**6
    function = Cardinality((np.arange(n + 1) / n) ** 2)
    assert function.is_submodular is False
    assert decompose(function).g(np.ones(n, bool)) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("beta", [1.0, 1.5, 2.0])
@pytest.mark.parametrize(("m", "r"), [(1, 3), (2, 0), (2, 2), (3, 4), (5, 1), (6, 6)])
def test_f_beta_against_the_program_on_the_grid(beta, m, r):
    function = Counts(f_ratio(beta, m), split(m, r))
    g = decompose(function).g
    weights = counts_of_sets(m, r)
    least = reference.least_supermodular_sum_on_grid(function.grid(), weights)
    total = 0.0 if isinstance(g, Modular) else (weights * g.grid()).sum()
    assert total == pytest.approx(least, rel=1e-6, abs=1e-6)
    if m >= 2:
        assert np.ptp(g.grid(), axis=1).max() == 0, "a function of the false negatives alone"


@pytest.mark.parametrize("beta", [1.0, 1.5, 2.0])
def test_f_beta_against_the_program_over_all_sets(beta):
    parts = parts_of(Counts(f_ratio(beta, 4), split(4, 2)))
    assert_feasible(parts)
    assert_least(parts)


def test_f_beta_is_closed_at_any_size():
    m = r = 10**6
    answer = decompose(Counts(f_ratio(1, m), np.arange(m + r) < m))
    assert answer.exact
    n, q = np.array([1, 5, m]), np.array([3, 0, r])
    whole = answer.f.formula(n, q) + answer.g.formula(n, q)
    np.testing.assert_allclose(whole, f_ratio(1, m)(n, q), atol=1e-12)


@pytest.mark.parametrize("size", [4, 20, 60])
def test_a_scaled_f_beta_is_as_closed(size):
    """D(c F) = c D F: whatever is exact for F is exact for 2 F."""
    dice = Counts(f_ratio(1, size // 2), split(size // 2, size // 2))
    once, twice = decompose(dice), decompose(2.0 * dice)
    assert twice.exact == once.exact
    masks = np.random.default_rng(0).random((50, size)) < 0.5
    np.testing.assert_allclose(twice.g(masks), 2.0 * once.g(masks), atol=1e-9)


@given(st.data())
def test_a_submodular_function_is_its_own_submodular_part(data):
    parts = parts_of(data.draw(submodular_functions(data.draw(st.integers(0, 5)))))
    assert not parts.g.any()


@given(st.data())
def test_supermodular(data):
    """Lemma 1 of the B_D paper: f is the modular function that agrees with F on single elements."""
    parts = parts_of(-data.draw(submodular_functions(data.draw(st.integers(0, 5)))))
    assert_feasible(parts)
    singles = parts.whole[1 << np.arange(reference.size_of(parts.whole))] - parts.whole[0]
    modular = parts.whole[0] + reference.all_masks(len(singles)) @ singles
    np.testing.assert_allclose(parts.f, modular, atol=1e-9)


# --------------------------------------------------------------------------------- losses of counts


def counts_of_sets(m: int, r: int) -> np.ndarray:
    """C(m, n) C(r, q): how many sets have n positives and q negatives."""
    sets = np.outer([comb(m, n) for n in range(m + 1)], [comb(r, q) for q in range(r + 1)])
    return sets.astype(float)


@given(st.data())
def test_any_grid_of_counts(data):
    m, r = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 2))
    function = Counts(data.draw(arrays((m + 1) * (r + 1))).reshape(m + 1, r + 1), split(m, r))
    parts = parts_of(function)
    assert_feasible(parts)
    assert_least(parts)


@pytest.mark.parametrize(("m", "r"), [(5, 4), (8, 8), (15, 15)])
def test_the_program_on_the_grid_up_to_thirty_elements(m, r):
    grid = np.random.default_rng(m).integers(0, 5, size=(m + 1, r + 1)).astype(float)
    answer = decompose(Counts(grid, split(m, r)))
    assert answer.exact
    assert_feasible_grid(grid, answer)
    if m + r <= 16:  # the reference program is dense
        weights = counts_of_sets(m, r)
        least = reference.least_supermodular_sum_on_grid(grid, weights)
        assert (weights * answer.g.grid()).sum() == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize(("m", "r"), [(16, 15), (31, 0), (60, 45)])
def test_the_recursion_beyond_thirty_elements(m, r):
    grid = np.random.default_rng(m).normal(size=(m + 1, r + 1))
    answer = decompose(Counts(grid, split(m, r)))
    assert answer.exact is False
    assert_feasible_grid(grid, answer)


def assert_feasible_grid(grid, answer):
    f, g = answer.f.grid(), answer.g.grid()
    # g grows with the sum of all bends, and its differences lose that many digits.
    slack = 1e-12 * max(1.0, np.abs(g).max())
    np.testing.assert_allclose(f + g, grid, atol=max(1e-9, slack))
    assert g[0, 0] == 0
    assert all((np.diff(g, axis=axis) >= -slack).all() for axis in (0, 1))
    for part, sign in ((f, 1.0), (g, -1.0)):
        bends = np.diff(part, 2, axis=0), np.diff(part, 2, axis=1), np.diff(np.diff(part).T)
        assert all((sign * bend <= 4 * slack).all() for bend in bends)


def test_a_grid_too_large_to_write_out():
    formula = Counts(zigzag, np.arange(6000) < 3000)
    with pytest.raises(ValueError, match="at most 4194304 counts, got 3001 x 3001"):
        decompose(formula)


# --------------------------------------------------------------------------------------------- sums


@given(st.data())
def test_modular_terms_stay_in_f(data):
    n = data.draw(st.integers(1, 4))
    function, modular = Table(data.draw(arrays(1 << n))), Modular(data.draw(arrays(n)))
    scale = data.draw(numbers(0.25, 4.0))
    alone, together = parts_of(function), parts_of(scale * function + modular)
    assert_feasible(together)
    assert together.g.sum() == pytest.approx(scale * alone.g.sum(), rel=1e-6, abs=1e-6)


def test_unequal_weights_beside_a_loss_of_the_size():
    """At any size: the sum is no Cardinality, but its curvature is that of one."""
    n = 1000
    bent = Cardinality(np.abs(np.arange(n + 1.0) - n / 2))
    answer = decompose(bent + Modular(np.arange(n) / n))
    assert answer.exact
    masks = np.random.default_rng(0).random((20, n)) < 0.7
    np.testing.assert_allclose(answer.g(masks), decompose(bent).g(masks), atol=1e-9)


# ---------------------------------------------------------------------------------- counterexamples


def test_proposition_5_fails_from_four_elements():
    """Two different g with the least sum, 30: D is not unique (the notes; B_D paper, Prop. 5)."""
    parts = parts_of(Table(TWO_OPTIMA))
    assert parts.g.sum() == pytest.approx(30.0, abs=1e-6)
    least, most = reference.range_of_optimal_entries(TWO_OPTIMA)
    assert np.max(most - least) > 0.1
