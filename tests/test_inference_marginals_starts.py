"""Marginals: where a search starts and where it is ended, over threads and in batches."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import CancelledError

import numpy as np
import pytest
import reference
from marginals_cases import CERTIFIED, STARTED, close, least_upper, small_grid, taking

import setwise as sw
from setwise.inference._marginals import _batch as _marginals_batch
from setwise.inference._marginals._result import MarginalsProgress


def test_a_start_goes_on():
    field = small_grid()
    post = sw.marginals(field, "projection", tol=1e-9)
    again = sw.marginals(field, "projection", tol=1e-9, init=post)
    assert again.n_iter == 1
    assert close(again.log_partition_upper, post.log_partition_upper)
    near = field.with_unary(field.unary + 0.01)
    again = sw.marginals(near, "projection", tol=1e-9, init=post)
    assert again.n_iter < post.n_iter
    for method in STARTED:
        assert sw.marginals(field, method, init=post, max_iter=50).n_iter >= 0


def test_a_start_from_other_weights_is_no_less_a_bound():
    rng = np.random.default_rng(0)
    unary = rng.normal(size=(9, 3))
    edges = sw.fields.grid_edges((3, 3))
    strong = sw.fields.Field(unary) + sw.fields.Potts(edges, 5.0)
    weak = sw.fields.Field(unary) + sw.fields.Potts(edges, 0.01)
    post = sw.marginals(weak, tol=1e-2, max_iter=0, init=sw.marginals(strong, "trees", tol=1e-9))
    least = sw.marginals(weak, "trees", tol=1e-12).log_partition_upper
    assert -1e-9 <= post.log_partition_upper - least <= post.gap + 1e-9


def test_messages_and_blocks_of_far_larger_weights_cost_no_digits():
    rng = np.random.default_rng(0)
    chain = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]
    for _ in range(10):
        weights, costs = rng.uniform(0.0, 1.0, 5), rng.uniform(0.0, 1.0, 3)
        tree, large_tree = (
            sw.fields.Field(rng.normal(0.0, unit, (6, 2))) + sw.fields.Potts(chain, weights * unit)
            for unit in (1.0, 1e14)
        )
        priced, large_priced = (
            sw.fields.Field(rng.normal(0.0, unit, (1, 3))) + sw.fields.LabelCost(costs * unit)
            for unit in (1.0, 1e9)
        )
        for field, large, method in [
            (tree, large_tree, "trees"),
            (priced, large_priced, "projection"),
        ]:
            init = sw.marginals(large, method, max_iter=20, tol=0.0)
            post = sw.marginals(field, method, init=init, max_iter=0)
            exact = sw.marginals(field, "elimination")
            assert post.log_partition_upper >= exact.log_partition_lower


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_one_label_needs_no_start(dtype):
    field = sw.fields.Field([[0.1], [0.7], [0.3]])
    region = np.zeros(3, int)
    strong = field + sw.fields.RegionConsistency(region, 5.3, 0.7)
    weak = field + sw.fields.RegionConsistency(region, 0.1, 0.7)
    post = sw.marginals(weak, "projection", dtype=dtype, init=sw.marginals(strong))
    assert close(post.log_partition_upper, -weak.energy([0, 0, 0]), 1e-14)


def test_a_start_must_be_finite():
    field = small_grid()
    for name in ["state", "probabilities"]:
        post = sw.marginals(field, "trees")
        getattr(post, name)[3] = np.nan
        with pytest.raises(ValueError, match=f"init must have finite {name}"):
            sw.marginals(field, init=post)


def test_bad_starts_and_fields():
    field = small_grid()
    post = sw.marginals(field, "projection")
    with pytest.raises(TypeError, match="field must be a Field"):
        sw.marginals(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="init must be a result of projection"):
        sw.marginals(field, "projection", init=sw.marginals(field, "mean_field"))
    with pytest.raises(ValueError, match="init must be None for exact_binary"):
        sw.marginals(small_grid(0, 2), "exact_binary", init=post)
    with pytest.raises(ValueError, match="init must be for a field of shape"):
        sw.marginals(small_grid(0, 2), init=post)
    with pytest.raises(ValueError, match="init must be a result with 0 block entries"):
        sw.marginals(sw.fields.Field(np.zeros((30, 3))), "projection", init=post)
    with pytest.raises(TypeError, match="fields must be an iterable of Fields, got a Field"):
        sw.inference.marginals_batch(field)
    with pytest.raises(TypeError, match="fields must be a sequence of Fields, got NoneType"):
        sw.inference.marginals_batch(None)
    with pytest.raises(TypeError, match="fields must hold Fields, got int"):
        sw.inference.marginals_batch([3])


@pytest.mark.parametrize("method", STARTED)
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


def test_callbacks_see_each_pass_and_end_it():
    seen = []
    post = sw.marginals(
        small_grid(), "trees", tol=1e-12, callback=lambda now: seen.append(now) or len(seen) == 3
    )
    assert (post.interrupted, post.n_iter) == (True, 3)
    assert [now.n_iter for now in seen] == [1, 2, 3]
    for method in STARTED:
        post = sw.marginals(small_grid(), method, tol=1e-12, callback=lambda _: np.True_)
        assert (post.interrupted, post.n_iter) == (True, 1)
        assert np.isfinite(post.log_partition_lower)


@pytest.mark.parametrize("method", [m for m in taking(small_grid(0, 2)) if m != "elimination"])
def test_an_interrupt_returns_what_there_is(method):
    def stop(now: MarginalsProgress) -> None:
        if now.n_iter == 2:
            raise KeyboardInterrupt

    field = small_grid(0, 2)
    post = sw.marginals(field, method, tol=0.0, callback=stop, rng=0)
    assert (post.interrupted, post.converged, post.n_iter) == (True, False, 2)
    least = least_upper(field, method if post.certified else "exact_binary")
    assert post.log_partition_lower <= least
    if post.certified:
        assert post.log_partition_upper >= least - 1e-9


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
        sw.inference.marginals_batch([small_grid()] * 5, "projection", n_jobs=1)
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


@pytest.mark.parametrize("method", ["auto", *CERTIFIED, "mean_field"])
def test_a_batch_is_its_single_fields(method):
    batch = [small_grid(seed, 2) for seed in range(5)]
    for n_jobs in [1, 3]:
        results = sw.inference.marginals_batch(batch, method, n_jobs=n_jobs)
        for field, post in zip(batch, results, strict=True):
            alone = sw.marginals(field, method)
            assert np.array_equal(alone.probabilities, post.probabilities)
            assert alone.log_partition_upper == post.log_partition_upper
    assert sw.inference.marginals_batch([]) == []


@pytest.mark.parametrize("method", ["trees", "projection", "frank_wolfe", "counts"])
def test_the_gap_of_a_search_that_was_ended_is_that_of_its_last_pass(method):
    """Gaps that cost a pass are not measured in each; a callback that ends it has it measured."""
    field = small_grid(0, 2) + sw.fields.LabelCost([1.0, 2.0])
    for last in range(1, 8):
        ended = sw.marginals(field, method, tol=0.0, callback=lambda now, k=last: now.n_iter == k)
        assert ended.n_iter == last
        assert ended.interrupted is not ended.converged
        assert 0.0 <= ended.gap < np.inf
        assert ended.bound <= least_upper(field, method) + 1e-9 <= ended.value + 2e-9


def test_a_callback_that_agrees_with_the_last_pass_interrupts_nothing():
    for method in taking(small_grid(0, 2)):
        whole = sw.marginals(small_grid(0, 2), method, tol=1e-2, rng=0)
        if not whole.converged:
            continue
        post = sw.marginals(
            small_grid(0, 2),
            method,
            tol=1e-2,
            rng=0,
            callback=lambda now, n=whole.n_iter: now.n_iter == n,
        )
        assert (post.interrupted, post.converged) == (False, True), method
        assert post.log_partition_lower == whole.log_partition_lower
