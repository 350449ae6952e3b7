"""Labels that an infinite unary forbids, beside potentials that would give much to have them."""

import re

import field_registry
import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from setwise import marginals, solve_map
from setwise.fields import CardinalityPotential, Field
from setwise.inference._conditioning._magnitude import largest_energy
from setwise.inference._map._methods import METHODS as SEARCHES
from setwise.inference._marginals._methods import METHODS as MARGINALS

DTYPES = ("float64", "float32")
REFUSAL = re.compile(r"\b(must|needs|cannot)\b")


def strong_field(name, seed, strength):
    """A field of the registry, its potentials times ``strength``: (field, temperature).

    The temperature is 1 / strength and the unaries are in its unit, with as many forbidden labels
    as leave one or more a variable.
    """
    field, rng = field_registry.of_seed(name, seed), np.random.default_rng(seed)
    n, n_labels = field.unary.shape
    forbidden = rng.random((n, n_labels)) < 0.45
    if n_labels:
        forbidden[np.arange(n), rng.integers(0, n_labels, n)] = False
    unary = np.where(np.isfinite(field.unary), field.unary, 1.0) / strength
    return field.with_unary(np.where(forbidden, np.inf, unary)), 1.0 / strength


def taken(call):
    """The answer, or None where a method says in a sentence that it cannot take the field."""
    try:
        return call()
    except ValueError as refusal:
        if not REFUSAL.search(str(refusal)):
            raise
        return None


def assert_marginals(field, t, method, truth=None, **options):
    """A forbidden label has probability 0, and log Z lies between the bounds."""
    post = taken(lambda: marginals(field, method, temperature=t, rng=0, **options))
    if post is None:
        return
    assert not post.probabilities[np.isinf(field.unary)].any()
    truth = reference.log_partition(field, t) if truth is None else truth
    # A sum of numbers of this size is rounded, whatever it sums to.
    slack = 1e-13 * (1.0 + largest_energy(field) / t)
    assert post.log_partition_lower <= truth + slack
    if MARGINALS[method].certified:  # that of perturb holds in expectation
        assert truth <= post.log_partition_upper + slack


def assert_search(field, method, **options):
    """No forbidden label is found, and the least energy lies between bound and value."""
    best = taken(lambda: solve_map(field, method, **options))
    if best is None:
        return
    assert np.isfinite(field.unary[np.arange(field.n_variables), best.labels]).all()
    least, slack = reference.least_energy(field), 1e-13 * largest_energy(field)
    assert best.bound <= least + slack
    assert least <= best.value + slack


names = st.sampled_from(sorted(field_registry.FIELDS))
seeds = st.integers(0, 2**32 - 1)
decades = st.floats(2.0, 6.0)


@given(names, seeds, decades, st.sampled_from(sorted(MARGINALS)), st.sampled_from(DTYPES))
def test_marginals_of_forbidden_labels(name, seed, height, method, dtype):
    assert_marginals(*strong_field(name, seed, 10.0**height), method, max_iter=4, dtype=dtype)


@given(names, seeds, decades, st.sampled_from(sorted(SEARCHES)))
def test_searches_with_forbidden_labels(name, seed, height, method):
    assert_search(strong_field(name, seed, 10.0**height)[0], method, max_iter=4)


@pytest.mark.parametrize("name", field_registry.FIELDS)
def test_every_relaxation_of_a_field_with_forbidden_labels(name):
    field, t = strong_field(name, 0, 1e4)
    truth = reference.log_partition(field, t)
    for method in (name for name, record in MARGINALS.items() if record.certified):
        assert_marginals(field, t, method, truth, max_iter=2)


@pytest.mark.parametrize("method", ["auto", "projection", "frank_wolfe"])
def test_a_strong_cardinality_does_not_buy_a_forbidden_label(method):
    unary = [[np.inf, np.inf, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    table = 1e4 * np.sqrt(np.arange(4.0))
    field = Field(unary) + CardinalityPotential([0, 0, 0], table)
    post = marginals(field, method)
    assert post.probabilities[0].tolist() == [0.0, 0.0, 1.0]
    truth = reference.log_partition(field)
    assert truth == pytest.approx(-1e4)
    assert post.log_partition_lower <= truth + 1e-9
    assert truth - 1e-9 <= post.log_partition_upper
