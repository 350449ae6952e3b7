"""The gradient of the upper bound, against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from marginals_cases import close, small_grid

import setwise as sw
from setwise.inference._marginals._counts._count_descent import CountDescent


def scaled(field: sw.fields.Field, k: int, factor: float) -> sw.fields.Field:
    """The field with the first Potts or region weight multiplied."""
    rebuilt = sw.fields.Field(field.unary)
    for place, potential in enumerate(field.potentials):
        times = factor if place == k else 1.0
        match potential:
            case sw.fields.Potts():
                rebuilt += sw.fields.Potts(potential.edges, potential.weights * times)
            case sw.fields.RegionConsistency():
                rebuilt += sw.fields.RegionConsistency(
                    potential.regions, potential.weight * times, potential.alpha
                )
            case sw.fields.LabelCost():
                rebuilt += sw.fields.LabelCost(potential.costs * times)
    return rebuilt


@pytest.mark.parametrize("temperature", [0.5, 1.0])
@pytest.mark.parametrize("method", ["projection", "trees", "elimination"])
def test_gradient_against_finite_differences(method, temperature):
    rng = np.random.default_rng(2)
    field = sw.fields.Field(rng.normal(size=(6, 3)))
    field += sw.fields.Potts(sw.fields.grid_edges((2, 3)), rng.uniform(0.1, 0.5, 7))
    field += sw.fields.RegionConsistency([0, 0, 0, 1, 1, 1], 0.5, 0.6)
    field += sw.fields.LabelCost([0.5, 1.0, 0.2])

    def upper(changed: sw.fields.Field) -> float:
        post = sw.marginals(changed, method, tol=1e-13, temperature=temperature)
        return post.log_partition_upper

    post = sw.marginals(field, method, tol=1e-13, temperature=temperature)
    gradient = sw.inference.log_partition_gradient(field, post)
    step = 1e-5
    for k in range(3):
        slope = (upper(scaled(field, k, 1 + step)) - upper(scaled(field, k, 1 - step))) / (2 * step)
        assert close(gradient.weights[k], slope, 1e-4)
    direction = rng.normal(size=(6, 3))
    rise = upper(field.with_unary(field.unary + step * direction))
    fall = upper(field.with_unary(field.unary - step * direction))
    assert close(float((gradient.unary * direction).sum()), (rise - fall) / (2 * step), 1e-4)


@pytest.mark.parametrize("pairs", [True, False])
def test_gradient_of_counts_against_finite_differences(pairs):
    """At the parts and shares that a result has: so of the function of fixed parts."""
    rng = np.random.default_rng(3)
    unary = rng.normal(size=(6, 2))

    def built(first: float, second: float, third: float) -> sw.fields.Field:
        field = sw.fields.Field(unary)
        field += sw.fields.RegionConsistency([0, 0, 0, 1, 1, 1], 0.5 * first, 0.6)
        table = second * np.array([0.0, -1.0, 2.0, 0.3, 1.0, 0.2, 0.0])
        if pairs:
            field += sw.fields.CardinalityPotential(np.array([0, 1, 0, 0, 1, 1]), table)
            field += sw.fields.Potts(sw.fields.grid_edges((2, 3)), 0.4 * third)
        return field

    def upper(weights: list[float]) -> float:
        field = built(*weights)
        if not pairs:
            return sw.marginals(field, "counts").log_partition_upper
        descent = CountDescent(field, 1.0, 1)
        descent.restore(post.state)
        descent.begin()
        descent.hold_parts()
        for _ in range(200):
            descent.sweep()
        return descent.value - descent.constant

    post = sw.marginals(built(1.0, 1.0, 1.0), "counts", tol=1e-10)
    gradient = sw.inference.log_partition_gradient(built(1.0, 1.0, 1.0), post)
    step = 1e-4
    for k in range(len(gradient.weights)):
        rise, fall = ([1.0 + s * (j == k) for j in range(3)] for s in (step, -step))
        assert close(gradient.weights[k], (upper(rise) - upper(fall)) / (2 * step), 1e-4)


@pytest.mark.parametrize("method", ["elimination", "counts", "trees", "projection"])
def test_a_constant_costs_the_gradient_no_digits(method):
    rng = np.random.default_rng(0)
    field = sw.fields.Field(rng.integers(-8, 8, (5, 2)) / 4)
    field += sw.fields.Potts([[0, 1], [1, 2], [2, 3], [3, 4]], 0.5)
    field += sw.fields.LabelCost([0.75, 1.5])
    raised = field.with_unary(field.unary + 2.0**50)  # all of them numbers
    weights, other = (
        sw.inference.log_partition_gradient(f, sw.marginals(f, method, tol=1e-10)).weights
        for f in (field, raised)
    )
    np.testing.assert_allclose(weights, other, rtol=1e-7)


def test_gradient_needs_an_upper_bound():
    field = small_grid()
    with pytest.raises(ValueError, match="result must have an upper bound, got one of mean_field"):
        sw.inference.log_partition_gradient(field, sw.marginals(field, "mean_field"))
    with pytest.raises(TypeError, match="result must be a MarginalsResult"):
        sw.inference.log_partition_gradient(field, 0.5)
    with pytest.raises(ValueError, match="result must be for a field of shape"):
        sw.inference.log_partition_gradient(small_grid(0, 2), sw.marginals(field))
