"""Perturb-and-MAP: the expected maximum is at least log Z, and is it for unaries alone."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from field_registry import of_seed

import setwise as sw
from setwise.inference._marginals import _perturb


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_unaries_alone_are_sampled_exactly(temperature):
    field = of_seed("unaries-alone", 0)
    options = {"temperature": temperature, "rng": 0, "tol": 0.0, "max_iter": 600}
    post = sw.marginals(field, "perturb", **options)
    truth = reference.log_partition(field, temperature)
    assert abs(post.log_partition_upper - post.gap - truth) <= 1.5 * post.gap
    exact = reference.exact_marginals(field, temperature)
    np.testing.assert_allclose(post.probabilities, exact, atol=0.08)


@pytest.mark.parametrize(
    "name",
    [
        "potts-on-two-labels",
        "segmentation",
        "concave-cardinality",
        "forbidden-labels-on-two-labels",
        "potts-on-three-labels",
        "any-tables-on-three-labels",
        "label-transitions",
    ],
)
def test_the_expected_maximum_bounds_log_partition(name):
    field = of_seed(name, 0)
    post = sw.marginals(field, "perturb", rng=1, max_iter=60, tol=0.0)
    truth = reference.log_partition(field)
    assert post.log_partition_lower <= truth <= post.log_partition_upper
    assert post.certified is False
    assert post.n_iter == len(post.history) == 60
    np.testing.assert_allclose(post.probabilities.sum(axis=1), 1.0)
    assert (post.probabilities[np.isinf(field.unary)] == 0).all()


def test_cuts_find_what_the_search_does():
    """The graph that is kept, against a fresh minimum for each sample."""
    field = of_seed("segmentation", 3)
    post = sw.marginals(field, "perturb", rng=5, max_iter=12, tol=0.0)
    random = np.random.default_rng(5)
    for sample in post.history:
        noise = random.gumbel(-np.euler_gamma, 1.0, field.unary.shape)
        best = sw.solve_map(field.with_unary(field.unary - noise))
        assert sample == pytest.approx(-best.value, abs=1e-9)


def test_randomness_and_the_end_of_sampling():
    field = of_seed("potts-on-two-labels", 0)
    one = sw.marginals(field, "perturb", rng=7, n_jobs=1)
    two = sw.marginals(field, "perturb", rng=7, n_jobs=3)
    assert one.history == two.history
    assert one.history != sw.marginals(field, "perturb", rng=8).history
    loose = sw.marginals(field, "perturb", rng=7, tol=10.0)
    assert (loose.n_iter, loose.converged) == (10, True)
    with pytest.raises(TypeError, match="rng must be None, an integer"):
        sw.marginals(field, "perturb", rng="seed")
    with pytest.raises(ValueError, match="init must be None for perturb"):
        sw.marginals(field, "perturb", init=one)


@pytest.mark.parametrize("max_iter", [2, 10])
def test_the_interval_of_a_few_samples_covers_log_partition(max_iter):
    """Of unaries alone, which the mean is log Z of: 99 of 100 times, and two prove nothing."""
    field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0]])
    log_z = sw.marginals(field).log_partition_lower
    found = [sw.marginals(field, "perturb", rng=k, max_iter=max_iter, tol=0.1) for k in range(300)]
    assert sum(post.log_partition_upper < log_z for post in found) <= 9
    assert max_iter == 10 or not any(post.converged for post in found)


def test_an_interval_that_failed_is_no_certainty():
    """Samples whose interval ends below the lower bound, which is proved, know no upper bound."""
    field = sw.fields.Field([[4.0, 2.0], [2.0, 3.0], [-3.0, 1.0]])
    field += sw.fields.Potts([[0, 1], [1, 2]], 1.5)
    truth = reference.log_partition(field)
    failed = 0
    for seed in range(60):
        post = sw.marginals(field, "perturb", rng=seed, max_iter=10)
        assert post.log_partition_lower <= min(post.log_partition_upper, truth)
        assert min(post.width, post.total_variation) > 0.0
        if post.log_partition_upper == np.inf:
            failed += 1
            assert np.mean(post.history) < post.log_partition_lower
            assert "no upper bound is known" in post.reason
            assert (post.converged, post.gap, post.total_variation) == (False, np.inf, 1.0)
    assert 1 <= failed <= 6  # the seed 4 among them


def test_an_interrupted_search_is_no_sample(monkeypatch):
    """Ctrl-C within ``solve_map``, which returns with a weak bound."""
    field = of_seed("potts-on-three-labels", 0)
    options = {"rng": 3, "tol": 0.0, "max_iter": 8}
    whole = sw.marginals(field, "perturb", **options)
    calls: list[int] = []

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    def search(*args: object, **kwargs: object) -> object:
        calls.append(1)
        if len(calls) == 4:
            kwargs |= {"method": "expansion", "callback": stop}
        return sw.solve_map(*args, **kwargs)

    monkeypatch.setattr(_perturb, "solve_map", search)
    post = sw.marginals(field, "perturb", **options)
    assert (post.interrupted, post.n_iter, len(calls)) == (True, 3, 4)
    assert post.history == whole.history[:3]
    calls[:] = [1, 1, 1]
    with pytest.raises(KeyboardInterrupt):
        sw.marginals(field, "perturb", **options)
