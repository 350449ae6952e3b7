"""Certificates do not depend on constants and units, and claim nothing that is not so.

Numbers are multiples of 2^-10 here, and factors powers of two: adding 1e9 then rounds nothing, and
answers must be the same to the last bit.
"""

from fractions import Fraction

import numpy as np
import pytest
from diversity_registry import DIVERSITIES
from field_registry import FIELDS, of_seed, whole
from field_terms import scaled
from hypothesis import given
from hypothesis import strategies as st
from reference import all_labelings, best_step, least_energy, rational_energy

import setwise as sw
from setwise.inference._conditioning._conditioned import Conditioned
from setwise.inference._conditioning._magnitude import difference_above, difference_below
from setwise.inference._map._methods import METHODS as RECORDS
from setwise.inference._map._result import MapProgress

METHODS = ("auto", *RECORDS)
CONSTANTS = (1e7, -1e9)
FACTORS = (2.0**-40, 2.0**30)
UNITS = (1e-12, 1e7, 1e9)


def rounded(name: str, seed: int = 0) -> sw.fields.Field:
    """A field of the registry, its unaries rounded to multiples of 2^-10."""
    field = of_seed(name, seed)
    return field.with_unary(np.round(field.unary * 1024) / 1024)


def solved(field: sw.fields.Field, method: str) -> sw.inference.MapResult | None:
    try:
        return sw.solve_map(field, method, max_iter=60)
    except ValueError:  # a method that cannot take the field
        return None


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", FIELDS)
def test_a_constant_changes_nothing_but_the_energies(name: str, method: str) -> None:
    field = rounded(name)
    best = solved(field, method)
    if best is None:
        return
    for constant in CONSTANTS:
        moved = sw.solve_map(field.with_unary(field.unary + constant), method, max_iter=60)
        rise = constant * field.n_variables
        assert moved.labels.tolist() == best.labels.tolist()
        assert (moved.relative_gap, moved.exact) == (best.relative_gap, best.exact)
        assert (moved.method, moved.n_iter) == (best.method, best.n_iter)
        assert moved.value == pytest.approx(best.value + rise, rel=1e-15)
        # what is lost of the bound's digits lowers it
        assert best.gap <= moved.gap + 1e-13 <= best.gap + 1e-13 + 2 * np.spacing(abs(rise) + 1e3)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", FIELDS)
def test_a_unit_changes_nothing_but_the_energies(name: str, method: str) -> None:
    field = of_seed(name, 1)
    best = solved(field, method)
    if best is None:
        return
    for factor in FACTORS:
        other = solved(scaled(field, factor), method)
        assert other.labels.tolist() == best.labels.tolist()
        assert (other.value, other.bound) == (factor * best.value, factor * best.bound)
        assert (other.relative_gap, other.exact) == (best.relative_gap, best.exact)
        assert (other.method, other.n_iter) == (best.method, best.n_iter)


@pytest.mark.parametrize("name", FIELDS)
def test_what_is_proved_stays_proved_in_any_unit(name: str) -> None:
    field = of_seed(name, 2)
    assert sw.solve_map(field).exact
    for unit in UNITS:
        other = sw.solve_map(scaled(field, unit))
        assert other.exact
        assert other.value == pytest.approx(unit * least_energy(field), rel=1e-9, abs=1e-9 * unit)


@pytest.mark.parametrize("name", [name for name in FIELDS if of_seed(name, 0).unary.size > 1])
def test_one_large_unary_excuses_no_gap(name: str) -> None:
    """A price that nobody pays is as good as a label that is forbidden."""
    for seed, price in enumerate((1e12, 1e17, 1e20)):
        field = of_seed(name, seed)
        unary = field.unary.copy()
        rng = np.random.default_rng(seed)
        allowed = np.argwhere(np.isfinite(unary))
        i, j = allowed[rng.integers(len(allowed))]
        if np.isfinite(unary[i]).sum() == 1:
            continue
        unary[i, j] = np.inf
        least = least_energy(field.with_unary(unary))
        unary[i, j] = price
        for method in METHODS:
            best = solved(field.with_unary(unary), method)
            if best is None:
                continue
            slack = 1e-9 * max(1.0, abs(least))
            assert best.bound <= least + slack
            if best.exact or best.relative_gap <= 1e-9:
                assert best.value == pytest.approx(least, abs=slack)


