"""Potentials whose prices span many decades: what is claimed holds in exact rationals."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setwise import diverse, marginals, solve_map
from setwise.diversities import DivMBest
from setwise.fields import Field, Pairwise, RegionConsistency, RobustPn
from setwise.inference._map._methods import METHODS as RECORDS
from setwise.inference._marginals._methods import METHODS as OF_MARGINALS

METHODS = ("auto", *RECORDS)


def wide(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Numbers of a few decades, some of them far above the others."""
    return rng.uniform(0, 4, shape).round(3) * rng.choice([1.0, 1.0, 1e-8, 1e8, 1e20], shape)


def exact_energies(unary, edges, tables, rest):
    """Every labelling's energy above the least of all unaries and tables."""
    n, n_labels = unary.shape
    labelings = list(product(range(n_labels), repeat=n))
    energies = []
    for x, more in zip(labelings, rest(np.array(labelings)), strict=True):
        paid = [unary[i, a] for i, a in enumerate(x)]
        paid += [t[x[i], x[j]] for (i, j), t in zip(edges, tables, strict=True)]
        energies.append(sum(map(Fraction, map(float, paid))) + Fraction(float(more)))
    least = [*unary.min(axis=1), *tables.min(axis=(1, 2))]
    return labelings, [e - sum(map(Fraction, map(float, least))) for e in energies]


def check(field, method, limit, labelings, energies):
    try:
        best = solve_map(field, method, max_iter=limit)
    except ValueError:  # a method that cannot take the field
        return
    mine = energies[labelings.index(tuple(best.labels.tolist()))]
    above = mine - min(energies)
    assert above <= Fraction(best.gap) + mine / 10**9
    assert above <= (Fraction(best.relative_gap) + Fraction(1, 10**9)) * mine
    if best.exact:
        assert above <= mine / 10**9


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(METHODS),
    st.sampled_from([None, None, 0, 1, 4]),
    st.booleans(),
)
def test_no_claim_is_false_beside_large_entries_of_tables(seed, method, limit, is_submodular):
    rng = np.random.default_rng(seed)
    n, n_labels = int(rng.integers(2, 5)), 2 if is_submodular else int(rng.integers(2, 4))
    edges = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.6] or [(0, 1)]
    unary, tables = wide(rng, n, n_labels), wide(rng, len(edges), n_labels, n_labels)
    if is_submodular:
        lack = tables[:, 0, 0] + tables[:, 1, 1] - tables[:, 0, 1] - tables[:, 1, 0]
        tables[:, 0, 1] += 1.01 * np.maximum(lack, 0.0)
    field = Field(unary) + Pairwise(edges, tables)
    check(field, method, limit, *exact_energies(unary, edges, tables, lambda x: np.zeros(len(x))))


@given(st.integers(0, 2**32 - 1), st.sampled_from(METHODS), st.booleans())
def test_no_claim_is_false_beside_large_prices_of_regions(seed, method, is_power):
    rng = np.random.default_rng(seed)
    n, n_labels = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    weight = float(wide(rng, 1)[0])
    region = (
        RegionConsistency(np.zeros(n, int), weight, rng.choice([0.3, 0.9]))
        if is_power
        else RobustPn(np.zeros(n, int), weight, rng.choice([0.5, 1.0, 1.7]))
    )
    unary = wide(rng, n, n_labels)
    nothing = np.zeros((0, n_labels, n_labels))
    field = Field(unary) + region
    rest = (Field(np.zeros((n, n_labels))) + region).energy
    check(field, method, None, *exact_energies(unary, [], nothing, rest))


@pytest.mark.parametrize("method", METHODS)
def test_a_forbidden_pair_hides_no_other_entry(method):
    """Entries of 1 beside one of 3e20, which nobody pays."""
    field = Field([[0.0, 0.0], [1e20, 0.0]])
    field += Pairwise([[0, 1]], [[[1.0, 3.75], [3e20, 1.5]]])
    best = solve_map(field, method)
    assert (best.labels.tolist(), best.value, best.exact) == ([1, 1], 1.5, True)


