"""Lists of two labels by biases: the path, joint lists, alternatives; candidates."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, pairwise, product

import numpy as np
import pytest
import reference
from field_registry import FIELDS, of_seed
from hypothesis import given
from hypothesis import strategies as st

import setwise as sw
from setwise import diversities as d
from setwise import fields, inference
from setwise.inference._diverse import _alternative_list
from setwise.inference._diverse._path._medians import Medians, largest_part
from setwise.inference._flows._two_label_cut import TwoLabelCut

seeds = st.integers(0, 2**32 - 1)


def small_field(seed: int, n_labels: int = 2, most: int = 6) -> fields.Field:
    """Some variables with edges, and with regions or label costs now and then."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, most + 1))
    field = fields.Field(rng.normal(size=(n, n_labels)).round(int(rng.integers(1, 5))))
    pairs = [pair for pair in combinations(range(n), 2) if rng.random() < 0.6]
    if pairs:
        field = field + fields.Potts(pairs, rng.random(len(pairs)))
    if rng.random() < 0.4:
        field = field + fields.RobustPn(rng.integers(0, 2, n), rng.random(), 1.0)
    return field


def all_labelings(n: int, n_labels: int = 2) -> np.ndarray:
    return np.array(list(product(range(n_labels), repeat=n)), np.int64)


@given(seeds, st.floats(0.0, 5.0))
def test_every_labeling_of_a_path_is_the_best_for_its_bias(seed, max_bias):
    field = small_field(seed)
    path = inference.bias_path(field, max_bias=max_bias)
    items = all_labelings(field.n_variables)
    energies, sizes = field.energy(items), items.sum(axis=1)
    for bias in [*np.linspace(-max_bias, max_bias, 7), *path.breakpoints, *path.biases]:
        found = path.labeling(float(bias))
        least = (energies + bias * sizes).min()
        assert field.energy(found) + bias * found.sum() == pytest.approx(least, abs=1e-9)
    pieces = path.pieces(np.arange(path.n_pieces))
    assert (np.diff(pieces, axis=0) <= 0).all()  # nested
    np.testing.assert_array_equal(pieces.sum(axis=1), path.sizes)
    np.testing.assert_allclose(field.energy(pieces), path.values, atol=1e-9)
    assert (np.diff(path.sizes) < 0).all()
    assert (np.diff(path.breakpoints) >= 0).all()
    assert path.shares.sum() == pytest.approx(1.0)
    assert (path.shares >= 0).all()
    assert path.whole


@given(seeds)
def test_a_path_of_few_cuts_holds_best_labelings_too(seed):
    field = small_field(seed, most=8)
    path = inference.bias_path(field, max_bias=3.0, max_cuts=4, resolution=0.2)
    items = all_labelings(field.n_variables)
    energies, sizes = field.energy(items), items.sum(axis=1)
    assert path.n_cuts <= 4
    for number, bias in enumerate(path.biases):
        value = path.values[number] + bias * path.sizes[number]
        assert value == pytest.approx((energies + bias * sizes).min(), abs=1e-9)


def test_the_path_is_in_the_units_of_the_field():
    rng = np.random.default_rng(0)
    edges = fields.grid_edges((12, 15))
    unary = rng.normal(size=(180, 2))
    path = inference.bias_path(fields.Field(unary) + fields.Potts(edges, 0.5))
    scaled = inference.bias_path(fields.Field(1e6 * unary + 3e6) + fields.Potts(edges, 0.5e6))
    np.testing.assert_array_equal(path.last, scaled.last)
    np.testing.assert_allclose(1e6 * path.breakpoints, scaled.breakpoints, rtol=1e-6)
    preferences = np.abs(unary[:, 1] - unary[:, 0])
    assert np.quantile(preferences, 0.7) <= path.max_bias <= np.quantile(preferences, 0.8)


def test_seeds_do_not_change_the_default_of_max_bias():
    rng = np.random.default_rng(0)
    unary = rng.normal(size=(200, 2))
    seeded = unary.copy()
    seeded[:20, 1] = 1e4
    seeded[20:30, 0] = np.inf
    field, with_seeds = (fields.Field(u) for u in (unary, seeded))
    assert inference.bias_path(with_seeds).max_bias < 1.3 * inference.bias_path(field).max_bias
    six = sw.diverse(with_seeds + fields.Potts(fields.grid_edges((10, 20)), 0.5), 6)
    assert (six.labelings[:, :20] == 0).all()
    assert (six.labelings[:, 20:30] == 1).all()


