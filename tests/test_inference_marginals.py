"""Marginals: log Z lies between the bounds, every method finds the same one, gaps bound errors."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import CancelledError

import numpy as np
import pytest
import reference
from field_registry import FIELDS, of_seed
from field_terms import SUBMODULAR, random_field

import setwise as sw
from setwise.inference._map._largest_energy import largest_energy
from setwise.inference._marginals import _batch as _marginals_batch
from setwise.inference._relaxation._relaxation import Relaxation

UPPER = ["projection", "frank_wolfe", "line_search_frank_wolfe", "pairwise_frank_wolfe"]
NAMES = sorted(FIELDS)
IS_SUBMODULAR = [name for name in NAMES if of_seed(name, 0).is_submodular]
BINARY = [name for name in IS_SUBMODULAR if of_seed(name, 0).n_labels == 2]
TEMPERATURES = [0.3, 1.0, 4.0]


def close(value: float, other: float, slack: float = 1e-9) -> bool:
    return abs(value - other) <= slack * max(1.0, abs(other))


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def small_grid(seed: int = 0, n_labels: int = 3) -> sw.fields.Field:
    rng = np.random.default_rng(seed)
    field = sw.fields.Field(rng.normal(size=(30, n_labels)))
    field += sw.fields.Potts(sw.fields.grid_edges((5, 6)), 0.4)
    return field + sw.fields.RegionConsistency(np.arange(30) // 5, 0.5, 0.7)


# ------------------------------------------------------------------------------------------- bounds


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("name", NAMES)
def test_log_partition_lies_between_the_bounds(name, temperature):
    for seed in range(2):
        field = of_seed(name, seed)
        truth = reference.log_partition(field, temperature)
        slack = 1e-9 * max(1.0, abs(truth))
        for method in ["auto", "mean_field"]:
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
    other = sw.marginals(field, "pairwise_frank_wolfe", tol=1e-7)
    assert (post.method, post.certified) == ("projection", True)
    assert close(other.log_partition_upper, post.log_partition_upper, 1e-6)
    for method in ["frank_wolfe", "line_search_frank_wolfe"]:
        rough = sw.marginals(field, method, tol=1e-3, max_iter=300)
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


@pytest.mark.parametrize("method", [*UPPER, "exact_binary"])
@pytest.mark.parametrize("seed", range(3))
def test_the_gap_bounds_the_error(method, seed):
    field = small_grid(seed, 2)
    least = sw.marginals(field, "projection", tol=1e-12).log_partition_upper
    for max_iter in [0, 1, 3, 10]:
        post = sw.marginals(field, method, tol=0.0, max_iter=max_iter)
        assert post.gap >= 0
        assert -1e-9 <= post.log_partition_upper - least <= post.gap + 1e-9
        assert post.bound <= least + 1e-9
        assert post.relative_gap <= post.gap + 1e-15


@pytest.mark.parametrize("seed", range(20))
def test_random_terms(seed):
    field = random_field(SUBMODULAR, 5, 3, seed, forbidden=0.2)
    labellings = reference.all_labellings(5, 3)
    truth = float(np.logaddexp.reduce(-field._energies(labellings)))
    post = sw.marginals(field, tol=1e-9)
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
    for method in [*UPPER, "mean_field"]:
        hot = sw.marginals(field, method, temperature=2.0, max_iter=20)
        cold = sw.marginals(halved, method, max_iter=20)
        np.testing.assert_allclose(hot.probabilities, cold.probabilities, atol=1e-9)
        assert hot.n_iter == cold.n_iter
        assert close(hot.log_partition_lower, cold.log_partition_lower, 1e-6)
        if method != "mean_field":
            assert close(hot.log_partition_upper, cold.log_partition_upper)
            assert close(hot.relative_gap, cold.relative_gap, 1e-6)


# --------------------------------------------------------------------------------- starts, threads


def test_history_never_rises_and_ends_at_the_bound():
    post = sw.marginals(small_grid(), tol=1e-8)
    assert (np.diff(post.history) <= 1e-9).all()
    assert post.history[-1] == post.log_partition_upper == post.value


def test_warm_start_goes_on():
    field = small_grid()
    post = sw.marginals(field, tol=1e-9)
    again = sw.marginals(field, tol=1e-9, warm_start=post)
    assert again.n_iter == 1
    assert close(again.log_partition_upper, post.log_partition_upper)
    near = field.with_unary(field.unary + 0.01)
    assert sw.marginals(near, tol=1e-9, warm_start=post).n_iter < post.n_iter
    for method in ["mean_field", "frank_wolfe", "pairwise_frank_wolfe"]:
        assert sw.marginals(field, method, warm_start=post, max_iter=50).n_iter >= 0


def test_a_warm_start_from_other_weights_is_no_less_a_bound():
    rng = np.random.default_rng(0)
    unary = rng.normal(size=(9, 3))
    edges = sw.fields.grid_edges((3, 3))
    strong = sw.fields.Field(unary) + sw.fields.Potts(edges, 5.0)
    weak = sw.fields.Field(unary) + sw.fields.Potts(edges, 0.01)
    post = sw.marginals(weak, tol=1e-2, max_iter=0, warm_start=sw.marginals(strong, tol=1e-9))
    least = sw.marginals(weak, tol=1e-12).log_partition_upper
    assert -1e-9 <= post.log_partition_upper - least <= post.gap + 1e-9


@pytest.mark.parametrize("method", [*UPPER, "mean_field"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_threads_do_not_change_a_bit(method, dtype):
    rng = np.random.default_rng(1)
    field = sw.fields.Field(rng.normal(size=(60 * 70, 4)))
    field += sw.fields.Potts(sw.fields.grid_edges((60, 70)), 0.5)
    field += sw.fields.RegionConsistency(rng.integers(0, 40, 4200), 1.0, 0.8)
    field += sw.fields.LabelCost([3.0, 2.0, 1.0, 5.0])
    one = sw.marginals(field, method, n_jobs=1, max_iter=4, dtype=dtype)
    for n_jobs in [2, 3]:
        many = sw.marginals(field, method, n_jobs=n_jobs, max_iter=4, dtype=dtype)
        assert np.array_equal(one.probabilities, many.probabilities)
        assert one.log_partition_lower == many.log_partition_lower
        assert (one.log_partition_upper, one.gap) == (many.log_partition_upper, many.gap)
        assert one.history == many.history


def test_single_precision_agrees():
    field = small_grid()
    double = sw.marginals(field, tol=1e-9)
    single = sw.marginals(field, tol=1e-6, dtype="float32")
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
    truth = float(np.logaddexp.reduce(-field._energies(reference.all_labellings(5, 3))))
    slack = 1e-12 * max(1.0, largest_energy(field))
    least = sw.marginals(field, tol=1e-10).log_partition_upper
    for max_iter in [0, 1, None]:
        post = sw.marginals(field, tol=1e-6, dtype="float32", max_iter=max_iter)
        assert post.log_partition_lower - slack <= truth <= post.log_partition_upper + slack
        assert least - 1e-9 * abs(least) <= post.log_partition_upper
        assert post.bound <= least + slack
        assert post.converged or max_iter is not None


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_one_label_needs_no_warm_start(dtype):
    field = sw.fields.Field([[0.1], [0.7], [0.3]])
    region = np.zeros(3, int)
    strong = field + sw.fields.RegionConsistency(region, 5.3, 0.7)
    weak = field + sw.fields.RegionConsistency(region, 0.1, 0.7)
    post = sw.marginals(weak, "projection", dtype=dtype, warm_start=sw.marginals(strong))
    assert close(post.log_partition_upper, -weak.energy([0, 0, 0]), 1e-14)


def test_levels_of_cuts_are_reported_and_bound_wherever_they_end():
    for seed in range(8):
        rng = np.random.default_rng(seed)
        field = sw.fields.Field(rng.normal(size=(9, 2)))
        field += sw.fields.Potts(sw.fields.grid_edges((3, 3)), rng.uniform(0, 0.5))
        field += sw.fields.RegionConsistency(np.arange(9) // 4, 1.0, 0.6)
        field += sw.fields.LabelCost([0.7, 1.9])
        truth = reference.log_partition(field)
        seen: list[float] = []
        whole = sw.marginals(field, "exact_binary", callback=lambda now: seen.append(now.value))  # noqa: B023
        assert seen == whole.history
        assert len(seen) == whole.n_iter
        for k in range(1, whole.n_iter):
            post = sw.marginals(field, "exact_binary", callback=lambda now, k=k: now.n_iter == k)
            assert (post.interrupted, post.n_iter) == (True, k)
            assert truth <= post.log_partition_upper == seen[k - 1]
            assert post.bound <= whole.log_partition_upper + 1e-9
            assert whole.log_partition_upper <= post.log_partition_upper + 1e-9


def interrupted_at(call: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """``marginals_batch`` where Ctrl-C comes in the first pass of a field; the calls so far."""
    calls: list[int] = []

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    def one(field: sw.fields.Field, *args: object, **kwargs: object) -> object:
        calls.append(len(calls))
        if len(calls) == call:
            kwargs["callback"] = stop
        return sw.marginals(field, *args, **kwargs)

    monkeypatch.setattr(_marginals_batch, "marginals", one)
    return calls


def test_an_interrupt_ends_a_batch(monkeypatch):
    calls = interrupted_at(2, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        sw.inference.marginals_batch([small_grid()] * 5, n_jobs=1)
    assert len(calls) == 2


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals to a thread are POSIX's")
def test_an_interrupt_ends_the_threads_of_a_batch(monkeypatch):
    calls: list[int] = []
    ended = threading.Semaphore(0)

    def one(field: sw.fields.Field, *args: object, **kwargs: object) -> object:
        calls.append(1)
        if len(calls) == 2:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        forever = {**kwargs, "tol": 0.0, "max_iter": 10**9}
        try:
            return sw.marginals(field, "frank_wolfe", **forever)
        except CancelledError:
            ended.release()
            raise

    monkeypatch.setattr(_marginals_batch, "marginals", one)
    with pytest.raises(KeyboardInterrupt):
        sw.inference.marginals_batch([small_grid()] * 6, n_jobs=2)
    assert all(ended.acquire(timeout=60) for _ in range(2))
    assert len(calls) == 2


@pytest.mark.parametrize("method", ["auto", "exact_binary", "mean_field"])
def test_a_batch_is_its_single_fields(method):
    batch = [small_grid(seed, 2) for seed in range(5)]
    for n_jobs in [1, 3]:
        results = sw.inference.marginals_batch(batch, method, n_jobs=n_jobs)
        for field, post in zip(batch, results, strict=True):
            alone = sw.marginals(field, method)
            assert np.array_equal(alone.probabilities, post.probabilities)
            assert alone.log_partition_upper == post.log_partition_upper
    assert sw.inference.marginals_batch([]) == []


def test_callbacks_see_each_pass_and_end_it():
    seen = []
    post = sw.marginals(
        small_grid(), tol=1e-12, callback=lambda now: seen.append(now) or len(seen) == 3
    )
    assert (post.interrupted, post.n_iter) == (True, 3)
    assert [now.n_iter for now in seen] == [1, 2, 3]
    for method in [*UPPER, "mean_field"]:
        post = sw.marginals(small_grid(), method, tol=1e-12, callback=lambda _: np.True_)
        assert (post.interrupted, post.n_iter) == (True, 1)
        assert np.isfinite(post.log_partition_lower)


@pytest.mark.parametrize("method", [*UPPER, "exact_binary", "mean_field", "perturb"])
def test_an_interrupt_returns_what_there_is(method):
    def stop(now: sw.inference.MarginalsProgress) -> None:
        if now.n_iter == 2:
            raise KeyboardInterrupt

    field = small_grid(0, 2)
    post = sw.marginals(field, method, tol=0.0, callback=stop, random_state=0)
    assert (post.interrupted, post.converged, post.n_iter) == (True, False, 2)
    least = sw.marginals(field, "exact_binary")
    assert post.log_partition_lower <= least.log_partition_upper
    if post.certified:
        assert post.log_partition_upper >= least.log_partition_upper - 1e-9


# ------------------------------------------------------------------------------------------ corners


@pytest.mark.parametrize("method", [*UPPER, "mean_field", "belief_propagation", "perturb"])
def test_no_variables_and_one_label(method):
    nothing = sw.marginals(sw.fields.Field(np.zeros((0, 3))), method)
    assert nothing.probabilities.shape == (0, 3)
    assert nothing.log_partition_lower == 0
    field = sw.fields.Field([[1.5], [-0.5]]) + sw.fields.Potts([[0, 1]], 1.0)
    single = sw.marginals(field, method)
    assert single.probabilities.tolist() == [[1.0], [1.0]]
    assert close(single.log_partition_lower, -1.0)
    assert (single.entropy.tolist(), single.labels.tolist()) == ([0.0, 0.0], [0, 0])


def test_what_a_method_cannot_take_is_refused_in_one_sentence():
    robust = of_seed("robust-pn-beyond-half", 0)
    for method in [*UPPER]:
        with pytest.raises(ValueError, match="got RobustPn, which is not"):
            sw.marginals(robust, method)
    assert sw.marginals(robust).method == "mean_field"
    assert "RobustPn is not submodular" in sw.marginals(robust).reason
    with pytest.raises(ValueError, match="got RobustPn, which joins more"):
        sw.marginals(robust, "belief_propagation")
    with pytest.raises(ValueError, match="two labels"):
        sw.marginals(small_grid(), "exact_binary")
    wide = sw.fields.Field(np.zeros((4000, 2)))
    wide += sw.fields.RegionConsistency(np.zeros(4000, int), 1.0, 0.5)
    with pytest.raises(ValueError, match=r"4000000 auxiliary arcs .* RegionConsistency"):
        sw.marginals(wide, "exact_binary")


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"method": "magic"}, ValueError, "method must be one of 'auto', 'projection'"),
        ({"tol": -1.0}, ValueError, "tol must not be negative"),
        ({"tol": "low"}, TypeError, "tol must be a real number"),
        ({"max_iter": 1.5}, TypeError, "max_iter must be an integer"),
        ({"temperature": 0.0}, ValueError, "temperature must be positive"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0, got 0"),
        ({"dtype": "float16"}, ValueError, "dtype must be 'float64' or 'float32'"),
        ({"warm_start": 3}, TypeError, "warm_start must be a MarginalsResult"),
        ({"method": ["cut"]}, TypeError, "method must be a string, got list"),
        ({"method": np.zeros(2)}, TypeError, "method must be a string, got ndarray"),
        ({"tol": np.zeros(2)}, TypeError, "tol must be a real number, got ndarray"),
        ({"dtype": np.zeros(2)}, TypeError, "dtype must be a string or a numpy dtype, got ndarray"),
        ({"dtype": None}, TypeError, "dtype must be a string or a numpy dtype, got NoneType"),
        ({"dtype": np.int32}, ValueError, "dtype must be 'float64' or 'float32'"),
        ({"random_state": "abc"}, TypeError, "random_state must be None, an integer"),
        ({"random_state": np.nan}, TypeError, "random_state must be None, an integer"),
        ({"random_state": {}}, TypeError, "random_state must be None, an integer"),
        ({"temperature": 5e-324}, ValueError, "temperature must be at least .* in float64 for en"),
        ({"temperature": 1e308}, ValueError, "temperature must be at most"),
        ({"temperature": 1e-35, "dtype": "float32"}, ValueError, "temperature must be at least"),
    ],
)
def test_bad_arguments(arguments, error, match):
    with pytest.raises(error, match=match):
        sw.marginals(small_grid(), **arguments)


def test_bad_warm_starts_and_fields():
    field = small_grid()
    post = sw.marginals(field)
    with pytest.raises(TypeError, match="field must be a Field"):
        sw.marginals(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="warm_start must be a result of projection"):
        sw.marginals(field, "projection", warm_start=sw.marginals(field, "mean_field"))
    with pytest.raises(ValueError, match="warm_start must be None for exact_binary"):
        sw.marginals(small_grid(0, 2), "exact_binary", warm_start=post)
    with pytest.raises(ValueError, match="warm_start must be for a field of shape"):
        sw.marginals(small_grid(0, 2), warm_start=post)
    with pytest.raises(ValueError, match="warm_start must be a result with 0 block entries"):
        sw.marginals(sw.fields.Field(np.zeros((30, 3))), "projection", warm_start=post)
    with pytest.raises(TypeError, match="fields must be an iterable of Fields, got a Field"):
        sw.inference.marginals_batch(field)
    with pytest.raises(TypeError, match="fields must be a sequence of Fields, got NoneType"):
        sw.inference.marginals_batch(None)
    with pytest.raises(TypeError, match="fields must hold Fields, got int"):
        sw.inference.marginals_batch([3])


def test_a_warm_start_must_be_finite():
    field = small_grid()
    for name in ["state", "probabilities"]:
        post = sw.marginals(field)
        getattr(post, name)[3] = np.nan
        with pytest.raises(ValueError, match=f"warm_start must have finite {name}"):
            sw.marginals(field, warm_start=post)


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
    energies = field._energies(reference.all_labellings(*field.unary.shape))
    assert np.abs(energies[np.isfinite(energies)]).max() <= largest_energy(field) * (1 + 1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.dtype("float32"), np.float64, np.dtype(float)])
def test_dtypes_come_by_name_or_as_numpys(dtype):
    post = sw.marginals(small_grid(), dtype=dtype)
    named = sw.marginals(small_grid(), dtype=np.dtype(dtype).name)
    assert post.probabilities.dtype == post.state.dtype == np.dtype(dtype)
    assert np.array_equal(post.probabilities, named.probabilities)


@pytest.mark.parametrize("method", UPPER)
def test_numbers_are_those_of_python_and_zero_has_no_sign(method):
    for field in [sw.fields.Field([[0.0, 1.0]]), of_seed("segmentation", 0)]:
        post = sw.marginals(field, method)
        numbers = (post.log_partition_upper, post.log_partition_lower, post.gap, post.relative_gap)
        assert {type(number) for number in numbers} == {float}
        assert not np.signbit([post.gap, post.relative_gap, post.width]).any()


# ----------------------------------------------------------------------------------------- gradient


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
def test_gradient_against_finite_differences(temperature):
    rng = np.random.default_rng(2)
    field = sw.fields.Field(rng.normal(size=(6, 3)))
    field += sw.fields.Potts(sw.fields.grid_edges((2, 3)), rng.uniform(0.1, 0.5, 7))
    field += sw.fields.RegionConsistency([0, 0, 0, 1, 1, 1], 0.5, 0.6)
    field += sw.fields.LabelCost([0.5, 1.0, 0.2])

    def upper(changed: sw.fields.Field) -> float:
        return sw.marginals(changed, tol=1e-13, temperature=temperature).log_partition_upper

    post = sw.marginals(field, tol=1e-13, temperature=temperature)
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
