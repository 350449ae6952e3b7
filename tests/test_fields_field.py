"""Fields: how they are made, added to and asked."""

import copy

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import arrays, edges, numbers

from setwise import _core, fields


@st.composite
def drawn_fields(draw: st.DrawFn) -> fields.Field:
    """Up to five variables and three labels, with up to three potentials of any kind."""
    n, n_labels = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    field = fields.Field(draw(arrays(n * n_labels)).reshape(n, n_labels))
    for kind in draw(st.lists(st.integers(0, 6), max_size=3)):
        field += draw(drawn_potentials(kind, n, n_labels))
    return field


@st.composite
def drawn_potentials(draw: st.DrawFn, kind: int, n: int, n_labels: int) -> fields.Potential:
    links = draw(edges(n))
    regions = draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n))
    n_regions = len(set(regions) - {-1})
    weight = draw(numbers(0.0, 3.0) | arrays(n_regions, 0.0, 3.0))
    if kind == 0:
        return fields.Potts(links, draw(numbers(0.0, 3.0) | arrays(len(links), 0.0, 3.0)))
    if kind == 1:
        shape = draw(st.sampled_from([(), (len(links),)]))
        size = n_labels**2 * int(np.prod(shape))
        return fields.Pairwise(links, draw(arrays(size)).reshape(*shape, n_labels, n_labels))
    if kind == 2:
        return fields.RegionConsistency(regions, weight, draw(st.floats(0.125, 1.0)))
    if kind == 3:
        return fields.RobustPn(regions, weight, draw(numbers(0.25, 6.0)))
    if kind == 4:
        return fields.LabelCost(draw(arrays(n_labels, 0.0, 3.0)))
    if kind == 5:
        group = draw(st.sets(st.integers(0, n_labels - 1), min_size=1))
        return fields.LabelCost(draw(numbers(0.0, 3.0)), labels=sorted(group))
    costs = np.triu(draw(arrays(n_labels**2, 0.0, 3.0)).reshape(n_labels, n_labels), 1)
    concave = draw(st.sampled_from([None, np.sqrt, np.log1p]))
    return fields.LabelTransition(links, costs + costs.T, concave)


@given(drawn_fields())
def test_any_field_is_its_definition_and_the_sum_of_its_terms(field: fields.Field) -> None:
    labelings = reference.all_labelings(field.n_variables, field.n_labels)
    energies = field.energy(labelings)
    expected = [reference.field_energy(field, labels) for labels in labelings]
    np.testing.assert_allclose(energies, expected, rtol=1e-11, atol=1e-11)
    unary = field.unary[np.arange(field.n_variables), labelings].sum(axis=1)
    terms = [term for _, term in field._terms()]
    summed = [sum(reference.term_energy(term, labels) for term in terms) for labels in labelings]
    np.testing.assert_allclose(energies, unary + summed, rtol=1e-10, atol=1e-10)


def test_energies_do_not_depend_on_the_layout_of_the_labels() -> None:
    rng = np.random.default_rng(0)
    field = fields.Field(rng.normal(size=(6, 3))) + fields.Potts([[0, 5], [2, 3]], [1.0, 2.0])
    labels = rng.integers(0, 3, (8, 6))
    plain = field.energy(labels)
    for same in (np.asfortranarray(labels), labels.astype(np.uint8), labels.tolist()):
        np.testing.assert_array_equal(field.energy(same), plain)
    np.testing.assert_array_equal(field.energy(labels[::2, :]), plain[::2])
    assert field.energy(np.zeros((0, 6), int)).shape == (0,)


def test_forbidden_labels_cost_infinity() -> None:
    field = fields.Field([[0.0, np.inf], [1.0, 2.0]]) + fields.Potts([[0, 1]], 1.0)
    assert field.energy([1, 0]) == np.inf
    assert field.energy([0, 1]) == 3.0


