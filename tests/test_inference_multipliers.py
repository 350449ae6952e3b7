"""The parts of the search over multipliers, each against brute force."""

import numpy as np
import pytest
import reference
from field_registry import grid, of_seed
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from setwise import diverse, fields
from setwise.diversities import HammingBall
from setwise.inference._diverse._carried_bound import CarriedBound
from setwise.inference._diverse._multipliers._bound import best_mixture
from setwise.inference._diverse._multipliers._recombination import Recombination
from setwise.inference._diverse._multipliers._search import HammingSearch
from setwise.inference._diverse._problem import StepProblem
from setwise.inference._flows._two_label_cut import TwoLabelCut
from setwise.inference._map._options import MapOptions
from setwise.inference._map._solve_map import solve_map
from setwise.inference._relaxation._count_tables import CountTables, convex_hull

seeds = st.integers(0, 2**32 - 1)


@given(seeds)
def test_the_hull_is_the_largest_convex_function_below(seed):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=rng.integers(1, 9))
    hull = convex_hull(table)
    assert (hull <= table + 1e-12).all()
    assert (np.diff(hull, 2) >= -1e-12).all()
    for k in range(len(table)):
        chords = [
            table[a] + (table[b] - table[a]) * (k - a) / max(b - a, 1)
            for a in range(k + 1)
            for b in range(k, len(table))
        ]
        assert hull[k] == pytest.approx(min(chords))


@given(seeds)
def test_tangents_lie_below_the_tables(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    kept = [np.exp(-0.3 * np.arange(n + 1.0)), rng.normal(size=n + 1)]
    rows = [kept[0], kept[1], kept[0]]
    tables = CountTables(rows)
    counts = rng.uniform(0, n, 3)
    slopes = tables.slopes(counts)
    for row, slope, start in zip(rows, slopes, tables.intercepts(slopes), strict=True):
        above = row - (start + slope * np.arange(n + 1))
        assert above.min() == pytest.approx(0.0, abs=1e-12)  # below, and no line is higher
    middles = np.floor(np.minimum(counts, n - 0.5)) + 0.5  # where slopes are those of the hulls
    slopes = tables.slopes(middles)
    heights = tables.hull_heights(middles[None])[0]
    assert heights == pytest.approx(tables.intercepts(slopes) + slopes * middles)
    whole = rng.integers(0, n + 1, 3)
    assert tables.heights(whole).tolist() == [row[k] for row, k in zip(rows, whole, strict=True)]


def mixture_and_bounds(seed):
    """The value of a mixture, the least that there is (a linear programme), the best alone."""
    rng = np.random.default_rng(seed)
    n, k, t = 20, int(rng.integers(1, 8)), int(rng.integers(1, 4))
    energies = rng.uniform(0.0, 3.0, k)
    counts = rng.integers(0, n + 1, (k, t)).astype(float)
    table = 2.0 * np.exp(-rng.uniform(0.05, 0.5) * np.arange(n + 1.0))
    tables = CountTables([table] * t)
    weights = best_mixture(energies, counts, tables, 1e-6)
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1.0)
    value = energies @ weights + tables.hull_heights((weights @ counts)[None])[0].sum()
    slopes = np.diff(table)
    starts = table[:-1] - slopes * np.arange(n)
    rows = [
        np.concatenate([slope * counts[:, s], -np.eye(t)[s]]) for s in range(t) for slope in slopes
    ]
    least = linprog(
        np.concatenate([energies, np.ones(t)]),
        A_ub=np.array(rows),
        b_ub=-np.tile(starts, t),
        A_eq=np.concatenate([np.ones(k), np.zeros(t)])[None],
        b_eq=[1.0],
        bounds=[(0, None)] * k + [(None, None)] * t,
    ).fun
    return value, least, (energies + tables.hull_heights(counts).sum(axis=1)).min()


@given(seeds)
def test_a_mixture_is_no_worse_than_a_labelling_alone(seed):
    value, least, alone = mixture_and_bounds(seed)
    assert least - 1e-7 <= value <= alone + 1e-12


def test_mixtures_gain_nearly_all_there_is():
    """The kinks of the tables are rounded off, so this holds on average alone."""
    values, least, alone = np.array([mixture_and_bounds(seed) for seed in range(60)]).T
    assert (values - least).sum() <= 0.05 * (alone - least).sum()


@pytest.mark.parametrize("name", ["potts-on-two-labels", "potts-on-three-labels", "mixed-tables"])
@given(seed=seeds)
def test_parts_add_up(name, seed):
    """What recombination returns is better by the sum that it was chosen by."""
    rng = np.random.default_rng(seed)
    field = of_seed(name, seed % 5)
    n, labels = field.unary.shape
    y, z, *centers = rng.integers(0, labels, (4, n))
    tables = CountTables([3.0 * np.exp(-0.4 * np.arange(n + 1.0))] * 2)
    centers = np.array(centers)

    def value(x):
        far = np.count_nonzero(centers != x, axis=1)
        return field.energy(x) + tables.heights(far).sum()

    better = Recombination(field).between(y, z, centers, tables)
    if better is None:
        return
    assert value(better) < value(y)
    assert ((better == y) | (better == z)).all()


@pytest.mark.parametrize(
    "name",
    ["potts-on-two-labels", "segmentation", "submodular-tables", "forbidden-labels-on-two-labels"],
)
def test_one_graph_for_many_unaries(name):
    rng = np.random.default_rng(0)
    field = of_seed(name, 0)
    graph = TwoLabelCut(field)
    every = reference.all_labelings(*field.unary.shape)
    for _ in range(5):
        shift = rng.normal(size=field.unary.shape)
        changed = field.with_unary(field.unary + shift)
        costs = changed.unary[:, 1] - changed.unary[:, 0]
        labels = graph.ones(costs).astype(int)
        assert changed.energy(labels) == pytest.approx(changed.energy(every).min(), abs=1e-9)