@given(st.integers(0, 2**32 - 1), st.integers(0, 48), st.sampled_from(METHODS))
def test_whole_energies_with_a_gap_of_one_are_not_exact(seed: int, bits: int, method: str) -> None:
    rng = np.random.default_rng(seed)
    n, n_labels = int(rng.integers(2, 6)), int(rng.integers(2, 4))
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    edges = np.concatenate([edges, [[0, n - 1]]]) if n > 2 else edges
    top = 1 << bits
    unary = rng.integers(0, top + 1, (n, n_labels)).astype(float)
    tables = rng.integers(0, top + 1, (len(edges), n_labels, n_labels)).astype(float)
    if method == "cut" and n_labels == 2:
        lack = tables[:, 0, 0] + tables[:, 1, 1] - tables[:, 0, 1] - tables[:, 1, 0]
        tables[:, 0, 1] += np.maximum(lack, 0)
    field = sw.fields.Field(unary) + sw.fields.Pairwise(edges, tables)
    best = solved(field, method)
    if best is None:
        return
    energies = field.energy(all_labelings(n, n_labels))  # sums below 2^53: exact
    assert best.value == field.energy(best.labels)
    assert best.bound < energies.min() + 1
    if best.exact:
        assert best.value == energies.min()


@given(
    st.sampled_from(sorted(FIELDS)),
    st.integers(0, 2**32 - 1),
    st.sampled_from(METHODS),
    st.sampled_from([0.0, *CONSTANTS, 1e12]),
    st.sampled_from([1.0, *UNITS, 1e-300, 1e100]),
    st.sampled_from([0.0, 1e3, 1e12, 1e20]),
    st.integers(0, 60),
)
def test_no_claim_is_false(
    name: str, seed: int, method: str, constant: float, unit: float, price: float, limit: int
) -> None:
    """Whatever the constant, the unit, a price on one label and the rounds allowed."""
    field = of_seed(name, seed)
    unary = field.unary.copy()
    if unary.size and price:
        rng = np.random.default_rng(seed)
        unary[rng.integers(len(unary)), rng.integers(unary.shape[1])] += price
    field = scaled(field.with_unary(unary + constant), unit)
    try:
        best = sw.solve_map(field, method, max_iter=limit)
    except ValueError:  # a method that cannot take the field
        return
    # Without the constant the energies of all labellings have their digits.
    grounded = Conditioned.of(field).field
    energies = grounded.energy(all_labelings(field.n_variables, field.n_labels))
    value = grounded.energy(best.labels)
    scale = Conditioned(grounded, grounded)
    gap_scale = value - scale.floor  # as in the definition: the least of each term as given
    assert best.gap >= 0.0
    assert best.relative_gap >= 0.0
    # value - bound is the gap, rounded outwards at the size of the value
    digits = 4 * np.spacing(abs(best.value)) + 1e-9 * gap_scale
    assert value - energies.min() <= best.gap + digits
    assert value - energies.min() <= (best.relative_gap + 1e-9) * gap_scale
    if best.exact:
        assert best.relative_gap <= 1e-9


@pytest.mark.parametrize("constant", [1e9, 1e13, 1e15])
def test_a_cut_of_tables_sees_no_constant(constant: float) -> None:
    """What all labels pay is taken out of the unaries before those of the tables are added."""
    rng = np.random.default_rng(0)
    edges = [(i, j) for i in range(5) for j in range(i)]
    every = all_labelings(5, 2)
    for _ in range(40):
        tables = rng.normal(size=(len(edges), 2, 2))
        lack = tables[:, 0, 0] + tables[:, 1, 1] - tables[:, 0, 1] - tables[:, 1, 0]
        tables[:, 0, 1] += np.maximum(lack, 0.0) + 0.1
        unary = constant + rng.normal(size=(5, 2))
        field = sw.fields.Field(unary) + sw.fields.Pairwise(edges, tables)
        best, grounded = sw.solve_map(field), Conditioned.of(field).field
        assert (best.method, best.exact) == ("cut", True)
        value = grounded.energy(best.labels)
        assert value <= grounded.energy(every).min() + 1e-9 * value


