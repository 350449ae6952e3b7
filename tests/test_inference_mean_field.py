"""Mean field and belief propagation: expectations by enumeration, trees solved exactly."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from field_registry import FIELDS, of_seed
from field_terms import ANY, random_field
from marginals_cases import METHODS

import setwise as sw
from setwise.inference._marginals._lower_bound import Factorized

NAMES = sorted(FIELDS)
REPLACED = ("robust-pn-beyond-half", "robust-pn-of-both-kinds", "everything")
PAIRWISE = [
    "potts-on-two-labels",
    "potts-on-a-tree",
    "tables-on-a-tree",
    "submodular-tables",
    "any-tables-on-three-labels",
    "one-table-for-all-edges",
    "forbidden-labels-on-two-labels",
]


def random_q(field: sw.fields.Field, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.full(field.n_labels, 0.5), field.n_variables)
    q = np.where(np.isfinite(field.unary), q + 1e-3, 0.0)
    return q / q.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("small", [0, 48])
@pytest.mark.parametrize("name", NAMES)
def test_expectations_are_exact_or_larger(name, small):
    field = of_seed(name, 0)
    q = random_q(field, 1)
    truth = reference.factorized_bound(field, q)
    value = Factorized(field, q, 1.0, 1, small=small).bound()
    if name in REPLACED or "transitions" in name:
        assert value <= truth + 1e-9
    else:
        assert value == pytest.approx(truth, rel=1e-10, abs=1e-10)
    assert Factorized(field, q, 1.0, 1, small=small, exact=0).bound() <= truth + 1e-9


@pytest.mark.parametrize("small", [0, 48])
@pytest.mark.parametrize("seed", range(40))
def test_no_sweep_lowers_the_bound_that_it_raises(small, seed):
    field = random_field(ANY, 5, 3, seed, forbidden=0.2)
    factorized = Factorized(field, random_q(field, seed), 0.7, 1, small=small, exact=small)
    bounds = [factorized.bound()]
    for _ in range(6):
        factorized.sweep()
        bounds.append(factorized.bound())
    assert (np.diff(bounds) >= -1e-9).all()
    energies = field._energies(reference.all_labelings(5, 3))
    assert bounds[-1] <= np.logaddexp.reduce(-energies / 0.7) + 1e-9


def test_a_fixed_point_is_a_local_maximum():
    field = of_seed("everything-submodular", 0)
    post = sw.marginals(field, "mean_field", tol=1e-12)
    best = reference.factorized_bound(field, post.probabilities)
    assert post.log_partition_lower == pytest.approx(best, abs=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(15):
        q = post.probabilities.copy()
        i = rng.integers(len(q))
        q[i] = 0.9 * q[i] + 0.1 * rng.dirichlet(np.ones(field.n_labels))
        assert reference.factorized_bound(field, q) <= best + 1e-9


@pytest.mark.parametrize("n", [1, 2, 30, 500])
def test_counts_with_a_window_are_those_without(n):
    """The law of a count, by convolution, against the window that leaves rare counts out."""
    rng = np.random.default_rng(n)
    unary = np.stack([np.zeros(n), rng.normal(0.0, 4.0, n)], axis=1)
    table = rng.normal(size=n + 1)
    field = sw.fields.Field(unary) + sw.fields.CardinalityPotential(np.zeros(n, int), table)
    q = random_q(field, 3)
    law = np.ones(1)
    for event in q[:, 1]:
        law = np.convolve(law, [1 - event, event])
    entropy = -(q * np.log(q)).sum()
    expected = entropy - (q * unary).sum() - law @ table
    assert Factorized(field, q, 1.0, 1).bound() == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert Factorized(field, q, 1.0, 1, exact=0).bound() <= expected + 1e-9


def test_large_regions_stay_bounds():
    """Beyond the size of exact counts Jensen takes over: below, and not far."""
    rng = np.random.default_rng(0)
    n = 300
    field = sw.fields.Field(rng.normal(size=(n, 3)))
    field += sw.fields.RegionConsistency(np.zeros(n, int), 0.3, 0.8)
    q = random_q(field, 0)
    exact = Factorized(field, q, 1.0, 1).bound()
    jensen = Factorized(field, q, 1.0, 1, exact=100).bound()
    assert exact - 1.0 <= jensen <= exact


# ------------------------------------------------------------------------------- belief propagation


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("name", ["potts-on-a-tree", "tables-on-a-tree", "unaries-alone"])
def test_belief_propagation_is_exact_on_trees(name, temperature):
    for seed in range(5):
        field = of_seed(name, seed)
        post = sw.marginals(field, "belief_propagation", tol=1e-10, temperature=temperature)
        truth = reference.exact_marginals(field, temperature)
        assert post.converged
        np.testing.assert_allclose(post.probabilities, truth, atol=1e-8)


def test_a_forbidden_label_on_a_tree():
    unary = np.array([[0.0, 1.0, np.inf], [0.5, 0.0, 0.2], [np.inf, np.inf, 0.0]])
    field = sw.fields.Field(unary) + sw.fields.Potts([[0, 1], [1, 2]], [0.7, 1.3])
    post = sw.marginals(field, "belief_propagation", tol=1e-12)
    np.testing.assert_allclose(post.probabilities, reference.exact_marginals(field), atol=1e-12)


@pytest.mark.parametrize("name", PAIRWISE)
def test_baselines_take_pairs_of_any_kind(name):
    field = of_seed(name, 3)
    truth = reference.log_partition(field)
    for method in (name for name, record in METHODS.items() if not record.gives_bound):
        post = sw.marginals(field, method)
        assert (post.certified, post.gap, post.width) == (False, np.inf, np.inf)
        assert post.log_partition_lower <= truth + 1e-9
        assert (post.probabilities[np.isinf(field.unary)] == 0).all()
        np.testing.assert_allclose(post.probabilities.sum(axis=1), 1.0, atol=1e-12)


def test_potts_messages_are_those_of_its_tables():
    rng = np.random.default_rng(4)
    edges = sw.fields.grid_edges((4, 4))
    weights = rng.uniform(0.0, 1.0, len(edges))
    field = sw.fields.Field(rng.normal(size=(16, 3)))
    # a table that no unaries and Potts equal, so that it is not turned into them
    odd = np.zeros((3, 3))
    odd[0, 1] = 1e-13
    tables = weights[:, None, None] * (1 - np.eye(3)) + odd
    one = sw.marginals(field + sw.fields.Potts(edges, weights), "belief_propagation", tol=1e-9)
    two = sw.marginals(field + sw.fields.Pairwise(edges, tables), "belief_propagation", tol=1e-9)
    np.testing.assert_allclose(one.probabilities, two.probabilities, atol=1e-9)