@pytest.mark.parametrize("method", METHODS)
def test_no_bound_that_a_callback_is_told_is_above_the_least_energy(method):
    """Before the search is made again without the price of 5e16 it knows nothing of the others."""
    field = Field([[0.0, 0.25], [0.0, 0.0], [0.5, 0.0]])
    field += Pairwise([[0, 1], [1, 2]], [[[1.5, 5e16], [5e16, 0.0]], [[0.0, 0.75], [1.0, 0.0]]])
    told = []
    best = solve_map(field, method, callback=lambda round: told.append(round.bound))
    assert (best.value, best.exact) == (0.25, True)
    assert max(told, default=0.0) <= 0.25 * (1 + 1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_search_that_is_not_begun_claims_no_more_than_its_digits(method):
    """As unaries plus Potts a table rounds its least entries away beside those of 1e17."""
    table = [[1.7, 999.5, 0.3], [-0.3, 1001.6, 1.3], [1e17, 1e17 + 1e3, 1e17]]
    field = Field(np.zeros((2, 3))) + Pairwise([[0, 1], [1, 0]], table)
    least = field.energy(list(product(range(3), repeat=2))).min()
    told = []
    rounds = {"callback": lambda round: told.append(round.bound)}
    for limits in ({"time_limit": 0.0}, {"max_iter": 0}, rounds):
        try:
            best = solve_map(field, method, **limits)
        except ValueError:  # a method that cannot take the field
            return
        assert max([best.bound, *told]) <= least + 1e-9


# the upper bound of perturb holds in expectation
MARGINALS = ("auto", *(name for name in OF_MARGINALS if name != "perturb"))


@pytest.mark.filterwarnings("ignore:the probabilities may say little")
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(MARGINALS),
    st.sampled_from([0.1, 1.0, 1e3]),
    st.booleans(),
)
def test_log_z_lies_between_its_bounds_beside_large_prices(seed, method, t, is_region):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    unary = wide(rng, n, 2)
    edges = [(i, i + 1) for i in range(n - 1)]
    tables = wide(rng, n - 1, 2, 2)
    lack = tables[:, 0, 0] + tables[:, 1, 1] - tables[:, 0, 1] - tables[:, 1, 0]
    tables[:, 0, 1] += 1.01 * np.maximum(lack, 0.0)
    field = Field(unary) + Pairwise(edges, tables)
    region = RobustPn(np.zeros(n, int), float(wide(rng, 1)[0]), 1.0)
    rest = (Field(np.zeros((n, 2))) + region).energy if is_region else lambda x: np.zeros(len(x))
    if is_region:
        field = field + region
    try:
        post = marginals(field, method, temperature=t)
    except ValueError:  # a method that cannot take the field
        return
    _, energies = exact_energies(unary, edges, tables, rest)
    least = min(energies)
    log_z = np.log(sum(np.exp(-float((e - least) / Fraction(t))) for e in energies))
    shift = least + sum(Fraction(float(x)) for x in [*unary.min(axis=1), *tables.min(axis=(1, 2))])
    slack = Fraction(1, 10**9) * max(1, least / Fraction(t)) + abs(shift) / Fraction(t) / 2**46
    assert Fraction(post.log_partition_lower) <= Fraction(log_z) - shift / Fraction(t) + slack
    if post.log_partition_upper < np.inf:
        assert Fraction(post.log_partition_upper) >= Fraction(log_z) - shift / Fraction(t) - slack


def test_a_forbidden_label_has_no_probability_beside_large_tables():
    unary = np.array([[np.inf, 0.0], [0.0, 1.0], [2.0, 0.0]])
    tables = np.array([[[0.0, 1e16], [1e12, 0.0]], [[1.0, 2e16], [0.0, 1.0]]])
    field = Field(unary) + Pairwise([[0, 1], [1, 2]], tables)
    for method in ("projection", "exact_binary", "mean_field"):
        assert marginals(field, method, temperature=1e-3).probabilities[0].tolist() == [0.0, 1.0]


@given(st.integers(0, 2**32 - 1), st.sampled_from(["auto", "multipliers"]))
def test_the_first_item_of_a_list_claims_no_more_than_its_digits(seed, method):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    unary, tables = wide(rng, n, 2), wide(rng, n - 1, 2, 2)
    edges = [(i, i + 1) for i in range(n - 1)]
    lack = tables[:, 0, 0] + tables[:, 1, 1] - tables[:, 0, 1] - tables[:, 1, 0]
    tables[:, 0, 1] += 1.01 * np.maximum(lack, 0.0)
    field = Field(unary) + Pairwise(edges, tables)
    found = diverse(field, 1, DivMBest(1.0), method=method)
    labelings, energies = exact_energies(unary, edges, tables, lambda x: np.zeros(len(x)))
    mine = energies[labelings.index(tuple(found.labelings[0].tolist()))]
    if found.exact:
        assert mine - min(energies) <= mine / 10**9
