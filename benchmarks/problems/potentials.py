"""Fields with every kind of potential, their energies, and fields from pictures and files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.problems import Problem, attempt, call
from setwise import fields

Rng = np.random.Generator
Shape = tuple[int, int]


def some_edges(rng: Rng, n: int) -> np.ndarray:
    """Return about two random neighbours per variable, including repeated pairs."""
    first = rng.integers(0, n, 2 * n)
    return np.stack([first, (first + rng.integers(1, n, 2 * n)) % n], axis=1)


def tree(rng: Rng, n: int) -> np.ndarray:
    return np.array([[rng.integers(0, i), i] for i in range(1, n)])


def squares(shape: Shape, side: int) -> np.ndarray:
    y, x = np.mgrid[: shape[0], : shape[1]].reshape(2, -1)
    return (y // side) * (shape[1] // side + 1) + x // side


def symmetric(rng: Rng, L: int) -> np.ndarray:
    costs = np.triu(rng.uniform(0.0, 1.5, (L, L)), 1)
    return costs + costs.T


# Each potential is drawn for a grid of a shape and a number of labels.
Draw = Callable[[Rng, Shape, int], fields.Potential]
POTENTIALS: dict[str, Draw] = {
    "potts": lambda rng, s, L: fields.Potts(
        fields.grid_edges(s), rng.uniform(0.0, 1.5, len(fields.grid_edges(s)))
    ),
    "potts of 8": lambda rng, s, L: fields.Potts(fields.grid_edges(s, 8), 0.4),
    "potts of a graph": lambda rng, s, L: fields.Potts(some_edges(rng, s[0] * s[1]), 0.6),
    "potts of a tree": lambda rng, s, L: fields.Potts(tree(rng, s[0] * s[1]), 1.2),
    "tables": lambda rng, s, L: fields.Pairwise(
        fields.grid_edges(s), rng.normal(0.0, 1.0, (len(fields.grid_edges(s)), L, L))
    ),
    "tables of a tree": lambda rng, s, L: fields.Pairwise(
        tree(rng, s[0] * s[1]), rng.normal(0.0, 1.0, (s[0] * s[1] - 1, L, L))
    ),
    "metric table": lambda rng, s, L: fields.Pairwise(
        fields.grid_edges(s), 0.5 * np.abs(np.subtract.outer(np.arange(L), np.arange(L)))
    ),
    "weighted table": lambda rng, s, L: fields.Pairwise(
        fields.grid_edges(s),
        rng.uniform(0.0, 1.0, (L, L)),
        weights=rng.uniform(0.0, 1.0, len(fields.grid_edges(s))),
    ),
    "truncated linear": lambda rng, s, L: fields.TruncatedLinear(fields.grid_edges(s), 0.4, 2.0),
    "truncated quadratic": lambda rng, s, L: fields.TruncatedQuadratic(
        fields.grid_edges(s), 0.2, 3.0
    ),
    "regions": lambda rng, s, L: fields.RegionConsistency(
        squares(s, 3), rng.uniform(0.2, 2.0), rng.uniform(0.3, 0.9)
    ),
    "some regions": lambda rng, s, L: fields.RegionConsistency(
        rng.integers(-1, 4, s[0] * s[1]), 1.5, 0.5
    ),
    "robust": lambda rng, s, L: fields.RobustPn(squares(s, 2), 1.0, 0.4, relative=True),
    "robust beyond half": lambda rng, s, L: fields.RobustPn(squares(s, 3), 1.5, 6.5),
    "label costs": lambda rng, s, L: fields.LabelCost(rng.uniform(0.0, 4.0, L)),
    "cost of a group": lambda rng, s, L: fields.LabelCost(2.5, labels=[0, L - 1]),
    "transitions": lambda rng, s, L: fields.LabelTransition(
        fields.grid_edges(s), symmetric(rng, L)
    ),
    "concave transitions": lambda rng, s, L: fields.LabelTransition(
        fields.grid_edges(s), symmetric(rng, L), np.sqrt
    ),
    "cardinality": lambda rng, s, L: fields.CardinalityPotential(
        rng.integers(0, L, s[0] * s[1]), rng.normal(0.0, 3.0, s[0] * s[1] + 1)
    ),
    "concave cardinality": lambda rng, s, L: fields.CardinalityPotential(
        rng.integers(0, L, s[0] * s[1]), 2.0 * np.sqrt(np.arange(s[0] * s[1] + 1.0))
    ),
    "cliques": lambda rng, s, L: fields.CliquePotential(
        np.stack([rng.permutation(s[0] * s[1])[:3] for _ in range(4)]),
        rng.normal(size=(4, L, L, L)),
    ),
    "cardinality of a label": lambda rng, s, L: fields.CardinalityPotential(
        np.zeros(s[0] * s[1], int), np.sqrt(np.arange(s[0] * s[1] + 1.0))
    ),
}
MIXTURES: dict[str, tuple[str, ...]] = {
    "unaries": (),
    **{name: (name,) for name in POTENTIALS},
    "segmentation": ("potts", "regions", "robust"),
    "submodular": ("potts", "potts of a graph", "regions", "robust", "label costs"),
    "pairs and costs": ("potts", "metric table", "cost of a group"),
    "pairs and counts": ("tables", "cardinality"),
    "cut and counts": ("potts", "concave cardinality"),
    "moves and counts": ("potts", "label costs", "cardinality of a label"),
    "everything": (
        *("potts", "tables", "some regions", "robust beyond half", "label costs"),
        *("transitions", "cardinality"),
    ),
}


def field_of(name: str, shape: Shape, L: int, seed: int = 0) -> fields.Field:
    """Return a field of a mixture's potentials, with empty caches."""
    rng = np.random.default_rng([seed, L, *shape, *name.encode()])
    field = fields.Field(rng.normal(0.0, 1.5, (shape[0] * shape[1], L)))
    for potential in MIXTURES[name]:
        field += POTENTIALS[potential](rng, shape, L)
    return field


