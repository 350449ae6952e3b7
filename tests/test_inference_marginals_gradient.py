"""The gradient of the upper bound, against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from marginals_cases import close, small_grid

import setwise as sw


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


def test_gradient_needs_an_upper_bound():
    field = small_grid()
    with pytest.raises(ValueError, match="result must have an upper bound, got one of mean_field"):
        sw.inference.log_partition_gradient(field, sw.marginals(field, "mean_field"))
    with pytest.raises(TypeError, match="result must be a MarginalsResult"):
        sw.inference.log_partition_gradient(field, 0.5)
    with pytest.raises(ValueError, match="result must be for a field of shape"):
        sw.inference.log_partition_gradient(small_grid(0, 2), sw.marginals(field))