@pytest.mark.parametrize("name", ["any-tables-on-two-labels", "any-cardinality"])
def test_what_is_no_cut_is_refused(name):
    with pytest.raises(ValueError, match="field must be"):
        TwoLabelCut(of_seed(name, 0))


@given(seeds)
def test_a_field_of_its_own_with_balls(seed):
    """The search takes any field with functions of distances, of any sign."""
    rng = np.random.default_rng(seed)
    field = fields.Field(rng.normal(size=(6, 2))) + fields.Potts(grid(2, 3), 0.3)
    for _ in range(rng.integers(0, 4)):
        table = rng.normal(0.0, 2.0, 7)
        field += fields.CardinalityPotential(rng.integers(0, 2, 6), table)
    found = HammingSearch(1).solve(StepProblem.of(field))
    least = reference.least_energy(field)
    assert found.value == pytest.approx(field.energy(found.labels), abs=1e-9)
    assert found.bound <= least + 1e-9
    assert found.value >= least - 1e-9


@pytest.mark.parametrize("method", ["multipliers", "branches"])
@pytest.mark.parametrize("price", [1e12, 1e17, 1e20])
def test_seeds_do_not_hide_what_others_pay(method, price):
    """What labels cost is not read from differences, in which a price that nobody pays stands."""
    rng = np.random.default_rng(0)
    unary = rng.normal(size=(9, 2))
    unary[[0, 4], [0, 1]] += price
    field = fields.Field(unary) + fields.Potts(grid(3, 3), 0.3)
    ball = HammingBall(weight=2.0, gamma=0.3)
    found = diverse(field, 4, ball, method=method)
    every = reference.all_labelings(9, 2)
    for k in range(1, 4):
        earlier = found.labelings[:k]
        energies = ball.augment(field, earlier).energy(np.vstack([found.labelings[k], every]))
        assert energies[0] - energies[1:].min() <= found.gaps[k] + 1e-9


class Written(fields.Potential):
    """A function of a count that is not the library's."""

    def __init__(self, *terms):
        self._set(given=terms)

    def terms(self, n_variables, n_labels):
        return self.given


@pytest.mark.parametrize("method", ["auto", "multipliers", "messages"])
def test_a_ball_is_a_term_whoever_wrote_it(method):
    rng = np.random.default_rng(0)
    center, table = rng.integers(0, 2, 25), 4.0 * np.exp(-0.3 * np.arange(26.0))
    table -= table.min()
    base = fields.Field(rng.normal(size=(25, 2))) + fields.Potts(fields.grid_edges((5, 5)), 0.4)
    term = fields.CardinalityTerm(center, table)
    ours, theirs = base + fields.CardinalityPotential(center, table), base + Written(term)
    problem = StepProblem.of(theirs)
    assert (problem.balls, problem.others) == ((term,), base.potentials)
    two = [
        diverse(field, 3, HammingBall(weight=3.0, gamma=0.2), method=method)
        for field in (ours, theirs)
    ]
    for name in ("labelings", "values", "gains", "bounds", "relative_gaps"):
        assert np.array_equal(getattr(two[0], name), getattr(two[1], name)), name
    concave = fields.CardinalityTerm(center, -table)
    for other in (Written(concave), Written(term, term), Written(term, concave), Written()):
        assert StepProblem.of(base + other).balls == ()


def test_bounds_carry_over():
    """From one field to the next few passes do, and every bound holds."""
    rng = np.random.default_rng(0)
    base = fields.Field(rng.normal(size=(60, 4))) + fields.Potts(grid(6, 10), 0.4)
    bounds = CarriedBound()
    for k in range(4):
        field = base + fields.LabelCost(rng.uniform(0.0, 3.0 * k, 4))
        if k > 1:
            table = 3.0 * np.exp(-0.1 * np.arange(61.0))
            field += fields.CardinalityPotential(rng.integers(0, 4, 60), table)
        found = solve_map(field, "convex", tol=np.inf)
        options = MapOptions.read(field, n_jobs=1)
        carried = bounds.improve(field, found, options)
        whole = solve_map(field, "convex")
        assert carried.bound <= whole.value + 1e-9
        assert carried.bound >= whole.bound - 0.05 * max(1.0, abs(whole.bound))


def test_bounds_carry_over_between_terms_of_one_kind_only():
    """Half an edge of weight 2 has the numbers of a count whose gains are 1 and 0."""
    count = Written(fields.CountTerm([0, 0], [0, 3], [0.0, 1.0, 1.0]))
    field = fields.Field([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0]]) + count
    bounds = CarriedBound()
    for step in (field, field + fields.Potts([[0, 1]], 2.0)):
        found = solve_map(step, "convex", max_iter=0)
        carried = bounds.improve(step, found, MapOptions.read(step, n_jobs=1))
        assert carried.bound <= step.energy(reference.all_labelings(2, 3)).min() + 1e-9


def test_labels_that_are_forbidden_have_no_difference():
    unary = np.random.default_rng(0).normal(size=(6, 3))
    unary[0, [0, 2]] = np.inf
    field = fields.Field(unary) + fields.Potts(grid(2, 3), 0.3)
    found = diverse(field, 3, HammingBall(weight=2.0, gamma=0.3), method="multipliers")
    assert (found.labelings[:, 0] == 1).all()
