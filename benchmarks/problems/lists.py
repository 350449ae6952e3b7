"""Diverse lists: every diversity and method, tuning, baselines, oracle scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.problems import Problem, Recorder, attempt, call
from benchmarks.problems.potentials import Shape, field_of, forbidden, ties
from benchmarks.shared.fields import fresh, scene, superpixels
from setwise import diverse, fields, inference
from setwise import diversities as d
from setwise.diversities._balls import ball_intersections
from setwise.inference._diverse._baseline_lists import perturbed_list, sampled_list
from setwise.inference._diverse._oracle_accuracy import oracle_items

METHODS = ("auto", "multipliers", "cut", "expansion", "swap", "convex", "messages", "enumerate")


def half_power(counts: Any) -> Any:
    return 3.0 + 2.0 * counts**0.7


def all_diversities(shape: Shape, L: int) -> dict[str, d.Diversity | d.Concatenated]:
    edges = fields.grid_edges(shape)
    groups = [[0, L - 1], [L - 1]]
    ball, labels = d.HammingBall(4.0, 0.3), d.LabelDiversity("min1", 1.5)
    return {
        "div-m-best": d.DivMBest(0.4),
        "variables": d.VariableCoverage("sqrt", 0.4),
        "regions": d.VariableCoverage(
            weight=0.4, regions=np.arange(shape[0] * shape[1]) // 3, consistency=0.3
        ),
        "ball": ball,
        "wide ball": d.HammingBall(8.0, 0.1),
        "coverage": d.BallCoverage(2.0, 1),
        "coverage bound": d.BallCoverageBound(2.0, 1),
        "labels": labels,
        "labels by root": d.LabelDiversity("sqrt", 1.5),
        "labels by logarithm": d.LabelDiversity("log1p", 1.5, parsimony=0.8, background=0),
        "labels without parsimony": d.LabelDiversity("min1", 1.5, parsimony=0.0),
        "own concave": d.LabelDiversity(half_power, 0.5, parsimony=2.0),
        "groups": d.GroupCoverage(groups, "min1", 2.0),
        "groups by logarithm": d.GroupCoverage(groups, "log1p", 2.0, parsimony=1.0),
        "transitions": d.TransitionDiversity(edges, "min1", 1.0),
        "transitions by root": d.TransitionDiversity(edges, "sqrt", 1.0, background=0),
        "sum": ball + 0.5 * labels,
        "sum of balls": ball + d.DivMBest(0.1),
        "concatenated": d.Concatenated([ball, labels]),
        "concatenated shares": d.Concatenated([ball, labels, d.DivMBest(0.3)], [2, 1, 1]),
    }


def worth(diversity: d.Diversity, field: fields.Field) -> Any:
    """Return values, gains, properties and the energies of the step."""
    rng = np.random.default_rng(0)
    L = field.n_labels
    labelings = rng.integers(0, L, (4, field.n_variables))
    augmented = attempt(diversity.augment, field, labelings[:3])
    return [
        diversity.value(labelings, L),
        diversity.gain(labelings[3], labelings[:3], L),
        [diversity.is_monotone, diversity.is_submodular],
        augmented if isinstance(augmented, str) else augmented.energy(labelings),
    ]


def listed(make: Callable[[], fields.Field], m: int, diversity: Any, method: str) -> Any:
    rounds = Recorder("n_items", "value", "gain", "gap", "labels")
    found = diverse(make(), m, diversity, method=method, n_jobs=1, callback=rounds)
    return {"result": found, "rounds": rounds}


def makers() -> Iterator[tuple[str, Shape, int, Callable[[], fields.Field]]]:
    for mixture, shape, L in (
        ("potts", (3, 4), 2),
        ("segmentation", (2, 4), 3),
        ("potts", (7, 8), 2),
        ("submodular", (5, 6), 3),
        ("tables", (5, 6), 3),
        ("unaries", (2, 2), 2),
    ):
        yield f"{mixture} {shape}", shape, L, partial(field_of, mixture, shape, L)
    yield "forbidden", (3, 4), 2, partial(forbidden, (3, 4), 2)
    yield "ties", (5, 6), 3, partial(ties, (5, 6), 3)


def added() -> Any:
    """Return a term that a user's diversity may add to a field; None in older builds."""
    if not hasattr(d, "Addition"):
        return None
    addition = d.Addition(prices=[(np.zeros(12, int), 2.0)])
    addition += d.Addition(potentials=[fields.LabelCost([1.0, 0.5])])
    return addition.added_to(field_of("potts", (3, 4), 2)).energy(np.arange(12) % 2)