def test_adding_makes_a_new_field() -> None:
    field = fields.Field(np.zeros((2, 2)))
    more = field + fields.Potts([[0, 1]], 1.0)
    assert (len(field.potentials), len(more.potentials)) == (0, 1)
    with pytest.raises(AttributeError, match="immutable"):
        more.unary = field.unary
    with pytest.raises(ValueError, match="read-only"):
        more.unary[0, 0] = 1.0
    assert copy.deepcopy(more) is more


def test_unaries_can_be_exchanged() -> None:
    field = fields.Field(np.zeros((2, 2))) + fields.Potts([[0, 1]], 1.0)
    assert field.with_unary([[0.0, 4.0], [0.0, 0.0]]).energy([1, 0]) == 5.0
    with pytest.raises(ValueError, match=r"unary must have shape \(2, 2\), got \(2, 3\)"):
        field.with_unary(np.zeros((2, 3)))


def test_unaries_in_the_shape_of_an_image_are_told_how_to_come() -> None:
    with pytest.raises(
        ValueError, match=r"\(4, 5, 2\): unary.reshape\(-1, 2\), and shape=\(4, 5\)$"
    ):
        fields.Field(np.zeros((4, 5, 2)))
    with pytest.raises(ValueError, match=r"got \(4,\)$"):
        fields.Field(np.zeros(4))


def test_unaries_are_copied() -> None:
    unary = np.zeros((2, 2))
    field = fields.Field(unary)
    unary[0, 0] = 7.0
    assert field.energy([0, 0]) == 0.0


def test_repr_names_every_part() -> None:
    field = fields.Field(np.zeros((4, 2))) + fields.Potts([[0, 1]], 0.5)
    field += fields.RegionConsistency([0, 0, 1, 1], [1.0, 2.0], 0.5)
    assert repr(field) == (
        "Field(4 variables, 2 labels) + Potts(edges=1, weights=0.5)"
        " + RegionConsistency(regions=2, weight=1..2, alpha=0.5)"
    )


def test_potential_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        fields.Potential()


def test_region_weights_follow_the_numbers_of_the_regions() -> None:
    layer = fields.RobustPn([9, 9, 2, 2, -1], [10.0, 1.0], [1.0, 2.0])
    assert layer.regions.tolist() == [1, 1, 0, 0, -1]
    assert layer.sizes.tolist() == [2, 2]
    field = fields.Field(np.zeros((5, 2))) + layer
    assert field.energy([0, 1, 0, 0, 0]) == 0.5
    assert field.energy([0, 0, 1, 0, 0]) == 10.0


def test_unsigned_regions_and_edges_are_taken() -> None:
    layer = fields.RegionConsistency(np.array([5, 5, 3], np.uint64), 1.0, 0.5)
    assert layer.regions.tolist() == [1, 1, 0]
    assert fields.Potts(np.array([[0, 1]], np.uint8), 1.0).edges.dtype == np.int64


def test_region_consistency_keeps_its_digits_in_large_regions() -> None:
    """One pixel of a million differs: 1 + (s-1)^a - s^a, which cancels to its first term."""
    size, alpha = 10**6, 0.5
    layer = fields.RegionConsistency(np.zeros(size, int), 1.0, alpha)
    field = fields.Field(np.zeros((size, 2))) + layer
    labels = np.zeros(size, int)
    labels[7] = 1
    exact = 1.0 - 1.0 / (np.sqrt(size) + np.sqrt(size - 1))
    assert abs(field.energy(labels) - exact) < 1e-12


def zeros(n: int = 3, n_labels: int = 2) -> fields.Field:
    return fields.Field(np.zeros((n, n_labels)))


LAYER = [0, 0, 1]

