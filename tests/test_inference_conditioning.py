"""Pairs with label costs, by conditioning on the labels that are used."""

from fractions import Fraction

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

import setwise as sw
from setwise.fields import Field, LabelCost, Pairwise, Potts, grid_edges
from setwise.inference._map._branching import _conditioning


def random_field(seed, shape=(2, 3), n_labels=4, *, whole=False):
    """Potts and tables on a grid, costs of single labels and of a group."""
    rng = np.random.default_rng(seed)

    def draw(*sides):
        return rng.integers(-4, 5, sides).astype(float) if whole else rng.normal(size=sides)

    n, edges = shape[0] * shape[1], grid_edges(shape)
    unary = 3.0 * draw(n, n_labels)
    unary[rng.random(unary.shape) < 0.1] = np.inf
    unary[np.arange(n), rng.integers(0, n_labels, n)] = 0.0
    field = Field(unary) + Potts(edges, np.abs(draw(len(edges))))
    if rng.random() < 0.3:
        field += Pairwise(edges[:2], draw(2, n_labels, n_labels))
    field += LabelCost(3.0 * np.abs(draw(n_labels)))
    return field + LabelCost(2.0, [0, 1])


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_it_is_enumeration(seed, whole):
    field = random_field(seed, whole=whole)
    labelings = np.ascontiguousarray(reference.all_labelings(*field.unary.shape))
    least = field._energies(labelings).min()
    for method in ("conditioning", "auto"):
        best = sw.solve_map(field, method)
        assert best.bound <= least + 1e-12 <= best.value + 2e-12
        assert best.exact
        assert best.value == field.energy(best.labels) == pytest.approx(least, abs=1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_every_round_has_a_true_bound(seed, monkeypatch):
    """Without prices there are many open problems; whatever ends the search, bounds hold."""
    monkeypatch.setattr(_conditioning, "_ROUNDS", 1)
    monkeypatch.setattr(
        _conditioning._Conditioning, "_placed", lambda self, k, labels: np.zeros(len(labels))
    )
    field = random_field(seed, (2, 4), 3, whole=True)
    labelings = np.ascontiguousarray(reference.all_labelings(*field.unary.shape))
    least = field._energies(labelings).min()
    full = sw.solve_map(field, "conditioning")
    assert full.exact
    assert full.value == least
    bounds = []
    for rounds in range(full.n_iter + 1):
        early = sw.solve_map(field, "conditioning", max_iter=rounds)
        assert early.bound <= least <= early.value
        bounds.append(early.bound)
    assert bounds == sorted(bounds)
    late = sw.solve_map(field, "conditioning", time_limit=0.0)
    assert late.bound <= least


@given(st.integers(0, 2**32 - 1))
def test_prices_never_exceed_the_cost(seed):
    rng = np.random.default_rng(seed)
    field = random_field(seed)
    options = _conditioning.MapOptions.read(field)
    search = _conditioning._Conditioning(field, options)
    for k, group in enumerate(search._groups):
        noise = rng.exponential(3.0, field.unary.shape)
        prices = search._placed(k, (field.unary + noise).argmin(axis=1))
        assert prices.min() >= 0.0
        assert sum(map(Fraction, prices)) <= Fraction(group.cost)


def test_without_label_costs_it_is_windows():
    field = Field(np.random.default_rng(0).normal(size=(12, 3))) + Potts(grid_edges((3, 4)), 1.0)
    one, other = (sw.solve_map(field, method) for method in ("conditioning", "windows"))
    assert one.exact
    assert one.value == other.value
    region = field + sw.fields.RegionConsistency([0] * 12, 1.0, 0.5)
    with pytest.raises(ValueError, match=r"conditioning cannot take RegionConsistency\("):
        sw.solve_map(region, "conditioning")
