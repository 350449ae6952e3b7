"""One table times a weight per edge is the field of its products, in every answer."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import setwise as sw
from setwise import _core, fields
from setwise.fields._terms import merge_pairs


def random_case(seed: int, n_labels: int = 3, n: int = 5, *, signed: bool = False):
    """A field with one table times weights, and the same with a table for each edge."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n, 8)
    edges = np.stack([first, (first + rng.integers(1, n, 8)) % n], axis=1)
    table = rng.normal(size=(n_labels, n_labels))
    weights = rng.normal(size=8) if signed else rng.random(8)
    unary = fields.Field(rng.normal(size=(n, n_labels)))
    shared = unary + fields.Pairwise(edges, table, weights)
    return shared, unary + fields.Pairwise(edges, weights[:, None, None] * table)


def labelings(field: fields.Field) -> np.ndarray:
    return np.array(list(itertools.product(range(field.n_labels), repeat=field.n_variables)))


@pytest.mark.hypothesis
@given(seed=st.integers(0, 2**32 - 1), n_labels=st.integers(1, 3), signed=st.booleans())
def test_energies_are_those_of_the_products(seed: int, n_labels: int, signed: bool) -> None:
    shared, each = random_case(seed, n_labels, signed=signed)
    x = labelings(shared)
    np.testing.assert_array_equal(shared.energy(x), each.energy(x))
    assert shared.is_submodular == each.is_submodular


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("method", ["auto", "enumerate", "elimination", "messages", "convex"])
def test_answers_are_those_of_the_products(seed: int, method: str) -> None:
    shared, each = random_case(seed, signed=seed % 2 == 0)
    least = shared.energy(labelings(shared)).min()
    for field in (shared, each):
        best = sw.solve_map(field, method)
        assert best.bound <= least + 1e-12 <= best.value + 2e-12
    if method == "auto":
        assert sw.solve_map(shared).value == pytest.approx(least, abs=1e-12)


@pytest.mark.parametrize("method", ["trees", "elimination", "mean_field", "belief_propagation"])
def test_marginals_are_those_of_the_products(method: str) -> None:
    for seed in range(4):
        one, other = (sw.marginals(field, method, tol=1e-9) for field in random_case(seed))
        np.testing.assert_allclose(one.probabilities, other.probabilities, atol=1e-6)
        assert one.log_partition_lower == pytest.approx(other.log_partition_lower, abs=1e-6)


def test_gradients_in_the_potentials_are_those_of_the_products() -> None:
    for seed in range(4):
        found = [
            sw.inference.log_partition_gradient(field, sw.marginals(field, "trees", tol=1e-10))
            for field in random_case(seed, signed=seed % 2 == 0)
        ]
        np.testing.assert_allclose(found[0].weights, found[1].weights, atol=1e-5)


def test_samples_are_those_of_the_products() -> None:
    one, other = (sw.sample(field, 20, rng=0) for field in random_case(3))
    np.testing.assert_array_equal(one.labelings, other.labelings)


def test_one_table_is_stored_once() -> None:
    edges = fields.grid_edges((40, 40))
    table = np.abs(np.subtract.outer(np.arange(20.0), np.arange(20.0)))
    field = fields.Field(np.zeros((1600, 20))) + fields.Pairwise(edges, table, 0.5)
    ((_, term),) = field._terms()
    assert term.tables.strides[0] == 0
    assert term is field._given()[0][1]
    pairs = merge_pairs([term], *field.unary.shape)
    assert len(pairs.tables) == 1
    assert len(pickle.dumps(field.potentials[0])) < 16 * (edges.size + table.size)


def test_pairs_of_both_directions_are_merged() -> None:
    table = np.arange(9.0).reshape(3, 3)
    terms = [fields.TableTerm([[0, 1], [2, 1]], table, [1.0, 2.0]), fields.PottsTerm([[1, 0]], 3.0)]
    pairs = merge_pairs(terms, 3, 3)
    assert pairs.edges.tolist() == [[0, 1], [1, 2]]
    np.testing.assert_array_equal(pairs.energies()[0], table + 3.0 * (1.0 - np.eye(3)))
    np.testing.assert_array_equal(pairs.energies()[1], 2.0 * table.T)
    turned = pairs.renumbered(np.array([2, 1, 0]))
    np.testing.assert_array_equal(turned.energies()[0], 2.0 * table)


@pytest.mark.parametrize("kind", [fields.TruncatedLinear, fields.TruncatedQuadratic])
def test_truncated_metrics(kind: type[fields.TruncatedLinear]) -> None:
    edges, weights = [[0, 1], [1, 2]], [0.5, 2.0]
    power = 1 if kind is fields.TruncatedLinear else 2
    apart = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0))) ** power
    for limit in (1.0, 2.5, np.inf):
        field = fields.Field(np.zeros((3, 5))) + kind(edges, weights, limit)
        other = fields.Field(np.zeros((3, 5)))
        other = other + fields.Pairwise(edges, np.minimum(apart, limit), weights)
        x = labelings(field)
        np.testing.assert_array_equal(field.energy(x), other.energy(x))
    assert (fields.Field(np.zeros((3, 5))) + kind(edges, weights, 1.0)).is_submodular


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: fields.Pairwise([[0, 1]], np.eye(2), [1.0, 2.0]), "weights must have shape"),
        (lambda: fields.Pairwise([[0, 1]], np.eye(2), np.nan), "weights must be finite"),
        (lambda: fields.TruncatedLinear([[0, 1]], -1.0), "weights must"),
        (lambda: fields.TruncatedLinear([[0, 1]], 1.0, 0.0), "truncation must be positive"),
        (lambda: fields.TableTerm([[0, 1]], np.eye(2), -1.0), "weights must"),
    ],
)
def test_bad_input_is_one_sentence(make, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()


def test_moves_start_from_decoded_labels_with_their_bound() -> None:
    rng = np.random.default_rng(0)
    edges = fields.grid_edges((12, 12))
    unary = rng.normal(size=(144, 6))
    field = fields.Field(unary) + fields.TruncatedLinear(edges, rng.random(len(edges)), 2.0)
    best = sw.solve_map(field, "expansion", tol=np.inf)
    from_unary = sw.solve_map(field, "expansion", tol=np.inf, init=unary.argmin(axis=1))
    exact = sw.solve_map(field)
    assert from_unary.bound < best.bound <= exact.value <= best.value
    assert best.value <= from_unary.value + 1e-12


@pytest.mark.hypothesis
@given(seed=st.integers(0, 2**32 - 1))
def test_induced_forests_are_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 9)), int(rng.integers(0, 14))
    first = rng.integers(0, n, m)
    edges = np.stack([first, (first + rng.integers(1, n, m)) % n], axis=1)
    order = rng.permutation(m)[: rng.integers(0, m + 1)]
    kept = np.zeros(m, np.uint8)
    _core.induced_forest(edges, n, order, kept)
    component, expected = list(range(n)), np.zeros(m, np.uint8)
    for e in order.tolist():
        a, b = (component[i] for i in edges[e].tolist())
        between = sum({component[i], component[j]} == {a, b} for i, j in edges.tolist())
        if a != b and between == 1:
            expected[e] = 1
            component = [a if c == b else c for c in component]
    np.testing.assert_array_equal(kept, expected)
