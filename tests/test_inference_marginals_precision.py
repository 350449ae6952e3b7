"""Marginals in single precision, and numbers too large for either."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from field_registry import FIELDS, of_seed
from field_terms import SUBMODULAR, random_field
from marginals_cases import close, small_grid

import setwise as sw
from setwise.inference._conditioning._magnitude import largest_energy

NAMES = sorted(FIELDS)


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def test_single_precision_agrees():
    field = small_grid()
    double = sw.marginals(field, "projection", tol=1e-9)
    single = sw.marginals(field, "projection", tol=1e-6, dtype="float32")
    assert {single.probabilities.dtype, single.state.dtype} == {np.dtype(np.float32)}
    np.testing.assert_allclose(single.probabilities, double.probabilities, atol=1e-5)
    assert close(single.log_partition_upper, double.log_partition_upper, 1e-6)
    assert close(single.log_partition_lower, double.log_partition_lower, 1e-6)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_single_precision_bounds_unaries_alone(offset):
    rng = np.random.default_rng(0)
    unary = 100 * rng.normal(size=(1000, 3)) + offset * rng.uniform(-1, 1, (1000, 1))
    post = sw.marginals(sw.fields.Field(unary), dtype="float32")
    truth = float(np.logaddexp.reduce(-unary, axis=1).sum())
    slack = 1e-12 * np.abs(unary).sum()
    assert truth - slack <= post.log_partition_upper <= truth + slack
    assert post.log_partition_lower <= truth + slack
    np.testing.assert_allclose(post.probabilities, softmax(-unary), atol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("seed", range(40))
def test_single_precision_bounds(seed, scale):
    field = random_field(SUBMODULAR, 5, 3, seed, forbidden=0.2)
    rng = np.random.default_rng(seed)
    field = field.with_unary(scale * field.unary + scale * rng.normal(size=(5, 1)))
    truth = float(np.logaddexp.reduce(-field._energies(reference.all_labelings(5, 3))))
    slack = 1e-12 * max(1.0, largest_energy(field))
    least = sw.marginals(field, "projection", tol=1e-10).log_partition_upper
    for max_iter in [0, 1, None]:
        post = sw.marginals(field, "projection", tol=1e-6, dtype="float32", max_iter=max_iter)
        assert post.log_partition_lower - slack <= truth <= post.log_partition_upper + slack
        assert least - 1e-9 * abs(least) <= post.log_partition_upper
        assert post.bound <= least + slack
        assert post.converged or max_iter is not None


def test_what_is_told_on_the_way_in_single_precision_holds():
    rng = np.random.default_rng(0)
    for _ in range(40):
        field = sw.fields.Field(rng.normal(0.0, 100.0, (2, 4))) + sw.fields.LabelCost(
            rng.uniform(0.0, 10.0, 4)
        )
        told = []
        post = sw.marginals(
            field, "projection", dtype="float32", tol=0.0, max_iter=5, callback=told.append
        )
        log_z = sw.marginals(field, "elimination").log_partition_lower
        assert all(state.value >= log_z for state in told)
        assert min(post.history) >= log_z


@pytest.mark.parametrize("dtype", [np.float32, np.dtype("float32"), np.float64, np.dtype(float)])
def test_dtypes_come_by_name_or_as_numpys(dtype):
    post = sw.marginals(small_grid(), "projection", dtype=dtype)
    named = sw.marginals(small_grid(), "projection", dtype=np.dtype(dtype).name)
    assert post.probabilities.dtype == post.state.dtype == np.dtype(dtype)
    assert np.array_equal(post.probabilities, named.probabilities)


def test_energies_that_overflow_are_refused():
    strong = sw.fields.Field(np.zeros((2, 2))) + sw.fields.Potts([[0, 1]], 1e308)
    sentence = r"field must have energies that sum to at most 1\.8e\+300"
    with pytest.raises(ValueError, match=sentence):
        sw.marginals(strong)
    wide = sw.fields.Field([[0.0, 0.0], [0.0, 0.0]]) + sw.fields.Potts([[0, 1]], 1e35)
    with pytest.raises(ValueError, match=r"field must have energies .* in float32, got 1\.0e"):
        sw.marginals(wide, dtype="float32")
    cold = sw.marginals(sw.fields.Field([[0.0, 1.0]]), temperature=1e-299)
    assert cold.probabilities.tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("name", NAMES)
def test_no_energy_is_beyond_the_largest(name):
    field = of_seed(name, 3)
    energies = field._energies(reference.all_labelings(*field.unary.shape))
    assert np.abs(energies[np.isfinite(energies)]).max() <= largest_energy(field) * (1 + 1e-12)