def wide() -> Iterator[Problem]:
    yield "added", added
    for name, shape, L, make in makers():
        few = L ** (shape[0] * shape[1]) < 10_000
        for kind, diversity in all_diversities(shape, L).items():
            if not isinstance(diversity, d.Concatenated):
                yield f"{name}/{kind}/worth", partial(attempt, worth, diversity, make())
            for method in METHODS:
                if method == "enumerate" and not few:
                    continue
                yield (
                    f"{name}/{kind}/{method}",
                    partial(attempt, listed, make, 4, diversity, method),
                )
        for wanted in (d.Alternatives(), d.Alternatives(0.0, 0.0, 2.0)):
            yield f"{name}/{wanted}", partial(attempt, listed, make, 4, wanted, "auto")
        for kind, diversity in (
            ("div-m-best", d.DivMBest(0.4)),
            ("variables", d.VariableCoverage()),
        ):
            yield f"{name}/{kind}/joint", partial(attempt, listed, make, 4, diversity, "joint")
        yield f"{name}/path", partial(attempt, lambda make=make: inference.bias_path(make()))
    field = partial(field_of, "potts", (5, 6), 3)
    for draw in (perturbed_list, sampled_list):
        yield (
            draw.__name__,
            lambda draw=draw: call(draw, field(), 4, temperature=1.5, n_draws=12, n_jobs=1, rng=0),
        )
    rng = np.random.default_rng(0)
    truths = [rng.integers(-1, 3, 30) for _ in range(2)]
    labelings = rng.integers(0, 3, (5, 30))
    pixels = [rng.integers(0, 30, (12, 12)) for _ in range(2)]
    for scoring in ("accuracy", "iou"):
        for score in (inference.oracle_accuracy, oracle_items):
            yield (
                f"{score.__name__} {scoring}",
                partial(score, labelings, truths[0], scoring, ignore=-1),
            )
        for kind, make, grid in (
            ("ball", d.HammingBall, {"weight": [0.5, 5.0], "gamma": [0.1, 0.5]}),
            ("div-m-best", d.DivMBest, {"weight": [0.1, 0.5, 1.0]}),
        ):
            yield (
                f"tune {kind} {scoring}",
                lambda make=make, grid=grid, scoring=scoring: inference.tune_diversity(
                    [field(), field()], truths, make, grid, m=3, scoring=scoring, n_jobs=1
                ),
            )
    yield (
        "tune on pixels",
        lambda: inference.tune_diversity(
            [field(), field()],
            [truth[where.ravel()] for truth, where in zip(truths, pixels, strict=True)],
            d.DivMBest,
            {"weight": [0.1, 1.0]},
            m=3,
            regions=[where.ravel() for where in pixels],
            n_jobs=1,
        ),
    )
    yield "ball intersections", partial(ball_intersections, 8, 3, 2)


def timed() -> Iterator[Problem]:
    two, many = scene((150, 200), 2.0), superpixels(400, 15, 1.0)
    small = superpixels(60, 4, 1.0)
    for name, field, m, diversity in (
        ("ball", two, 6, d.HammingBall(20.0, 0.01)),
        ("wide ball", two, 4, d.HammingBall(200.0, 0.05)),
        ("div-m-best", two, 6, d.DivMBest(0.2)),
        ("alternatives", two, 6, d.Alternatives()),
        ("label costs", many, 8, d.LabelDiversity("min1", 20.0)),
        ("label costs by root", many, 8, d.LabelDiversity("sqrt", 20.0)),
        ("ball on superpixels", small, 3, d.HammingBall(5.0, 0.1)),
    ):
        yield (
            name,
            lambda field=field, m=m, diversity=diversity: diverse(
                fresh(field), m, diversity, n_jobs=1
            ),
        )
    for draw in (perturbed_list, sampled_list):
        yield (
            f"{draw.__name__} of superpixels",
            lambda draw=draw: call(draw, fresh(small), 5, n_draws=20, n_jobs=1, rng=0),
        )
