"""Marginals: log Z lies between the bounds, every method finds the same one, gaps bound errors."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from field_registry import FIELDS, of_seed
from field_terms import SUBMODULAR, random_field
from marginals_cases import CERTIFIED, METHODS, STARTED, UPPER, close, least_upper, small_grid

import setwise as sw
from setwise.inference._relaxation._relaxation import Relaxation

NAMES = sorted(FIELDS)
IS_SUBMODULAR = [name for name in NAMES if of_seed(name, 0).is_submodular]
BINARY = [name for name in IS_SUBMODULAR if of_seed(name, 0).n_labels == 2]
TEMPERATURES = [0.3, 1.0, 4.0]


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("name", NAMES)
def test_log_partition_lies_between_the_bounds(name, temperature):
    for seed in range(2):
        field = of_seed(name, seed)
        truth = reference.log_partition(field, temperature)
        slack = 1e-9 * max(1.0, abs(truth))
        for method in ["auto", "trees", "mean_field"]:
            if METHODS["trees"].obstacle(field) is not None and method == "trees":
                continue
            post = sw.marginals(field, method, temperature=temperature)
            assert post.log_partition_lower - slack <= truth <= post.log_partition_upper + slack
            assert post.width >= 0
            assert post.converged
            assert post.probabilities.shape == field.unary.shape
            np.testing.assert_allclose(post.probabilities.sum(axis=1), 1.0, atol=1e-12)
            assert (post.probabilities[np.isinf(field.unary)] == 0).all()
        assert (post.log_partition_upper, post.certified) == (np.inf, False)


@pytest.mark.parametrize("name", IS_SUBMODULAR)
def test_every_method_finds_the_same_upper_bound(name):
    field = of_seed(name, 1)
    post = sw.marginals(field, "projection", tol=1e-9)
    assert (post.method, post.certified) == ("projection", True)
    rough = sw.marginals(field, "frank_wolfe", tol=1e-3, max_iter=300)
    assert rough.log_partition_upper >= post.log_partition_upper - post.gap - 1e-9
    assert rough.log_partition_upper - rough.gap <= post.log_partition_upper + 1e-9


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("name", BINARY)
def test_cuts_find_the_minimiser_exactly(name, temperature):
    field = of_seed(name, 2)
    if name == "concave-cardinality":  # centers of both labels: no cut
        with pytest.raises(ValueError, match="CardinalityPotential"):
            sw.marginals(field, "exact_binary")
        return
    post = sw.marginals(field, "projection", tol=1e-11, temperature=temperature)
    exact = sw.marginals(field, "exact_binary", temperature=temperature)
    assert close(exact.log_partition_upper, post.log_partition_upper, 1e-9)
    np.testing.assert_allclose(exact.probabilities, post.probabilities, atol=1e-5)
    assert exact.relative_gap <= 1e-10
    assert exact.converged


@pytest.mark.parametrize("center", [0, 1])
def test_cuts_take_cardinalities_and_label_costs(center):
    rng = np.random.default_rng(center)
    table = np.cumsum(np.r_[0.3, np.sort(rng.normal(size=7))[::-1]])
    field = sw.fields.Field(rng.normal(size=(7, 2)))
    field += sw.fields.CardinalityPotential(np.full(7, center), table)
    field += sw.fields.LabelCost([0.7, 1.9])
    exact = sw.marginals(field, "exact_binary")
    post = sw.marginals(field, "projection", tol=1e-11)
    assert close(exact.log_partition_upper, post.log_partition_upper)


@pytest.mark.parametrize("method", CERTIFIED)
@pytest.mark.parametrize("seed", range(3))
def test_the_gap_bounds_the_error(method, seed):
    field = small_grid(seed, 2)
    least = least_upper(field, method)
    for max_iter in [0, 1, 3, 10]:
        post = sw.marginals(field, method, tol=0.0, max_iter=max_iter)
        assert post.gap >= 0
        assert -1e-9 <= post.log_partition_upper - least <= post.gap + 1e-9
        assert post.bound <= least + 1e-9
        assert post.relative_gap <= post.gap + 1e-15


@pytest.mark.parametrize("seed", range(20))
def test_random_terms(seed):
    field = random_field(SUBMODULAR, 5, 3, seed, forbidden=0.2)
    labelings = reference.all_labelings(5, 3)
    truth = float(np.logaddexp.reduce(-field._energies(labelings)))
    post = sw.marginals(field, "projection", tol=1e-9)
    assert post.log_partition_lower - 1e-9 <= truth <= post.log_partition_upper + 1e-9
    dual = post.entropy.sum() - extension(field, post.probabilities)
    assert close(dual, post.log_partition_upper, 1e-7)


def extension(field: sw.fields.Field, p: np.ndarray) -> float:
    relaxation = Relaxation(field)
    finite = np.where(p > 0, relaxation.unary, 0.0)
    return relaxation.constant + float((finite * p).sum()) + relaxation.extension(p)


def test_shifting_the_unaries_changes_nothing_but_log_partition():
    field = small_grid()
    shift = np.random.default_rng(5).normal(0.0, 100.0, 30)
    post = sw.marginals(field)
    moved = sw.marginals(field.with_unary(field.unary + shift[:, None]))
    assert moved.n_iter == post.n_iter
    np.testing.assert_allclose(moved.probabilities, post.probabilities, atol=1e-9)
    assert close(moved.relative_gap, post.relative_gap, 1e-6)
    assert close(moved.log_partition_upper, post.log_partition_upper - shift.sum())


def test_temperature_divides_the_energy():
    field = small_grid()
    halved = sw.fields.Field(field.unary / 2)
    halved += sw.fields.Potts(sw.fields.grid_edges((5, 6)), 0.2)
    halved += sw.fields.RegionConsistency(np.arange(30) // 5, 0.25, 0.7)
    for method in STARTED:
        hot = sw.marginals(field, method, temperature=2.0, max_iter=20)
        cold = sw.marginals(halved, method, max_iter=20)
        np.testing.assert_allclose(hot.probabilities, cold.probabilities, atol=1e-9)
        assert hot.n_iter == cold.n_iter
        assert close(hot.log_partition_lower, cold.log_partition_lower, 1e-6)
        if METHODS[method].gives_bound:
            assert close(hot.log_partition_upper, cold.log_partition_upper)
            assert close(hot.relative_gap, cold.relative_gap, 1e-6)


def test_history_never_rises_and_ends_at_the_bound():
    post = sw.marginals(small_grid(), tol=1e-8)
    assert (np.diff(post.history) <= 1e-9).all()
    assert post.history[-1] == post.log_partition_upper == post.value


@pytest.mark.parametrize("method", UPPER)
def test_numbers_are_those_of_python_and_zero_has_no_sign(method):
    for field in [sw.fields.Field([[0.0, 1.0]]), of_seed("segmentation", 0)]:
        post = sw.marginals(field, method)
        numbers = (post.log_partition_upper, post.log_partition_lower, post.gap, post.relative_gap)
        assert {type(number) for number in numbers} == {float}
        assert not np.signbit([post.gap, post.relative_gap, post.width]).any()


def glass(coupling: float, side: int = 24) -> sw.fields.Field:
    """A grid whose pairs want to agree or to differ, at random, and unaries that say little."""
    rng = np.random.default_rng(0)
    edges = sw.fields.grid_edges((side, side))
    tables = coupling * rng.normal(size=(len(edges), 1, 1)) * (1.0 - np.eye(2))
    field = sw.fields.Field(0.1 * rng.normal(size=(side * side, 2)))
    return field + sw.fields.Pairwise(edges, tables)


def test_a_wide_interval_is_warned_of_and_comes_first_in_the_repr():
    """A quarter of N log 2 is the rule; what was asked for by name is not warned of."""
    with pytest.warns(UserWarning, match="trees knows log Z within .* nats only") as caught:
        post = sw.marginals(glass(4.0))
    assert caught[0].filename == __file__
    assert (post.converged, post.certified, post.exact) == (True, True, False)
    assert post.width > 0.25 * 576 * np.log(2.0)
    assert repr(post).startswith(f"MarginalsResult(width={post.width:.6g}, log_partition_lower=")
    assert len(repr(post)) < 300
    assert sw.marginals(glass(4.0), "trees").width == post.width
    assert sw.marginals(glass(1.0)).width < 0.25 * 576 * np.log(2.0)


def test_an_interval_that_says_nothing_is_closed_by_elimination_where_it_is_affordable():
    field = glass(4.0, 16)
    post, loose = sw.marginals(field), sw.marginals(field, "trees")
    assert loose.total_variation == 1.0
    assert (post.method, post.exact, post.converged) == ("elimination", True, True)
    assert post.reason.startswith("trees left an interval of ")
    assert loose.log_partition_lower <= post.log_partition_upper <= loose.log_partition_upper
    assert post.of == "the field itself: they are exact"
    with pytest.warns(UserWarning, match="trees knows log Z within"):  # a start is continued
        assert sw.marginals(field, init=loose).method == "trees"


@pytest.mark.parametrize("name", FIELDS)
def test_exact_marginals_say_so(name):
    field = of_seed(name, 0)
    for constant in (0.0, 1e6):
        assert sw.marginals(field.with_unary(field.unary + constant), "elimination").exact
    alone = sw.marginals(sw.fields.Field(field.unary))
    assert alone.exact
    np.testing.assert_allclose(
        alone.probabilities, reference.exact_marginals(sw.fields.Field(field.unary), 1.0), atol=1e-9
    )
    for method in ("mean_field", "perturb"):
        assert not sw.marginals(field, method, rng=0, max_iter=3).exact
    if name == "potts-on-three-labels":
        assert not sw.marginals(field, "projection").exact


@pytest.mark.parametrize("size", [1e9, 1e20])
@pytest.mark.parametrize("what", ["constant", "price", "cost"])
def test_large_numbers_excuse_no_interval(what, size):
    """Neither what all labellings pay nor what none pays makes an interval one of rounding."""
    rng = np.random.default_rng(0)
    unary = rng.normal(size=(6, 3))
    field = sw.fields.Field(unary) + sw.fields.Potts(sw.fields.grid_edges((2, 3)), 1.0)
    if what == "constant":
        field = field.with_unary(unary + size)
    elif what == "price":
        unary[2, 1] += size
        field = field.with_unary(unary)
    else:
        field += sw.fields.LabelCost(size, labels=[0, 1, 2])
    for method in ("trees", "projection", "frank_wolfe"):
        assert not sw.marginals(field, method, max_iter=2).exact
    post = sw.marginals(field, "elimination", time_limit=0.0)
    assert not post.exact
    assert sw.marginals(field, "elimination").exact