NODE_WISE = {
    "div-m-best": lambda: d.DivMBest(0.4),
    "min1": lambda: d.VariableCoverage("min1", 0.6),
    "sqrt": lambda: d.VariableCoverage("sqrt", 0.6),
    "sum": lambda: d.DivMBest(0.1) + d.VariableCoverage("log1p", 0.5),
}


@given(st.sampled_from(sorted(NODE_WISE)), seeds, st.integers(1, 3))
def test_a_joint_list_of_two_labels_is_the_best_of_all_lists(name, seed, m):
    field, diversity = small_field(seed, most=4), NODE_WISE[name]()
    found = sw.diverse(field, m, diversity, method="joint")
    items = all_labelings(field.n_variables)
    energies = field.energy(items)
    best = min(
        energies[list(chosen)].sum() - diversity.value(items[list(chosen)], 2)
        for chosen in combinations_with_replacement(range(len(items)), m)
    )
    score = found.values.sum() - diversity.value(found.labelings, 2)
    assert score == pytest.approx(best, abs=1e-9)
    assert (found.values - found.gains).sum() == pytest.approx(best, abs=1e-9)
    assert found.exact
    assert (found.gaps <= 1e-12 * (1.0 + np.abs(found.values))).all()
    assert found.guarantee.factor == 1.0
    assert found.guarantee.slack == 0.0
    ones = items.sum(axis=1)
    for k, bias in enumerate(found.biases):  # each item's own problem
        value = found.values[k] + bias * found.labelings[k].sum()
        assert value == pytest.approx((energies + bias * ones).min(), abs=1e-9)


def test_joint_lists_of_hamming_distances_have_equally_spaced_biases():
    field = small_field(3)
    found = sw.diverse(field, 5, d.DivMBest(0.25), method="joint")
    np.testing.assert_allclose(np.sort(found.biases), [-1.0, -0.5, 0.0, 0.5, 1.0])


@given(st.sampled_from(sorted(NODE_WISE)), seeds, st.integers(1, 3))
def test_a_joint_list_of_three_labels_is_within_its_bound(name, seed, m):
    field, diversity = small_field(seed, 3, most=2), NODE_WISE[name]()
    found = sw.diverse(field, m, diversity, method="joint")
    items = all_labelings(field.n_variables, 3)
    energies = field.energy(items)
    best = min(
        energies[list(chosen)].sum() - diversity.value(items[list(chosen)], 3)
        for chosen in combinations_with_replacement(range(len(items)), m)
    )
    score = found.values.sum() - diversity.value(found.labelings, 3)
    greedy = sw.diverse(field, m, diversity)
    assert score <= greedy.values.sum() - diversity.value(greedy.labelings, 3) + 1e-9
    assert best - 1e-9 <= score <= best + found.gaps.sum() + 1e-9


@pytest.mark.parametrize("n_labels", [2, 3])
def test_a_constant_does_not_change_what_is_claimed_of_a_joint_list(n_labels):
    rng = np.random.default_rng(0)
    unary = rng.integers(-2048, 2048, (6, n_labels)) / 1024
    potts = sw.fields.Potts(sw.fields.grid_edges((2, 3)), 0.5)
    plain = sw.diverse(sw.fields.Field(unary) + potts, 3, d.DivMBest(0.3), method="joint")
    for constant in (-1e9, 1e6, 1e12):
        field = sw.fields.Field(unary + constant) + potts
        moved = sw.diverse(field, 3, d.DivMBest(0.3), method="joint")
        assert moved.labelings.tolist() == plain.labelings.tolist()
        claims = [[r.guarantee.score, r.guarantee.bound, r.guarantee.ratio] for r in (plain, moved)]
        assert claims[0] == claims[1]
        assert moved.guarantee.shift == pytest.approx(moved.values.max())


@given(seeds, st.integers(1, 5), st.floats(0.0, 0.4))
def test_medians_are_the_best_of_all_choices(seed, m, least):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(m, 9))
    x = -np.sort(-rng.choice(100, n, replace=False)).astype(float)
    p, through = rng.random(n), int(rng.integers(n))
    allowed = np.abs(x[:, None] - x) >= least * 30
    found = Medians(x, p, through).choose(m, allowed)

    def left(chosen):
        return (p * np.abs(x[list(chosen)][:, None] - x).min(axis=0)).sum()

    fitting = [
        chosen
        for chosen in combinations(range(n), m)
        if through in chosen and all(allowed[a, b] for a, b in pairwise(chosen))
    ]
    if not fitting:
        assert found is None
    else:
        assert tuple(found) in fitting
        assert left(found) == pytest.approx(min(map(left, fitting)), abs=1e-9)


