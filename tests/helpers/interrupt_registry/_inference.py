"""Long calls on fields: files, MAP, marginals, lists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

import setwise as sw
from interrupt_registry._calls import Call, long
from setwise import fields, inference
from setwise.inference._map._methods import METHODS as MAP_METHODS
from setwise.inference._marginals._methods import METHODS as _MARGINALS


def grid_field(
    size: int, n_labels: int, *, submodular: bool = True, narrow: bool = False
) -> fields.Field:
    """A grid of 7 size columns and as many rows; of 7 rows where it must be ``narrow``."""
    rng, side = np.random.default_rng(n_labels), 7 * size
    rows = 7 if narrow else side
    edges = fields.grid_edges((rows, side))
    field = fields.Field(rng.normal(size=(rows * side, n_labels)))
    if submodular:
        return field + fields.Potts(edges, 0.6)
    return field + fields.Pairwise(edges, rng.normal(size=(len(edges), n_labels, n_labels)))


@long("fields.read_uai")
def read_uai(size: int) -> Call:
    path = Path(mkdtemp()) / "field.uai"
    fields.write_uai(grid_field(size, 3), path)
    return lambda: fields.read_uai(path).unary


@long("fields.write_uai")
def write_uai(size: int) -> Call:
    path, field = Path(mkdtemp()) / "field.uai", grid_field(size, 3)

    def call() -> object:
        fields.write_uai(field, path)
        return np.frombuffer(path.read_bytes(), np.uint8)

    return call


def _solve_map_by(method: str) -> Callable[[int], Call]:
    def make(size: int) -> Call:
        narrow = method == "elimination"
        field = grid_field(size, 2 if method == "cut" else 4, narrow=narrow)
        if method == "enumerate":
            unary = np.random.default_rng(0).normal(size=(1000, 2))
            unary[10 + min(size, 13) :, 1] = np.inf  # a chunk holds fewer of so many variables
            field = fields.Field(unary)
            return lambda: sw.solve_map(field, "enumerate")
        if method in ("messages", "odd_cycles", "branch_and_bound", "windows"):
            field = grid_field(size, 2 if method == "odd_cycles" else 4, submodular=False)
        return lambda: sw.solve_map(field, method, n_jobs=1)

    return make


for _method in MAP_METHODS:
    long("inference.solve_map", _method)(_solve_map_by(_method))


def _marginals_by(method: str) -> Callable[[int], Call]:
    def make(size: int) -> Call:
        n_labels = 2 if method in ("exact_binary", "counts") else 3
        field = grid_field(size, n_labels, narrow=method == "elimination")
        most = 5 * size if method == "perturb" else None
        options = {"tol": 1e-2, "max_iter": most, "n_jobs": 1, "rng": 0}
        return lambda: sw.marginals(field, method, **options)

    return make


for _method in _MARGINALS:
    long("inference.marginals", _method)(_marginals_by(_method))


@long("inference.marginals", "float32, two threads")
def marginals_in_single_precision(size: int) -> Call:
    field = grid_field(size, 3)
    return lambda: sw.marginals(field, "projection", tol=1e-4, n_jobs=2, dtype="float32")


@long("inference.log_partition_gradient")
def log_partition_gradient(size: int) -> Call:
    field = grid_field(2 * size, 3)
    post = sw.marginals(field, n_jobs=1)
    return lambda: inference.log_partition_gradient(field, post, n_jobs=1)


@long("inference.marginals_batch", "one thread")
def marginals_batch(size: int) -> Call:
    batch = [grid_field(size, 2 + k) for k in range(3)]
    return lambda: inference.marginals_batch(batch, "projection", n_jobs=1)


@long("inference.marginals_batch", "two threads")
def marginals_batch_in_threads(size: int) -> Call:
    batch = [grid_field(size, 2 + k) for k in range(3)]
    return lambda: inference.marginals_batch(batch, "projection", n_jobs=2)


def _diverse_with(
    diversity: sw.diversities.Diversity | None, n_labels: int, m: int = 3, **options: object
) -> Callable[[int], Call]:
    def make(size: int) -> Call:
        field = grid_field(size, n_labels)
        return lambda: sw.diverse(field, m, diversity, n_jobs=1, **options)

    return make


_D = sw.diversities
for _case, _make in {
    "cuts": _diverse_with(_D.DivMBest(0.5), 2),
    "multipliers": _diverse_with(_D.HammingBall(20.0, 0.3), 2),
    "moves": _diverse_with(_D.DivMBest(0.5), 3),
    "moves by multipliers": _diverse_with(_D.HammingBall(20.0, 0.3), 3),
    "labels": _diverse_with(_D.LabelDiversity("sqrt", 1.5), 3),
    "messages": _diverse_with(_D.HammingBall(0.5, 0.3), 2, 2, method="messages"),
    "alternatives": _diverse_with(None, 2),
    "alternatives of three labels": _diverse_with(None, 3),
    "joint": _diverse_with(_D.DivMBest(0.5), 2, method="joint"),
    "joint by moves": _diverse_with(_D.DivMBest(0.5), 3, method="joint"),
    "concatenated": _diverse_with(_D.Concatenated([_D.DivMBest(0.5), _D.DivMBest(1.0)]), 2),
}.items():
    long("inference.diverse", _case)(_make)


@long("inference.bias_path")
def bias_path(size: int) -> Call:
    field = grid_field(size, 2)
    return lambda: inference.bias_path(field, max_bias=2.0)


@long("inference.tune_diversity")
def tune_diversity(size: int) -> Call:
    images = [grid_field(size, 3) for _ in range(2)]
    truths = [field.unary.argmin(axis=1) for field in images]
    grid = {"weight": [0.2, 0.5, 1.0]}
    return lambda: inference.tune_diversity(images, truths, _D.DivMBest, grid, m=2, n_jobs=2)


@long("inference.calibrate_temperature")
def calibrate_temperature(size: int) -> Call:
    images = [grid_field(size, 3) for _ in range(2)]
    truths = [field.unary.argmin(axis=1) for field in images]
    options = {"grid": {"temperature": [0.5, 1.0, 2.0]}, "tol": 1e-2, "n_jobs": 2}
    return lambda: sw.calibrate_temperature(images, truths, "trees", **options)


@long("inference.TemperatureCalibration.marginals")
def calibrated_marginals(size: int) -> Call:
    field = grid_field(size, 3)
    truths, options = [field.unary.argmin(axis=1)], {"grid": {"temperature": [1.0]}, "tol": 1.0}
    found = sw.calibrate_temperature([field], truths, "trees", **options)
    return lambda: found.marginals(field, tol=1e-2, n_jobs=1)


@long("inference.sample", "a grid")
def sample(size: int) -> Call:
    field = grid_field(size, 3)
    return lambda: sw.sample(field, 40, burn_in=20 * size, rng=0, n_jobs=1)


@long("inference.sample", "a tree")
def sample_of_a_tree(size: int) -> Call:
    n = 300 * size
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    field = fields.Field(np.random.default_rng(0).normal(size=(n, 3))) + fields.Potts(edges, 0.5)
    return lambda: sw.sample(field, 30 * size, rng=0, n_jobs=1)
