"""Marginals: every method on every field, starts, temperatures, precisions, gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.problems import Problem, Recorder, attempt, call
from benchmarks.problems.potentials import all_fields, field_of
from benchmarks.shared.fields import fresh, image
from setwise import calibrate_temperature, fields, marginals, sample
from setwise.inference import log_partition_gradient, marginals_batch, reliability

METHODS = (
    *("auto", "projection", "frank_wolfe"),
    *("exact_binary", "mean_field", "belief_propagation", "perturb"),
)
# Enough to see every step of a method; those without a certificate converge sooner.
PASSES = {"perturb": 5}


def warm(make: Callable[[], fields.Field], method: str) -> Any:
    """Run a second search from a first answer, at another temperature, and record its progress."""
    rounds = Recorder("n_iter", "value", "relative_gap")
    options = {"temperature": 1.7, "n_jobs": 1}
    first = marginals(make(), method, tol=1e-2, max_iter=50, **options)
    field = make()
    near = field.with_unary(field.unary + 0.1)
    second = call(
        marginals, near, method, init=first, tol=1e-5, max_iter=100, callback=rounds, **options
    )
    return {"first": first, "second": second, "rounds": rounds}


def gradient(make: Callable[[], fields.Field]) -> Any:
    field = make()
    found = log_partition_gradient(field, marginals(field, tol=1e-5, max_iter=200, n_jobs=1))
    return {"unary": found.unary, "weights": list(found.weights)}


def wide() -> Iterator[Problem]:
    for name, make in all_fields():
        for method in METHODS:
            if method == "perturb" and name.startswith(("8x9", "7x8")):
                continue
            limit = PASSES.get(method, 60)
            yield (
                f"{name}/{method}",
                lambda make=make, method=method, limit=limit: attempt(
                    marginals_seeded, make(), method, limit
                ),
            )
        if not name.startswith("8x9"):
            for method in ("projection", "frank_wolfe", "mean_field"):
                yield f"{name}/{method} warm", partial(attempt, warm, make, method)
            yield (
                f"{name}/float32",
                lambda make=make: attempt(
                    marginals, make(), "projection", dtype="float32", max_iter=60, n_jobs=1
                ),
            )
            yield f"{name}/gradient", partial(attempt, gradient, make)
    batch = [field_of("segmentation", (4, 5), 3, seed) for seed in range(5)]
    truths = [np.argmin(field.unary, axis=1) for field in batch]
    yield "sample", lambda: [sample(field, 20, rng=3, n_jobs=1).labelings for field in batch]
    yield (
        "calibrate_temperature",
        lambda: (
            calibrate_temperature(batch, truths, grid={"temperature": [0.5, 2.0]}, n_jobs=1).scores
        ),
    )
    yield (
        "reliability",
        lambda: [
            reliability(truth, marginals(field, n_jobs=1).probabilities).brier
            for truth, field in zip(truths, batch, strict=True)
        ],
    )
    for method in ("auto", "mean_field"):
        yield (
            f"batch {method}",
            lambda method=method: marginals_batch(
                [fresh(field) for field in batch], method, n_jobs=1
            ),
        )


def marginals_seeded(field: fields.Field, method: str, limit: int) -> Any:
    return call(marginals, field, method, tol=1e-4, max_iter=limit, rng=5, n_jobs=1)


def timed() -> Iterator[Problem]:
    many = image(80, 120, 10, (300, 100), np.random.default_rng(0))
    two = image(100, 150, 2, (), np.random.default_rng(0))
    pairs = fields.Field(many.unary) + many.potentials[0]
    small = image(20, 24, 4, (20,), np.random.default_rng(0))
    tables = field_of("tables", (50, 60), 5)
    for name, field, method, options in (
        ("projection", many, "projection", {"tol": 1e-3}),
        ("projection float32", many, "projection", {"tol": 1e-3, "dtype": "float32"}),
        ("projection of two labels", two, "projection", {"tol": 1e-4}),
        ("frank_wolfe", many, "frank_wolfe", {"max_iter": 30}),
        ("exact_binary", two, "exact_binary", {}),
        ("mean_field", many, "mean_field", {}),
        ("mean_field of tables", tables, "mean_field", {}),
        ("belief_propagation", pairs, "belief_propagation", {"max_iter": 50}),
        ("belief_propagation of tables", tables, "belief_propagation", {"max_iter": 50}),
        ("perturb", small, "perturb", {"max_iter": 20, "rng": 0}),
    ):
        yield (
            name,
            lambda field=field, method=method, options=options: call(
                marginals, fresh(field), method, n_jobs=1, **options
            ),
        )
    batch = [image(12, 16, 3, (20,), np.random.default_rng(seed)) for seed in range(20)]
    yield "batch", lambda: marginals_batch([fresh(field) for field in batch], n_jobs=1)
    found = marginals(many, tol=1e-2, n_jobs=1)
    yield "gradient", lambda: gradient_of(many, found)


def gradient_of(field: fields.Field, found: Any) -> Any:
    gradient = log_partition_gradient(field, found, n_jobs=1)
    return [gradient.unary, list(gradient.weights)]