def forbidden(shape: Shape, L: int) -> fields.Field:
    """Return unaries with infinite costs."""
    field = field_of("segmentation", shape, L, 1)
    unary = np.array(field.unary)
    rng = np.random.default_rng(0)
    unary[np.arange(len(unary)), rng.integers(0, L, len(unary))] = np.inf
    return field.with_unary(unary)


def ties(shape: Shape, L: int) -> fields.Field:
    unary = np.random.default_rng(0).integers(0, 3, (shape[0] * shape[1], L)).astype(float)
    return fields.Field(unary) + fields.Potts(fields.grid_edges(shape), 1.0)


def shifted(shape: Shape, L: int) -> fields.Field:
    """Return a field with a constant so large that digits are lost."""
    field = field_of("segmentation", shape, L, 2)
    return field.with_unary(field.unary + 1e7)


CORNERS: dict[str, Callable[[], fields.Field]] = {
    "forbidden 2": partial(forbidden, (3, 4), 2),
    "forbidden 3": partial(forbidden, (2, 4), 3),
    "ties": partial(ties, (2, 4), 3),
    "large ties": partial(ties, (7, 8), 4),
    "shifted": partial(shifted, (2, 4), 3),
    "drowned": lambda: (
        field_of("unaries", (2, 4), 3) + fields.Potts(fields.grid_edges((2, 4)), 1e5)
    ),
    "one label": lambda: field_of("potts", (2, 3), 1) + fields.LabelCost([1.5]),
    "one variable": lambda: field_of("unaries", (1, 1), 4) + fields.LabelCost(np.arange(4.0)),
    "no variables": lambda: fields.Field(np.zeros((0, 3))) + fields.LabelCost([1.0, 2.0, 3.0]),
}
SEEDS = 3
SIZES: dict[str, tuple[Shape, int]] = {
    "3x4 of 2": ((3, 4), 2),
    "2x4 of 3": ((2, 4), 3),
    "8x9 of 2": ((8, 9), 2),
    "7x8 of 4": ((7, 8), 4),
}