def test_random_tables_above_a_large_constant() -> None:
    rng = np.random.default_rng(0)
    edges = sw.fields.grid_edges((12, 12))
    tables = rng.normal(size=(len(edges), 4, 4))
    unary = rng.normal(size=(144, 4))
    plain = sw.solve_map(sw.fields.Field(unary) + sw.fields.Pairwise(edges, tables), max_iter=5)
    assert not plain.exact
    for constant in (1e7, 1e9):
        field = sw.fields.Field(unary + constant) + sw.fields.Pairwise(edges, tables)
        best = sw.solve_map(field, max_iter=5)
        assert not best.exact
        assert best.relative_gap == pytest.approx(plain.relative_gap, rel=0.05)


def test_whole_energies_of_an_image() -> None:
    """Squared differences to a few greys, as uint8 images have them."""
    rng = np.random.default_rng(1)
    image = rng.integers(0, 256, (24, 24))
    greys = np.linspace(0, 255, 8).round()
    field = sw.fields.Field((image.reshape(-1, 1) - greys) ** 2)
    field += sw.fields.Potts(sw.fields.grid_edges((24, 24)), 50.0)
    best = sw.solve_map(field)
    assert best.exact == (best.gap == 0.0) or best.gap < 0.5
    assert Conditioned(field, field).is_exact(2.0**50, 2.0**50 - 1.0) is False
    assert Conditioned(field, field).is_exact(2.0**50, 2.0**50) is True


# -------------------------------------------------------------------- bounds to the last digit


def least_rational(field: sw.fields.Field) -> Fraction:
    """The least energy without any rounding."""
    labelings = all_labelings(field.n_variables, field.n_labels)
    allowed = labelings[np.isfinite(field.energy(labelings))]
    return min(rational_energy(field, labels) for labels in allowed)


def check_bounds(field: sw.fields.Field, method: str, **options: object) -> None:
    """No bound that is returned or told is above the least energy, by no digit."""
    told: list[float] = []
    for callback in ({}, {"callback": lambda round: told.append(round.bound)}):
        try:
            best = sw.solve_map(field, method, **options, **callback)
        except ValueError:  # a method that cannot take the field
            return
        told.append(best.bound)
        assert best.bound <= best.value
    least = least_rational(field)
    assert all(Fraction(bound) <= least for bound in told if np.isfinite(bound))
    if best.exact and np.isfinite(best.value):
        value = rational_energy(field, best.labels)
        assert Fraction(best.bound) <= value
        assert value - least <= Fraction(best.gap) + abs(Fraction(best.value) - value)


OPTIONS = ({}, {"max_iter": 0}, {"max_iter": 2}, {"time_limit": 0.0}, {"tol": np.inf})


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", FIELDS)
def test_no_bound_is_above_the_least_energy_by_a_digit(name: str, method: str) -> None:
    for seed, constant, options in ((0, 0.0, {}), (1, 1e6 / 3, {}), (2, 0.1, OPTIONS[2])):
        field = of_seed(name, seed)
        check_bounds(field.with_unary(field.unary + constant), method, **options)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(METHODS),
    st.sampled_from(OPTIONS),
    st.sampled_from([1.0, 2.0**-10, 2.0**40, 0.1]),
    st.sampled_from([0.0, 3.0, 1e9, 0.1, 1e17]),
    st.integers(2, 4),
    st.booleans(),
)
def test_bounds_of_whole_numbers_hold_to_the_last_digit(
    seed: int,
    method: str,
    options: dict,
    unit: float,
    constant: float,
    n_labels: int,
    starts: bool,
) -> None:
    """With label costs and regions, in units that floats have and one that they have not."""
    rng = np.random.default_rng(seed)
    top = int(rng.choice([2, 9, 10**6, 2**40]))
    field = scaled(whole(rng, int(rng.integers(1, 6)), n_labels, top), unit)
    field = field.with_unary(field.unary + constant * unit)
    init = rng.integers(0, n_labels, field.n_variables)
    check_bounds(field, method, **options, **({"init": init} if starts else {}))


