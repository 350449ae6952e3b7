"""The claims of "Higher-Order Inference for Multi-class Log-supermodular Models", one test each."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from field_registry import FIELDS, of_seed
from marginals_cases import UPPER

import setwise as sw
from setwise.inference._relaxation._relaxation import Relaxation

SUBMODULAR = [name for name in sorted(FIELDS) if of_seed(name, 0).is_submodular]
BINARY = [
    name for name in SUBMODULAR if of_seed(name, 0).n_labels == 2 and name != "concave-cardinality"
]


def extension(field: sw.fields.Field, p: np.ndarray) -> float:
    """f(p), F(empty) included."""
    relaxation = Relaxation(field)
    unary = np.where(p > 0, relaxation.unary, 0.0)
    return relaxation.constant + float((unary * p).sum()) + relaxation.extension(p)


def entropy(p: np.ndarray) -> float:
    return float(-(p * np.log(p, out=np.zeros_like(p), where=p > 0)).sum())


@pytest.mark.parametrize("name", SUBMODULAR)
def test_equation_1_every_point_of_the_base_polytope_bounds_log_partition(name):
    field = of_seed(name, 0)
    truth = reference.log_partition(field)
    for max_iter in [0, 1, 2]:
        for method in UPPER:
            post = sw.marginals(field, method, tol=0.0, max_iter=max_iter)
            assert post.log_partition_upper >= truth - 1e-9 * max(1.0, abs(truth))


@pytest.mark.parametrize("name", BINARY)
def test_claim_1_the_two_problems_have_the_same_marginals(name):
    """exact_binary solves (5), over sets of variables; projection (2), over pairs."""
    field = of_seed(name, 4)
    two = sw.marginals(field, "projection", tol=1e-12)
    five = sw.marginals(field, "exact_binary")
    np.testing.assert_allclose(five.probabilities, two.probabilities, atol=1e-5)
    assert five.log_partition_upper == pytest.approx(two.log_partition_upper, rel=1e-10)


@pytest.mark.parametrize("name", BINARY)
def test_claim_1_thresholding_at_a_half_is_an_exact_map(name):
    for seed in range(5):
        field = of_seed(name, seed)
        best = sw.solve_map(field)
        assert best.exact
        labels = sw.marginals(field, "exact_binary").labels
        assert field.energy(labels) == pytest.approx(best.value, abs=1e-9)


@pytest.mark.parametrize("name", BINARY)
def test_section_5_no_factorised_distribution_has_a_smaller_worst_ratio(name):
    """D_inf(P, Q) = log max_x P(x) / Q(x) is least at our Q, where it is upper - log Z."""
    field = of_seed(name, 1)
    labelings, logs = reference.log_weights(field)
    logs = logs - np.logaddexp.reduce(logs)
    met = np.isfinite(logs)
    post = sw.marginals(field, "exact_binary")

    def divergence(q: np.ndarray) -> float:
        return float((logs[met] - reference.log_factorized(q, labelings[met])).max())

    least = divergence(post.probabilities)
    truth = reference.log_partition(field)
    assert least == pytest.approx(post.log_partition_upper - truth, abs=1e-8)
    rng = np.random.default_rng(0)
    for scale in [0.01, 0.1, 1.0, 3.0]:
        for _ in range(20):
            q = post.probabilities * np.exp(rng.normal(0.0, scale, post.probabilities.shape))
            assert divergence(q / q.sum(axis=1, keepdims=True)) >= least - 1e-9


@pytest.mark.parametrize("temperature", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("name", SUBMODULAR)
def test_claims_2_and_5_fenchel_duality(name, temperature):
    field = of_seed(name, 2)
    post = sw.marginals(field, "projection", tol=1e-10, temperature=temperature)
    p = post.probabilities
    dual = entropy(p) - extension(field, p) / temperature
    assert dual == pytest.approx(post.log_partition_upper, rel=1e-8, abs=1e-8)
    rng = np.random.default_rng(0)
    for _ in range(20):
        q = np.where(np.isfinite(field.unary), rng.dirichlet(np.ones(p.shape[1]), len(p)), 0.0)
        q /= q.sum(axis=1, keepdims=True)
        value = entropy(q) - extension(field, q) / temperature
        assert value <= post.log_partition_upper + post.gap + 1e-9


@pytest.mark.parametrize("temperature", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("name", ["potts-on-three-labels", "region-consistency", "label-costs"])
def test_claim_3_the_rate_of_frank_wolfe(name, temperature):
    """t times the error after k steps (k from 0) is at most 2 diam^2 / (k + 2)."""
    field = of_seed(name, 0)
    relaxation = Relaxation(field)
    diameter = field.n_labels * float((relaxation.widths**2).sum())
    best = sw.marginals(field, "projection", tol=1e-12, temperature=temperature)
    least = best.log_partition_upper
    post = sw.marginals(field, "frank_wolfe", tol=0.0, max_iter=200, temperature=temperature)
    errors = temperature * (np.array(post.history[1:]) - least)
    steps = np.arange(1, len(errors) + 1)
    assert (errors >= -1e-9).all()
    assert (errors <= 2 * diameter / temperature / (steps + 2)).all()


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("name", ["potts-on-two-labels", "potts-on-three-labels", "robust-pn"])
def test_claim_4_the_price_of_smoothing(name, epsilon):
    field = of_seed(name, 0)
    post = sw.marginals(field, "projection", tol=1e-10, temperature=epsilon)
    smooth = extension(field, post.probabilities)
    hard = sw.solve_map(field, "convex", max_iter=2000).bound
    assert smooth - hard <= epsilon * field.n_variables * np.log(field.n_labels) + 1e-6
    assert smooth >= hard - 1e-9


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize(("n", "n_labels"), [(1, 2), (4, 3), (3, 7)])
def test_claim_4_is_nearly_tight(n, n_labels, epsilon):
    unary = np.zeros((n, n_labels))
    unary[:, 0] = -epsilon * np.log(n_labels - 1)
    field = sw.fields.Field(unary)
    p = sw.marginals(field, "projection", temperature=epsilon).probabilities
    excess = extension(field, p) - unary.min(axis=1).sum()
    assert excess == pytest.approx(epsilon * n * np.log(n_labels - 1) / 2, abs=1e-12)