REFUSED = {
    "unary of text": (lambda: fields.Field([["a"]]), TypeError, "unary must hold real numbers"),
    "unary of one axis": (lambda: fields.Field([0.0]), ValueError, r"shape \(N, L\)"),
    "unary without labels": (lambda: fields.Field(np.zeros((2, 0))), ValueError, "L at least 1"),
    "unary with NaN": (lambda: fields.Field([[np.nan]]), ValueError, "numbers or .inf, got nan"),
    "unary with -inf": (lambda: fields.Field([[-np.inf]]), ValueError, "got -inf"),
    "variable without label": (
        lambda: fields.Field([[0.0], [np.inf]]), ValueError, "got none in row 1",
    ),
    "added number": (lambda: zeros() + 1, TypeError, "unsupported operand"),
    "label beyond": (lambda: zeros().energy([0, 0, 2]), ValueError, "labels must lie between"),
    "label of float": (lambda: zeros().energy([0.0, 0.0, 0.0]), TypeError, "labels must hold"),
    "labels too few": (lambda: zeros().energy([0, 0]), ValueError, r"\(3,\) or \(m, 3\)"),
    "edges of one axis": (lambda: fields.Potts([0, 1], 1.0), ValueError, r"shape \(E, 2\)"),
    "edges of float": (lambda: fields.Potts([[0.0, 1.0]], 1.0), TypeError, "edges must hold"),
    "edge before": (lambda: fields.Potts([[0, -1]], 1.0), ValueError, "numbered from 0, got -1"),
    "edge beyond": (
        lambda: zeros() + fields.Potts([[0, 3]], 1.0), ValueError, "3 variables.*got 3",
    ),
    "edge too large": (
        lambda: fields.Potts(np.array([[0, 2**64 - 1]], np.uint64), 1.0), ValueError, "got 18446",
    ),
    "loop": (lambda: fields.Potts([[1, 1]], 1.0), ValueError, r"different variables, got \(1, 1\)"),
    "negative weight": (lambda: fields.Potts([[0, 1]], -1.0), ValueError, "weights must not be"),
    "NaN weight": (lambda: fields.Potts([[0, 1]], np.nan), ValueError, "weights must be finite"),
    "weights too many": (lambda: fields.Potts([[0, 1]], [1.0, 2.0]), ValueError, "weights must"),
    "table not square": (
        lambda: fields.Pairwise([[0, 1]], np.zeros((2, 3))), ValueError, r"\(E, L, L\)",
    ),
    "table of no labels": (
        lambda: fields.Pairwise([[0, 1]], np.zeros((0, 0))), ValueError, "at least 1",
    ),
    "tables too many": (
        lambda: fields.Pairwise([[0, 1]], np.zeros((2, 2, 2))), ValueError, "tables must have",
    ),
    "infinite table": (
        lambda: fields.Pairwise([[0, 1]], np.full((2, 2), np.inf)), ValueError, "finite, got inf",
    ),
    "table of other labels": (
        lambda: zeros() + fields.Pairwise([], np.zeros((3, 3))), ValueError, "2 labels, got 3",
    ),
    "a number for regions": (
        lambda: fields.RegionConsistency(3, 1.0, 0.5), ValueError, r"shape \(N,\)",
    ),
    "regions of float": (
        lambda: fields.RegionConsistency([0.0], 1.0, 0.5), TypeError, "regions must hold integers",
    ),
    "region below -1": (
        lambda: fields.RegionConsistency([0, -2], 1.0, 0.5), ValueError, "-1 for none, got -2",
    ),
    "regions too few": (
        lambda: zeros(4) + fields.RegionConsistency(LAYER, 1.0, 0.5), ValueError, "4 variables.*3",
    ),
    "alpha 0": (lambda: fields.RegionConsistency(LAYER, 1.0, 0.0), ValueError, "alpha must be"),
    "alpha 2": (lambda: fields.RegionConsistency(LAYER, 1.0, 2.0), ValueError, "alpha must be"),
    "negative region weight": (
        lambda: fields.RegionConsistency(LAYER, -1.0, 0.5), ValueError, "weight must not be",
    ),
    "region weights too many": (
        lambda: fields.RegionConsistency(LAYER, [1.0, 1.0, 1.0], 0.5), ValueError, r"shape \(2\)",
    ),
    "truncation 0": (lambda: fields.RobustPn(LAYER, 1.0, 0.0), ValueError, "truncation must be"),
    "truncation below 0": (
        lambda: fields.RobustPn(LAYER, 1.0, [1.0, -1.0]), ValueError, "truncation must not be",
    ),
    "truncation of text": (lambda: fields.RobustPn(LAYER, 1.0, "a"), TypeError, "truncation must"),
    "relative of int": (
        lambda: fields.RobustPn(LAYER, 1.0, 1.0, relative=1), TypeError, "relative must be",
    ),
    "negative cost": (lambda: fields.LabelCost([-1.0]), ValueError, "costs must not be"),
    "one cost, no group": (lambda: fields.LabelCost(1.0), ValueError, "costs must have shape"),
    "costs too many": (
        lambda: zeros() + fields.LabelCost([1.0, 1.0, 1.0]), ValueError, "2 labels, got 3",
    ),
    "group of none": (lambda: fields.LabelCost(1.0, labels=[]), ValueError, "at least one label"),
    "group of two axes": (
        lambda: fields.LabelCost(1.0, labels=[[0]]), ValueError, "labels must be a list",
    ),
    "group of negative": (lambda: fields.LabelCost(1.0, labels=[-1]), ValueError, "labels must"),
    "group beyond": (
        lambda: zeros() + fields.LabelCost(1.0, labels=[0, 2]), ValueError, "2 labels.*got 2",
    ),
    "costs for a group": (
        lambda: fields.LabelCost([1.0], labels=[0]), TypeError, "costs must be a real number",
    ),
    "transitions not square": (
        lambda: fields.LabelTransition([], np.zeros((2, 3))), ValueError, r"shape \(L, L\)",
    ),
    "transitions not symmetric": (
        lambda: fields.LabelTransition([], [[0, 1], [2, 0]]), ValueError, "costs must be symmetric",
    ),
    "transitions to itself": (
        lambda: fields.LabelTransition([], np.eye(2)), ValueError, "0 on the diagonal",
    ),
    "transitions of other labels": (
        lambda: zeros() + fields.LabelTransition([], np.zeros((3, 3))), ValueError, "got 3",
    ),
    "concave not callable": (
        lambda: fields.LabelTransition([], np.zeros((2, 2)), "sqrt"), TypeError, "concave must be",
    ),
    "concave not zero": (
        lambda: fields.LabelTransition([], np.zeros((2, 2)), np.exp), ValueError, "0 at 0, got 1",
    ),
    "concave falls": (
        lambda: fields.LabelTransition([[0, 1]], np.zeros((2, 2)), np.negative),
        ValueError, "a fall from 0 to 1",
    ),
    "concave is convex": (
        lambda: fields.LabelTransition([[0, 1], [1, 2]], np.zeros((2, 2)), np.square),
        ValueError, "an upward bend at 1",
    ),
    "center of two axes": (
        lambda: fields.CardinalityPotential([[0]], [0.0, 1.0]), ValueError, r"shape \(N,\)",
    ),
    "table too short": (
        lambda: fields.CardinalityPotential([0, 0], [0.0, 1.0]), ValueError, r"shape \(3\)",
    ),
    "center too short": (
        lambda: zeros() + fields.CardinalityPotential([0], [0.0, 1.0]), ValueError, "3 variables",
    ),
    "center beyond": (
        lambda: zeros() + fields.CardinalityPotential([0, 2, 0], np.zeros(4)), ValueError, "got 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_one_sentence(case: str) -> None:
    call, error, sentence = REFUSED[case]
    with pytest.raises(error, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)


X, LINKS, OUT = np.zeros((2, 3), np.int64), np.array([[0, 1]]), np.empty(2)
MEMBERS, OFFSETS, ONE = np.array([0, 2]), np.array([0, 2]), np.ones(1)

OUTSIDE = {
    "label": lambda: _core.potts_energies(X + 2, 2, LINKS, ONE, OUT),
    "negative label": lambda: _core.potts_energies(X - 1, 2, LINKS, ONE, OUT),
    "no labels": lambda: _core.potts_energies(X, 0, LINKS, ONE, OUT),
    "edge": lambda: _core.potts_energies(X, 2, LINKS + 2, ONE, OUT),
    "weights": lambda: _core.potts_energies(X, 2, LINKS, np.ones(2), OUT),
    "energies": lambda: _core.potts_energies(X, 2, LINKS, ONE, np.empty(3)),
    "unary": lambda: _core.unary_energies(X, np.zeros((2, 2)), OUT),
    "tables": lambda: _core.table_energies(X, 2, LINKS, np.ones(5), ONE, OUT),
    "more tables": lambda: _core.table_energies(X, 2, LINKS, np.ones(8), ONE, OUT),
    "factors": lambda: _core.table_energies(X, 2, LINKS, np.ones(4), np.ones(2), OUT),
    "member": lambda: _core.count_energies(X, 2, MEMBERS + 1, OFFSETS, np.ones(3), OUT),
    "offsets": lambda: _core.count_energies(X, 2, MEMBERS, OFFSETS + 1, np.ones(3), OUT),
    "offsets fall": lambda: _core.count_energies(
        X, 2, MEMBERS, np.array([0, 3, 2]), np.ones(4), OUT
    ),
    "no offsets": lambda: _core.count_energies(X, 2, MEMBERS, OFFSETS[:0], np.ones(3), OUT),
    "count table": lambda: _core.count_energies(X, 2, MEMBERS, OFFSETS, np.ones(2), OUT),
    "truncation": lambda: _core.robust_energies(X, 2, MEMBERS, OFFSETS, ONE, np.ones(2), OUT),
    "used": lambda: _core.used_labels(X + 1, np.zeros((2, 1), np.uint8)),
    "costs": lambda: _core.transition_energies(X, LINKS, np.zeros((2, 1)), np.ones(2), OUT),
    "heights": lambda: _core.transition_energies(X, LINKS, np.zeros((2, 2)), ONE, OUT),
    "center": lambda: _core.cardinality_energies(X, 2, MEMBERS, np.zeros(4), OUT),
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_kernels_refuse_what_lies_outside(case: str) -> None:
    with pytest.raises(ValueError, match="must"):
        OUTSIDE[case]()


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: fields.Field([[1, 2], [3]]), TypeError, "unary must be an array of numbers, got"),
        (
            lambda: fields.Field(np.ma.masked_array([[1.0, 99.0]], mask=[[0, 1]])),
            TypeError,
            "unary must be a plain array, got a masked one",
        ),
        (lambda: fields.Field([[-1.7e308, 0.0]]), ValueError, r"unary must be at most 1e\+150 in"),
        (lambda: fields.Field([[0.0, 1.0]]) + np.ones((1, 2)), TypeError, "Field"),
        (lambda: fields.Potts([[0, 1], [2]], 1.0), TypeError, "edges must be an array of numbers"),
        (lambda: fields.Potts([[0, 1]], [[1], [2, 3]]), TypeError, "weights must be an array of n"),
        (lambda: fields.Pairwise([[0, 1]], [[1, 2], [3]]), TypeError, "tables must be an array of"),
        (lambda: fields.LabelCost([[1], [2, 3]]), TypeError, "costs must be an array of numbers"),
        (lambda: fields.CardinalityPotential([0, [1]], [1]), TypeError, "center must be an array"),
        (lambda: fields.RegionConsistency([0], 1.0, 10**400), ValueError, "alpha must be below"),
    ],
)
def test_what_numpy_cannot_read_is_named(make, error: type, sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        make()