@given(st.integers(0, 2**32 - 1), st.sampled_from(METHODS), st.sampled_from([1.0, 2.0**-20]))
def test_a_bound_of_whole_numbers_is_a_whole_number(seed: int, method: str, unit: float) -> None:
    rng = np.random.default_rng(seed)
    top = int(rng.choice([2, 9, 10**6, 2**30]))
    field = scaled(whole(rng, 5, int(rng.integers(2, 4)), top), unit)
    try:
        best = sw.solve_map(field, method)
    except ValueError:  # a method that cannot take the field
        return
    assert best.bound % unit == 0.0
    assert best.exact == (best.gap == 0.0)


def test_a_bound_between_whole_numbers_is_the_upper_one() -> None:
    """The relaxation of a frustrated cycle lies between two energies: the upper one is proved."""
    for size in (3, 5, 7):
        ring = np.stack([np.arange(size), (np.arange(size) + 1) % size], axis=1)
        field = sw.fields.Field(np.zeros((size, 2))) + sw.fields.Pairwise(ring, np.eye(2))
        best = sw.solve_map(field, "convex")
        assert best.bound == np.ceil(best.bound)
        assert (best.bound == best.value) == best.exact


def costly(seed: int) -> sw.fields.Field:
    """A grid of whole numbers with label costs."""
    rng = np.random.default_rng(seed)
    field = sw.fields.Field(rng.integers(-9, 10, (100, 3)) * 1.0)
    field += sw.fields.Potts(sw.fields.grid_edges((10, 10)), rng.integers(0, 10, 180) * 1.0)
    return field + sw.fields.LabelCost(rng.integers(0, 27, 3) * 1.0)


@pytest.mark.parametrize("seed", range(12))
def test_the_default_is_no_worse_than_what_it_can_afford(seed: int) -> None:
    field = costly(seed)
    best = sw.solve_map(field)
    for method in ("expansion", "swap", "messages", "convex"):
        other = sw.solve_map(field, method)
        assert best.value <= other.value
        assert best.bound >= other.bound
    if best.gap:
        assert best.reason


def test_the_bound_of_a_start_has_all_digits() -> None:
    best = sw.solve_map(sw.fields.Field([[1e6, 0.3]]), init=[0], time_limit=0)
    assert (best.value, best.bound) == (1e6, 0.3)
    best = sw.solve_map(costly(3))
    assert (best.value, best.bound, best.exact) == (-141.0, -141.0, True)


def test_stages_of_the_default_end_with_callbacks_and_tell_the_best_of_all() -> None:
    field = next(f for f in map(costly, range(40)) if not sw.solve_map(f, "expansion").exact)
    told: list[MapProgress] = []
    whole_search = sw.solve_map(field, callback=told.append)
    assert whole_search.method != "expansion" or "cheap" in whole_search.reason
    bounds = [progress.bound for progress in told]
    assert bounds == sorted(bounds)
    moves = sw.solve_map(field, "expansion")
    later = [p for p in told if p.value < moves.value]
    stopped = sw.solve_map(field, callback=lambda p: p.value < moves.value)
    assert stopped.interrupted or not later
    assert stopped.value <= moves.value
    assert sw.solve_map(field, max_iter=3).method == "expansion"