def all_fields() -> Iterator[tuple[str, Callable[[], fields.Field]]]:
    """Return names, and functions that make fields with empty caches."""
    for size, (shape, L) in SIZES.items():
        for name in MIXTURES:
            for seed in range(SEEDS):
                yield f"{size}/{name} {seed}", partial(field_of, name, shape, L, seed)
    for name, make in CORNERS.items():
        yield f"corner/{name}", make


def seen(make: Callable[[], fields.Field]) -> Any:
    field = make()
    rng = np.random.default_rng(0)
    labels = rng.integers(0, field.n_labels, (20, field.n_variables))
    return [field.is_submodular, field.energy(labels), field.energy(labels[0])]


def own_terms() -> Any:
    """Return every kind of term in a user's potential; None in older builds."""
    if not hasattr(fields, "Term"):
        return None
    rng = np.random.default_rng(0)
    chain = [[0, 1], [1, 2]]
    terms = [
        fields.ConstantTerm(1.5),
        fields.UnaryTerm(rng.normal(size=(3, 2))),
        fields.PottsTerm(chain, [0.5, 1.0]),
        fields.TableTerm(chain, rng.normal(size=(2, 2, 2))),
        fields.TransitionTerm(chain, [[0.0, 2.0], [2.0, 0.0]]),
        fields.CountTerm([0, 1, 0], [0, 3, 5], [0.0, 1.0, 1.0, 0.0, 2.0]),
        fields.RobustTerm([0, 0, 0], [2.0], [3.0]),
        fields.LabelTerm(3.0, [False, True]),
        fields.CardinalityTerm([0, 1, 0], [0.0, 2.0, 3.0, 3.5]),
        fields.CliqueTerm([[0, 1, 2]], rng.normal(size=(1, 2, 2, 2))),
    ]

    class Own(fields.Potential):
        def terms(self, n_variables: int, n_labels: int) -> list[Any]:
            return terms

    return seen(lambda: fields.Field(rng.normal(size=(3, 2))) + Own())


def there_and_back(make: Callable[[], fields.Field]) -> Any:
    """Return a field as the text of a UAI file, and the energies of the field read from it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "field.uai"
        refused = attempt(fields.write_uai, make(), path)
        if refused is not None:
            return refused
        return [path.read_text(), seen(lambda: fields.read_uai(path))]


def wide() -> Iterator[Problem]:
    yield "own terms", own_terms
    for name, make in all_fields():
        yield f"{name}/energies", partial(seen, make)
        if not name.startswith(("8x9", "7x8")):
            yield f"{name}/uai", partial(there_and_back, make)
    for shape, connectivity in (
        ((4, 5), None),
        ((4, 5), 8),
        ((3, 4, 2), 26),
        (7, 2),
        ((4, 5), [[0, 2]]),
    ):
        edges = fields.grid_edges(shape, connectivity)
        yield f"edges {shape} {connectivity}", lambda edges=edges: edges
    rng = np.random.default_rng(0)
    picture, numbers = rng.uniform(0.0, 255.0, (6, 7, 3)), rng.integers(0, 4, (6, 7))
    edges = fields.grid_edges((6, 7))
    yield "contrast", partial(fields.contrast_weights, picture, edges)
    yield "contrast of grey", partial(fields.contrast_weights, picture[..., 0], edges, 0.01)
    for connected in (False, True):
        yield (
            f"regions {connected}",
            partial(call, fields.regions_from_labels, numbers, ignore=0, connected=connected),
        )


def timed() -> Iterator[Problem]:
    rng = np.random.default_rng(0)
    field = field_of("submodular", (60, 80), 5)
    labels = rng.integers(0, 5, (500, 4800))
    yield "energies", partial(field.energy, labels)
    yield "grid_edges", partial(fields.grid_edges, (1200, 1200), 8)
    picture, edges = rng.uniform(0.0, 255.0, (400, 400, 3)), fields.grid_edges((400, 400), 8)
    yield "contrast_weights", partial(fields.contrast_weights, picture, edges)
    numbers = np.kron(rng.integers(0, 5, (60, 60)), np.ones((8, 8), int))
    yield "regions", partial(fields.regions_from_labels, numbers, connected=True)