def picture(seed: int, n_labels: int = 2, shape: tuple[int, int] = (30, 40)) -> fields.Field:
    """Blobs under noise, with Potts edges."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: shape[0], : shape[1]] / np.array(shape)[:, None, None]
    waves = [np.sin(4 * x + k) + np.cos(5 * y - 2 * k) for k in range(n_labels)]
    unary = np.stack([w.ravel() for w in waves], axis=1) + 0.3 * rng.normal(size=(x.size, n_labels))
    return fields.Field(unary) + fields.Potts(fields.grid_edges(shape), 0.4)


def shares_of_label_1(field: fields.Field, max_bias: float) -> np.ndarray:
    """By brute force over the biases: between two crossings of lines one labelling is the best."""
    items = all_labelings(field.n_variables)
    energies, sizes = field.energy(items), items.sum(axis=1)
    crossings = [-max_bias, max_bias]
    for a, b in combinations(range(len(items)), 2):
        if sizes[a] != sizes[b]:
            crossings.append((energies[a] - energies[b]) / (sizes[b] - sizes[a]))
    ends = np.unique([c for c in crossings if -max_bias <= c <= max_bias])
    shares = np.zeros(field.n_variables)
    for low, high in pairwise(ends):
        best = items[(energies + 0.5 * (low + high) * sizes).argmin()]
        shares += best * (high - low) / (2.0 * max_bias)
    return shares


@given(seeds, st.integers(2, 5), st.floats(0.5, 4.0))
def test_alternatives_are_the_best_of_the_whole_path(seed, m, max_bias):
    field = small_field(seed, most=7)
    found = sw.diverse(field, m, d.Alternatives(max_bias=max_bias))
    shares = shares_of_label_1(field, max_bias)
    np.testing.assert_allclose(found.probabilities, shares, atol=1e-9)
    assert (found.probability_gaps == 0.0).all()
    assert "off by" not in found.reason
    path = inference.bias_path(field, max_bias=max_bias)

    def left(sizes):
        return (path.shares * np.abs(np.array(sizes)[:, None] - path.sizes).min(axis=0)).sum()

    listed = found.labelings.sum(axis=1)
    m = min(m, path.n_pieces)
    lists = [s for s in combinations(path.sizes.tolist(), m) if listed[0] in s]
    assert left(listed) == pytest.approx(min(map(left, lists)), abs=1e-9)


def test_alternatives_of_eight_variables_have_exact_probabilities():
    unary = [[4, 2], [-3, 4], [0, 0], [0, 2], [-2, 2], [4, -1], [4, -2], [-2, -4]]
    found = sw.diverse(fields.Field(np.array(unary, float)), 2)
    np.testing.assert_allclose(found.probabilities, [0.7, 0, 0.5, 0.3, 0.1, 1, 1, 0.7], atol=1e-12)


@given(seeds, st.integers(3, 8), st.floats(0.5, 4.0))
def test_probabilities_of_a_path_cut_short_are_within_their_gaps(seed, most, max_bias):
    field = small_field(seed, most=7)
    path = inference.bias_path(field, max_bias=max_bias, max_cuts=most)
    off = np.abs(path.probabilities - shares_of_label_1(field, max_bias))
    assert (off <= path.probability_gaps + 1e-9).all()
    assert path.whole == (path.slacks == 0.0).all()


def test_alternatives_say_how_far_probabilities_may_be_off(monkeypatch):
    field = picture(1, shape=(20, 20))
    whole = sw.diverse(field, 4)
    assert (whole.probability_gaps == 0.0).all()
    monkeypatch.setattr(_alternative_list, "_WHOLE_PATH", 0)
    monkeypatch.setattr(_alternative_list, "_PART_OF_PATH", 0)
    part = sw.diverse(field, 4)
    off = np.abs(part.probabilities - whole.probabilities)
    assert 0.02 < off.max() <= part.probability_gaps.max() < 0.5
    assert (off <= part.probability_gaps + 1e-12).all()
    told = "8 cuts do not find the whole path: probabilities are off by up to {0:.3g}"
    assert told.format(part.probability_gaps.max()) in part.reason


def least_parts(field: fields.Field, changed: np.ndarray) -> bool:
    """Whether a labelling differs from others as much as alternatives should, (k, n)."""
    n = field.n_variables
    edges = [np.asarray(p.edges, np.int64) for p in field.potentials if hasattr(p, "edges")]
    joined = np.concatenate([np.zeros((0, 2), np.int64), *edges])
    return bool(
        (changed.sum(axis=1) >= max(0.03 * n, 1.0)).all()
        and all(largest_part(row, joined) >= 0.01 * n for row in changed)
    )


@given(seeds, st.integers(3, 4), st.integers(2, 9))
def test_alternatives_of_more_labels_are_different_and_within_their_bounds(seed, n_labels, m):
    field = small_field(seed, n_labels, most=4)
    found = sw.diverse(field, m)
    items = all_labelings(field.n_variables, n_labels)
    energies = field.energy(items)
    assert len(found.labelings) == min(m, len(items))
    assert len(np.unique(found.labelings, axis=0)) == len(found.labelings)
    assert not found.repeated.any()
    assert "not every two" not in found.reason
    assert ("no more labellings" in found.reason) == (m > len(items))
    for t, labels in enumerate(found.labelings):
        earlier = found.labelings[:t]
        apart = (labels != earlier).sum()
        weight = found.gains[t] / max(apart, 1)
        scores = energies - weight * (items[:, None] != earlier).sum(axis=(1, 2))
        assert found.values[t] == pytest.approx(field.energy(labels), abs=1e-9)
        assert found.bounds[t] <= scores.min() + 1e-9
        score = field.energy(labels) - weight * apart
        assert score <= scores.min() + found.gaps[t] + 1e-9
        if found.methods[t] == "candidate":  # the best of those that are not in the list
            new = (items[:, None] != earlier).any(axis=2).all(axis=1)
            assert found.values[t] == pytest.approx(energies[new].min(), abs=1e-9)


@pytest.mark.parametrize("name", sorted(FIELDS))
@pytest.mark.parametrize("seed", range(2))
def test_alternatives_of_every_potential_are_different_and_within_their_bounds(name, seed):
    field = of_seed(name, seed)
    found = sw.diverse(field, 5)
    items = reference.all_labelings(field.n_variables, field.n_labels)
    energies = field.energy(items)
    finite = int(np.isfinite(energies).sum())
    assert len(np.unique(found.labelings, axis=0)) == len(found.labelings) <= min(5, finite)
    assert not found.repeated.any()
    assert np.isfinite(found.values).all()
    if len(found.labelings) < min(5, finite):
        assert found.biases is not None  # the path has no more
        assert "no others are searched for" in found.reason
    if found.biases is not None:
        for bias, bound in zip(found.biases, found.bounds, strict=True):
            assert bound <= (energies + bias * items.sum(axis=1)).min() + 1e-9
        return
    for t, labels in enumerate(found.labelings):
        earlier = found.labelings[:t]
        weight = found.gains[t] / max((labels != earlier).sum(), 1)
        scores = energies - weight * (items[:, None] != earlier).sum(axis=(1, 2))
        assert found.bounds[t] <= scores.min() + 1e-9


def test_alternatives_of_one_variable_are_all_its_labels():
    found = sw.diverse(fields.Field([[-0.5, 0.0, 2.0]]), 5)
    assert found.labelings.ravel().tolist() == [0, 1, 2]
    assert found.reason.endswith("The list ends at 3 items: the field has no more labellings.")


@pytest.mark.parametrize("n_labels", [3, 5])
@pytest.mark.parametrize("strength", [0.3, 3.0])
@pytest.mark.parametrize("seed", range(2))
def test_alternatives_of_grids_with_more_labels_are_different(seed, strength, n_labels):
    rng = np.random.default_rng(seed)
    edges = fields.grid_edges((20, 20))
    field = fields.Field(rng.normal(size=(400, n_labels))) + fields.Potts(edges, strength)
    six = sw.diverse(field, 6)
    assert len(np.unique(six.labelings, axis=0)) == 6
    assert not six.repeated.any()
    best = six.values[0] - six.gaps[0]
    assert (six.values >= best - 1e-9).all()
    told = all(least_parts(field, six.labelings[:t] != six.labelings[t]) for t in range(1, 6))
    assert told == ("not every two" not in six.reason)
    wider = sum(method == "candidate" for method in six.methods)
    assert (f"for {wider} no weight did" in six.reason) == (wider > 0)
    if strength == 3.0 and n_labels == 3:
        assert wider > 0  # the labels of three constant items cancel


def test_alternatives_that_cannot_differ_enough_say_so():
    rng = np.random.default_rng(0)
    unary = rng.normal(size=(300, 3))
    unary[8:, 1:] = np.inf  # eight variables have a choice, and one in a hundred is three
    field = fields.Field(unary) + fields.Potts(fields.grid_edges((15, 20)), 0.5)
    found = sw.diverse(field, 8)
    assert len(np.unique(found.labelings, axis=0)) == 8
    assert "not every two differ by 0.03 of the variables" in found.reason
    assert "no labelling does so from all items before it" in found.reason
    unary[16:, 1:] = np.inf
    unary[:16] = rng.normal(size=(16, 3))  # too many to look at all of them
    field = fields.Field(unary) + fields.Potts(fields.grid_edges((15, 20)), 0.5)
    wide = d.Alternatives(least_difference=0.5)
    found = sw.diverse(field, 12, wide)
    assert len(np.unique(found.labelings, axis=0)) == 12
    assert "none was found that does so from all items before it" in found.reason


def test_alternatives_end_where_potentials_forbid_all_others():
    table = np.full((3, 3), np.inf)
    np.fill_diagonal(table, 0.0)  # all variables have the same label
    chain = np.stack([np.arange(9), np.arange(1, 10)], axis=1)
    unary = np.random.default_rng(0).normal(size=(10, 3))
    field = fields.Field(unary) + fields.CliquePotential(chain, table)
    found = sw.diverse(field, 6)
    assert np.isfinite(found.values).all()
    assert len(np.unique(found.labelings, axis=0)) == len(found.labelings) <= 3
    assert found.reason.endswith(
        f"The list ends at {len(found.labelings)} items: no other labelling of finite energy "
        "differs from one of them in one variable."
    )


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_alternatives_differ_visibly(seed, n_labels):
    field = picture(seed, n_labels)
    six = sw.diverse(field, 6)
    n, edges = field.n_variables, field.potentials[0].edges
    assert len(six.labelings) == 6
    assert "not every two" not in six.reason
    assert six.values[0] == sw.solve_map(field).value
    for a, b in combinations(six.labelings, 2):
        assert (a != b).mean() >= 0.03
        assert largest_part(a != b, np.asarray(edges, np.int64)) >= 0.01 * n
    if n_labels == 2:
        assert six.exact
        assert six.shares.sum() == pytest.approx(1.0)
        assert ((six.probabilities >= 0) & (six.probabilities <= 1)).all()
        answer = sw.decide(six.probabilities, "jaccard")
        assert answer.mask.shape == (n,)


def test_alternatives_say_where_labelings_are_too_alike():
    sure = fields.Field(np.tile([0.0, 50.0], (100, 1)))
    sure = sure + fields.Potts(fields.grid_edges((10, 10)), 1.0)
    few = sw.diverse(sure, 6)
    assert few.labelings.sum(axis=1).tolist() == [0, 100]  # all of the path, and they differ
    assert "not every two" not in few.reason
    assert "a bias of at most 200 (4 times the default, which has too few)" in few.reason
    assert few.reason.endswith(
        "The list ends at 2 items: under each bias of at most 200 one of them is a best labelling, "
        "and no others are searched for."
    )
    near = fields.Field(np.stack([np.zeros(100), np.linspace(1.0, 50.0, 100)], axis=1))
    alike = sw.diverse(near, 60)
    assert len(alike.labelings) == 60
    assert "not every two differ by 0.03" in alike.reason


def test_alternatives_do_not_depend_on_the_unit_or_a_constant():
    field = picture(0)
    edges = field.potentials[0].edges
    scaled = fields.Field(1e-4 * field.unary - 7.0) + fields.Potts(edges, 0.4e-4)
    np.testing.assert_array_equal(sw.diverse(field, 5).labelings, sw.diverse(scaled, 5).labelings)


@given(seeds, st.integers(1, 4), st.integers(0, 5))
def test_candidates_only_improve_a_step(seed, m, k):
    field = small_field(seed, most=5)
    rng = np.random.default_rng(seed)
    others = rng.integers(0, 2, (k, field.n_variables))
    ball = d.HammingBall(1.5, 0.4)
    found = sw.diverse(field, m, ball, candidates=others)
    items = all_labelings(field.n_variables)
    for t, _labels in enumerate(found.labelings):
        gains = np.array([ball.gain(y, found.labelings[:t]) for y in items])
        best = (field.energy(items) - gains).min()
        score = found.values[t] - found.gains[t]
        assert found.bounds[t] <= best + 1e-9
        assert score <= best + found.gaps[t] + 1e-9
        if t:
            for y in others:
                value = field.energy(y) - ball.gain(y, found.labelings[:t])
                assert score <= value + 1e-9


def test_the_largest_part_is_that_of_the_graph():
    edges = np.array([[0, 1], [1, 2], [3, 4], [5, 0]])
    inside = np.array([True, True, False, True, True, False])
    assert largest_part(inside, edges) == 2
    assert largest_part(np.full(6, True), edges) == 4
    assert largest_part(np.full(6, False), edges) == 0
    assert largest_part(inside, edges[:0]) == 4


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda f: sw.diverse(f, 3, method="joint"), ValueError, "method must be 'auto' for alt"),
        (
            lambda f: sw.diverse(f, 3, d.HammingBall(1.0, 1.0), method="joint"),
            ValueError,
            "diversity must be a sum over variables for method='joint'",
        ),
        (
            lambda f: sw.diverse(f, 3, candidates=np.zeros((1, 1200), np.int64)),
            ValueError,
            "candidates must be None",
        ),
        (
            lambda f: sw.diverse(f, 3, d.DivMBest(1.0), candidates=[[0, 1]]),
            ValueError,
            r"candidates must have shape \(K, 1200\), got \(1, 2\)",
        ),
        (
            lambda f: inference.bias_path(f, resolution=2.0),
            ValueError,
            "resolution must be a share",
        ),
        (lambda f: inference.bias_path(picture(0, 3)), ValueError, "field must have two labels"),
        (lambda f: inference.bias_path(f).labeling(1e9), ValueError, "bias must lie in"),
        (lambda f: inference.bias_path(f).pieces([10**6]), ValueError, "numbers must"),
        (lambda f: inference.bias_path(f).pieces(0), ValueError, r"numbers must have shape \(m,\)"),
        (lambda f: inference.bias_path(f).labeling("0"), TypeError, "bias must"),
        (lambda f: d.Alternatives(1.5), ValueError, "least_difference must be a share"),
        (
            lambda f: d.VariableCoverage(consistency=1.0),
            ValueError,
            "regions must be given for a consistency of 1",
        ),
    ],
)
def test_what_lists_by_bias_refuse(call, error, told):
    with pytest.raises(error, match=told):
        call(picture(0))


# --------------------------------------------------------------------------------- lists cut short


def fields_of_two_and_three():
    rng, edges = np.random.default_rng(5), sw.fields.grid_edges((5, 6))
    for n_labels in (2, 3):
        unary = rng.normal(size=(30, n_labels))
        yield sw.fields.Field(unary) + sw.fields.Potts(edges, 0.4)


@pytest.mark.parametrize("k", [1, 2])
def test_a_callback_ends_joint_lists_and_their_claims(k):
    for field in fields_of_two_and_three():
        seen = []

        def ends(progress, seen=seen):
            seen.append(progress)
            return progress.n_items == k

        apart = sw.diversities.DivMBest(0.3)
        found = sw.diverse(field, 3, apart, method="joint", callback=ends)
        whole = sw.diverse(field, 3, apart, method="joint")
        assert len(seen) == len(found.values) == k
        assert found.interrupted
        assert found.guarantee is None
        assert "ended before its last item" in found.reason
        assert found.labelings.tolist() == whole.labelings[:k].tolist()
        if field.n_labels == 2:
            assert found.biases.tolist() == whole.biases[:k].tolist()
            assert found.exact
        else:
            assert not found.exact
            assert np.isinf(found.gaps).all()

        def struck(progress):
            if progress.n_items == k:
                raise KeyboardInterrupt

        again = sw.diverse(field, 3, apart, method="joint", callback=struck)
        assert again.interrupted
        assert again.labelings.tolist() == found.labelings.tolist()
        last = sw.diverse(field, 3, apart, method="joint", callback=lambda p: p.n_items == 3)
        assert last.guarantee is not None
        assert not last.interrupted


@pytest.mark.parametrize("k", [1, 2, 3])
def test_shares_of_a_list_that_a_callback_ended_are_those_of_its_items(k):
    field = next(fields_of_two_and_three())
    found = sw.diverse(field, 4, callback=lambda progress: progress.n_items == k)
    assert len(found.labelings) == len(found.biases) == len(found.shares) == k
    assert found.shares.sum() == pytest.approx(1.0)
    assert found.interrupted


def test_a_list_that_had_no_time_claims_nothing_of_its_item():
    for field in fields_of_two_and_three():
        found = sw.diverse(field, 3, time_limit=0.0)
        assert len(found.labelings) == 1
        assert "best" not in found.reason
        assert "least" not in found.reason
        assert found.reason.endswith("time_limit of 0 s reached")


@pytest.mark.parametrize("n_labels", [1, 2, 3])
@pytest.mark.parametrize("n", [0, 1])
def test_lists_by_bias_end_with_the_labelings_there_are(n_labels, n):
    field = sw.fields.Field(np.arange(n * n_labels, dtype=float).reshape(n, n_labels))
    there = n_labels**n
    for diversity, method in [
        (None, "auto"),
        (sw.diversities.DivMBest(9.0), "auto"),
    ]:
        found = sw.diverse(field, there + 2, diversity, method=method)
        assert len(found.labelings) == there
        assert not found.repeated.any()
        told = f". The list ends at {there} items: the field has no more labellings."
        assert found.reason.endswith(told)
        assert told not in sw.diverse(field, there, diversity, method=method).reason
    for diversity in (sw.diversities.DivMBest(9.0), sw.diversities.VariableCoverage(weight=9.0)):
        found = sw.diverse(field, there + 2, diversity, method="joint")
        assert len(found.labelings) == there + 2
        assert found.guarantee.n_items == there + 2


@pytest.mark.parametrize("unit", [1.0, 1e6, 1e-6])
def test_alternatives_of_seeds_alone_reach_as_far_as_pairs_weigh(unit):
    edges = sw.fields.grid_edges((10, 10))
    unary = np.zeros((100, 2))
    unary[:3, 1], unary[-3:, 0] = 1e6, np.inf
    weights = 0.1 + np.random.default_rng(2).random(len(edges))
    field = sw.fields.Field(unit * unary) + sw.fields.Potts(edges, unit * weights)
    found = sw.diverse(field, 3)
    assert len(found.labelings) == 3
    assert found.exact
    max_bias = sw.inference.bias_path(field).max_bias
    assert max_bias == pytest.approx(unit * 2.0 * weights.sum() / 100)
    blank = sw.fields.Field(np.zeros((100, 2))) + sw.fields.Potts(edges, unit * weights)
    assert np.sort(sw.diverse(blank, 3).labelings.sum(axis=1)).tolist() == [0, 100]
    some = np.zeros((100, 2))  # most variables without a preference, and no pairs
    some[:20, 1] = unit
    assert sw.inference.bias_path(sw.fields.Field(some)).max_bias == unit


def test_a_cut_that_lost_something_to_rounding_is_not_called_best(monkeypatch):
    field = picture(0)
    best = sw.diverse(field, 4)
    assert best.exact
    monkeypatch.setattr(TwoLabelCut, "lost", 1e-3)
    again = sw.diverse(field, 4)
    assert not again.exact
    np.testing.assert_array_equal(again.labelings, best.labelings)
    assert (again.gaps >= 1e-3).all()
    np.testing.assert_allclose(again.gaps, 1e-3, rtol=0.0, atol=1e-8)  # and rounding errors of sums
    joint = sw.diverse(field, 4, sw.diversities.DivMBest(0.3), method="joint")
    assert not joint.exact
    np.testing.assert_allclose(joint.guarantee.slack, 4e-3)


def test_a_callback_hears_of_every_item_once_where_the_path_ends_early():
    field, heard = sw.fields.Field([[0.0, -2.0], [0.0, -1.0], [0.0, 1.0]]), []
    found = sw.diverse(field, 6, callback=lambda now: heard.append(now.n_items))
    assert heard == [1, 2, 3, 4]
    assert len(found.values) == 4
    assert "The list ends at 4 items" in found.reason
    assert not found.interrupted