@pytest.mark.parametrize("options", [{"max_iter": 0}, {"max_iter": 1}, {"tol": np.inf}, {}])
def test_a_reason_promises_no_more_than_the_answer(options: dict) -> None:
    rng = np.random.default_rng(0)
    for alpha in (0.5, 1.0):
        field = sw.fields.Field(rng.integers(-3, 4, (30, 2)) * 1.0)
        field += sw.fields.RegionConsistency(np.arange(30) // 7, 2.0, alpha)
        field += sw.fields.Potts(sw.fields.grid_edges((5, 6)), 1.0)
        best = sw.solve_map(field, **options)
        assert best.exact != ("not proved" in best.reason)
        if not options:
            assert best.exact


# ------------------------------------------------------------------------------ lists and marginals


@pytest.mark.parametrize("name", [name for name, entry in DIVERSITIES.items() if entry.steps])
def test_lists_do_not_depend_on_constants_and_units(name: str) -> None:
    rng = np.random.default_rng(3)
    field = sw.fields.Field(rng.integers(-2048, 2048, (6, 3)) / 1024.0)
    field += sw.fields.Potts(sw.fields.grid_edges((2, 3)), 0.5)
    diversity = DIVERSITIES[name].make(6)
    plain = sw.diverse(field, 4, diversity)
    for constant in CONSTANTS:
        moved = sw.diverse(field.with_unary(field.unary + constant), 4, diversity)
        assert moved.labelings.tolist() == plain.labelings.tolist()
        assert moved.relative_gaps.tolist() == plain.relative_gaps.tolist()
        assert moved.exact == plain.exact
        if plain.guarantee is not None:
            assert moved.guarantee.ratio == plain.guarantee.ratio
    for factor in FACTORS:
        other = sw.diverse(scaled(field, factor), 4, factor * diversity)
        assert other.labelings.tolist() == plain.labelings.tolist()
        assert other.relative_gaps == pytest.approx(plain.relative_gaps, abs=1e-12)
        assert other.exact == plain.exact


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1.0, 2.0**-10, 0.1]),
    st.sampled_from([0.0, 0.1, 1e6 / 3, 1e9]),
    st.sampled_from([0.37, 1.0]),
    st.integers(2, 3),
)
def test_bounds_of_lists_hold_to_the_last_digit(
    seed: int, unit: float, constant: float, weight: float, n_labels: int
) -> None:
    """Of a diversity, of alternatives of two labels, and of both together."""
    rng = np.random.default_rng(seed)
    top = int(rng.choice([2, 9, 10**6]))
    field = scaled(whole(rng, int(rng.integers(1, 4)), n_labels, top), unit)
    field = field.with_unary(field.unary + constant)
    every = all_labelings(field.n_variables, n_labels)
    energies = [rational_energy(field, labels) for labels in every]
    greedy = sw.diverse(field, 3, sw.diversities.DivMBest(weight))
    for k, bound in enumerate(greedy.bounds.tolist()):
        apart = (every[:, None] != greedy.labelings[:k]).sum(axis=(1, 2)).tolist()
        steps = [e - Fraction(weight) * a for e, a in zip(energies, apart, strict=True)]
        assert Fraction(bound) <= min(steps)
    alone = sw.diverse(field, 3)
    assert Fraction(float(alone.bounds[0])) <= min(energies)
    if alone.biases is not None:
        for bias, bound in zip(alone.biases.tolist(), alone.bounds.tolist(), strict=True):
            ones = every.sum(axis=1).tolist()
            tilted = [e + Fraction(bias) * n for e, n in zip(energies, ones, strict=True)]
            assert Fraction(bound) <= min(tilted)
    joint = sw.diverse(field, 2, sw.diversities.DivMBest(weight), method="joint")
    scores = [
        energies[a] + energies[b] - Fraction(weight) * int((every[a] != every[b]).sum())
        for a in range(len(every))
        for b in range(a + 1)
    ]
    assert sum(map(Fraction, joint.bounds.tolist())) <= min(scores)


@given(
    st.sampled_from(sorted(name for name, entry in DIVERSITIES.items() if entry.steps)),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, *CONSTANTS]),
    st.sampled_from([1.0, *UNITS]),
    st.sampled_from([0.0, 1e12, 1e20]),
    st.integers(2, 3),
)
def test_no_step_of_a_list_claims_too_much(
    name: str, seed: int, constant: float, unit: float, price: float, n_labels: int
) -> None:
    rng = np.random.default_rng(seed)
    unary = rng.normal(size=(5, n_labels))
    unary[rng.integers(5), rng.integers(n_labels)] += price
    field = sw.fields.Field(unit * (unary + constant))
    field += sw.fields.Potts([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]], unit * rng.uniform(0, 1))
    diversity = unit * DIVERSITIES[name].make(5)
    found = sw.diverse(field, 3, diversity)
    grounded = Conditioned.of(field).field
    heights = grounded.energy(found.labelings)
    for k, labels in enumerate(found.labelings):
        earlier = found.labelings[:k]
        gain = diversity.gain(labels, earlier, n_labels)
        least = best_step(grounded, diversity, earlier)
        digits = 4 * np.spacing(abs(found.values[k])) + 1e-9 * unit
        above = heights[k] - gain - least
        assert -digits <= above <= found.gaps[k] + digits
        if found.exact:
            assert above <= 1e-9 * unit


