"""Best labellings: every method on every field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.problems import Problem, Recorder, attempt, call
from benchmarks.problems.potentials import all_fields, field_of
from benchmarks.shared.fields import fresh, image, scene
from setwise import fields, solve_map

METHODS = ("auto", "cut", "expansion", "swap", "convex", "messages", "enumerate")


def with_options(make: Callable[[], fields.Field], method: str) -> Any:
    """Solve from a start, in a random order, and record what the callback receives."""
    field = make()
    start = np.random.default_rng(0).integers(0, field.n_labels, field.n_variables)
    rounds = Recorder("n_iter", "value", "bound")
    options = {"rng": 7, "init": start, "tol": 1e-3, "max_iter": 20, "n_jobs": 1}
    found = call(solve_map, field, method, callback=rounds, **options)
    return {"result": found, "rounds": rounds}


def wide() -> Iterator[Problem]:
    for name, make in all_fields():
        small = not name.startswith(("8x9", "7x8"))
        for method in METHODS if small else METHODS[:-1]:
            limit = None if small or method in ("auto", "cut") else 40
            yield (
                f"{name}/{method}",
                lambda make=make, method=method, limit=limit: attempt(
                    solve_map, make(), method, n_jobs=1, max_iter=limit
                ),
            )
        if name.startswith(("8x9", "7x8")):
            for method in ("auto", "expansion", "messages"):
                yield f"{name}/{method} with options", partial(attempt, with_options, make, method)
            yield (
                f"{name}/local",
                lambda make=make: attempt(solve_map, make(), tol=np.inf, n_jobs=1),
            )


def timed() -> Iterator[Problem]:
    rng = np.random.default_rng(0)
    many = image(120, 160, 15, (100,), rng)
    pairs = fields.Field(many.unary) + many.potentials[0]
    priced = pairs + fields.LabelCost(np.full(15, 100.0))
    two = scene((400, 600), 2.0)
    tables = field_of("tables", (25, 30), 5)
    counts = field_of("pairs and counts", (10, 12), 3)
    touching = field_of("concave transitions", (30, 40), 6)
    for name, field, method, options in (
        ("cut", two, "cut", {}),
        ("expansion", pairs, "expansion", {"tol": np.inf}),
        ("expansion, label costs", priced, "expansion", {"tol": np.inf}),
        ("expansion, regions", many, "expansion", {"tol": np.inf}),
        ("swap", pairs, "swap", {"tol": np.inf}),
        ("convex", image(40, 60, 8, (50,), rng), "convex", {"max_iter": 60}),
        ("messages", tables, "messages", {"max_iter": 60}),
        ("messages, counts", counts, "messages", {"max_iter": 60}),
        ("transitions", touching, "auto", {"max_iter": 30}),
        ("enumerate", field_of("everything", (2, 5), 3), "enumerate", {}),
    ):
        yield (
            name,
            lambda field=field, method=method, options=options: solve_map(
                fresh(field), method, n_jobs=1, **options
            ),
        )
    few = [field_of("segmentation", (2, 3), 2, seed) for seed in range(60)]
    yield "small fields", lambda: [solve_map(fresh(field), n_jobs=1).value for field in few]
