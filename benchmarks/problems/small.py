"""Calls with 10 to 100 variables, whose time is that of the Python around the kernels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import setwise as sw
from benchmarks.problems import Problem
from benchmarks.problems.estimators import quietly, rows
from benchmarks.problems.potentials import field_of
from benchmarks.shared.fields import fresh
from setwise import diversities, fields, functions, losses


def chain(n: int, n_labels: int) -> fields.Field:
    """Return a chain of random unaries with Potts pairs."""
    unary = np.random.default_rng(n).normal(size=(n, n_labels))
    return fields.Field(unary) + fields.Potts(np.stack([np.arange(n - 1), np.arange(1, n)], 1), 0.5)


def solved(field: fields.Field, **options: Any) -> Any:
    return sw.solve_map(fresh(field), n_jobs=1, **options)


def marginals_of(field: fields.Field) -> Any:
    return sw.marginals(fresh(field), n_jobs=1)


def list_of(field: fields.Field, diversity: Any) -> Any:
    return sw.diverse(fresh(field), 3, diversity, n_jobs=1)


def wide() -> Iterator[Problem]:
    return iter(())


def timed() -> Iterator[Problem]:
    shapes = ((2, 5), (5, 6), (10, 10))
    for shape in shapes:
        n = shape[0] * shape[1]
        yield f"cut {n}", partial(solved, field_of("potts", shape, 2))
        yield f"map {n}", partial(solved, field_of("potts", shape, 4))
        yield f"marginals {n}", partial(marginals_of, field_of("potts", shape, 2))
        yield f"marginals of a chain {n}", partial(marginals_of, chain(n, 3))
        yield f"list {n}", partial(list_of, field_of("potts", shape, 2), diversities.DivMBest(0.2))
        yield (
            f"alternatives {n}",
            partial(list_of, field_of("potts", shape, 2), diversities.Alternatives()),
        )
        weights = np.random.default_rng(n).uniform(size=n)
        concave = functions.ConcaveOfModular(np.sqrt, weights) - functions.Modular(weights)
        yield f"minimize {n}", partial(functions.minimize, concave)
        truth = np.random.default_rng(n).random(n) < 0.4
        scores = np.random.default_rng(n + 1).normal(size=n)
        yield f"loss {n}", partial(losses.Jaccard(), truth, scores > 0)
        yield f"decide {n}", partial(sw.decide, 1 / (1 + np.exp(-scores)), "jaccard")
        X, Y = rows(n, 4, 3)
        yield (
            f"set classifier {n}",
            lambda X=X, Y=Y: quietly(sw.SetClassifier("jaccard", C=1.0).fit, X, Y),
        )
        yield (
            f"boosting {n}",
            lambda X=X, y=Y[:, 0]: quietly(
                sw.StructBoostClassifier(C=1.0, n_estimators=10).fit, X, y
            ),
        )