@pytest.mark.parametrize("method", ["projection", "frank_wolfe", "mean_field", "perturb"])
@pytest.mark.parametrize("name", ["potts-on-three-labels", "region-consistency", "segmentation"])
def test_marginals_do_not_depend_on_constants_and_units(name: str, method: str) -> None:
    field = rounded(name)
    plain = sw.marginals(field, method, max_iter=30, rng=0)
    for constant in CONSTANTS:
        moved = sw.marginals(field.with_unary(field.unary + constant), method, max_iter=30, rng=0)
        assert moved.probabilities.tolist() == plain.probabilities.tolist()
        assert (moved.gap, moved.relative_gap) == (plain.gap, plain.relative_gap)
        rise = constant * field.n_variables
        assert moved.log_partition_upper >= plain.log_partition_upper - rise
        assert moved.log_partition_lower <= plain.log_partition_lower - rise
        assert moved.width <= plain.width + 4 * np.spacing(abs(rise))
    for factor in FACTORS:
        other = sw.marginals(scaled(field, factor), method, max_iter=30, temperature=factor, rng=0)
        assert other.probabilities == pytest.approx(plain.probabilities, abs=1e-12)
        assert other.relative_gap == pytest.approx(plain.relative_gap, rel=1e-9)


def test_what_a_callback_is_told_is_rounded_outwards_beside_a_constant() -> None:
    rng = np.random.default_rng(0)
    unary = rng.integers(0, 1024, (36, 3)) / 1024
    edges = sw.fields.grid_edges((6, 6))
    tables = rng.uniform(size=(len(edges), 3, 3))
    tables -= tables.min(axis=(1, 2), keepdims=True)
    field = sw.fields.Field(unary - unary.min(axis=1, keepdims=True))
    field += sw.fields.Pairwise(edges, tables)
    moved = field.with_unary(field.unary + 1e9)
    rise = Fraction(1e9) * field.n_variables
    for method in ("convex", "messages"):
        plain, told = [], []
        sw.solve_map(field, method, max_iter=20, callback=plain.append)
        sw.solve_map(moved, method, max_iter=20, callback=told.append)
        for before, after in zip(plain, told, strict=True):
            assert Fraction(after.bound) <= Fraction(before.bound) + rise
    plain, told = [], []
    sw.marginals(field, "mean_field", max_iter=20, tol=0.0, callback=plain.append)
    post = sw.marginals(moved, "mean_field", max_iter=20, tol=0.0, callback=told.append)
    for before, after in zip(plain, told, strict=True):
        assert Fraction(after.value) <= Fraction(before.value) - rise
    assert max(post.history) == post.log_partition_lower


# --------------------------------------------------------------------------------------- the pieces

floats = st.floats(-1e200, 1e200)


@given(floats, floats)
def test_differences_are_rounded_outwards(value: float, part: float) -> None:
    exact = Fraction(value) - Fraction(part)
    below, above = difference_below(value, part), difference_above(value, part)
    assert Fraction(below) <= exact <= Fraction(above)
    assert above <= np.nextafter(np.nextafter(below, np.inf), np.inf)


@pytest.mark.parametrize("name", FIELDS)
def test_the_ground_of_a_field_is_the_field_less_a_constant(name: str) -> None:
    field = of_seed(name, 0)
    parts = Conditioned.of(field)
    grounded, constant = parts.field, parts.constant
    if field.n_variables:
        assert grounded.unary.min(axis=1).tolist() == [0.0] * field.n_variables
    labels = all_labelings(field.n_variables, field.n_labels)
    expected = field.energy(labels)
    assert grounded.energy(labels) + constant == pytest.approx(expected, rel=1e-12, abs=1e-12)
    again = Conditioned.of(grounded)
    assert again.field is grounded
    assert again.constant == 0.0
