"""The compiled solvers of the layers: one field per image, and threads over the images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from setwise._foundation._arguments import FloatArray
from setwise._foundation._search import completed
from setwise._foundation._threads import Pool
from setwise.fields._field import Field
from setwise.fields._potentials._potts import Potts
from setwise.fields._potentials._region_consistency import RegionConsistency
from setwise.fields._terms import PottsTerm
from setwise.inference._conditioning._conditioned import Conditioned
from setwise.inference._conditioning._magnitude import check_magnitude
from setwise.inference._map._result import MapResult
from setwise.inference._map._solve_map import solve_map
from setwise.inference._marginals._marginals import with_limited_costs
from setwise.inference._marginals._methods import METHODS
from setwise.inference._marginals._search import MarginalsOptions
from setwise.inference._marginals._trees._forest_bound import lower_bound
from setwise.inference._marginals._trees._tree_descent import TreeDescent
from setwise.torch._fields._problem import FieldAnswer, FieldProblem

T = TypeVar("T")

_MOST_ARCS = 200_000  # up to this number of arcs of auxiliary nodes, cuts are faster than passes


@dataclass(frozen=True, eq=False)
class _Solved:
    """The solution for one image."""

    p: FloatArray
    upper: float
    gap: float
    lower: float
    changes: FloatArray | None
    state: FloatArray | None
    is_exact: bool


def solve(
    problem: FieldProblem,
    logits: Tensor,
    weights: Tensor,
    region_weights: Tensor,
    *,
    lower: bool = False,
    states: list[Any] | None = None,
    tol: float | None = None,
) -> FieldAnswer:
    """Solve the fields of logits (B, L, N), weights (B, K, M) and region weights (B, K', R).

    ``states`` are the states of an earlier answer for the same graph and regions, for a warm start.
    """
    fields = fields_of(problem, logits, weights, region_weights)
    given = problem.tol if tol is None else tol

    def one(b: int, threads: int) -> _Solved:
        start = states[b] if states else None
        return _solved(fields[b], problem, given, start, lower, threads)

    solved = _of_images(one, len(fields))
    n_labels, n = logits.shape[1:]
    shape = (len(solved), n, n_labels)
    p = torch.from_numpy(np.array([s.p for s in solved]).reshape(shape)).transpose(1, 2)

    def column(values: list[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float64)

    expected = None
    if problem.method == "trees":
        rows = np.array([s.changes for s in solved])
        expected = torch.from_numpy(rows.reshape(len(solved), len(problem.graph.edges)))
    return FieldAnswer(
        p,
        column([s.upper for s in solved]),
        column([s.gap for s in solved]),
        expected,
        column([s.lower for s in solved]) if lower else None,
        [s.state for s in solved],
        is_exact=all(s.is_exact for s in solved),
    )


def fields_of(
    problem: FieldProblem, logits: Tensor, weights: Tensor, region_weights: Tensor
) -> list[Field]:
    """Return a field for each image: unaries (minus the logits), pairs and layers of regions."""
    graph = problem.graph
    unaries = -logits.detach().cpu().double().transpose(1, 2).contiguous().numpy()
    of_edges = weights.detach().cpu().double().flatten(1).numpy()[:, graph.position]
    layers = problem.regions.cpu().numpy()
    of_regions = region_weights.detach().cpu().double().numpy()
    fields = []
    for b, unary in enumerate(unaries):
        potentials: list[Any] = [Potts(graph.edges, of_edges[b])] if len(graph.edges) else []
        for k, alpha in enumerate(problem.alphas):
            present = np.unique(layers[b, k])
            present = present[present >= 0]
            potentials.append(RegionConsistency(layers[b, k], of_regions[b, k, present], alpha))
        fields.append(Field._of(unary, tuple(potentials), graph.sides))
    return fields


def _of_images(solve_one: Callable[[int, int], T], number: int) -> list[T]:
    """Return ``solve_one(image, n_threads)`` for each image: torch's threads share the images."""
    threads = torch.get_num_threads()
    if number > 1 and threads > 1:
        with Pool(min(threads, number)) as pool:
            return pool.map(lambda b: solve_one(b, 1), range(number))
    return [solve_one(b, threads) for b in range(number)]


def _solved(
    field: Field,
    problem: FieldProblem,
    tol: float,
    state: FloatArray | None,
    lower: bool,
    n_threads: int,
) -> _Solved:
    check_magnitude(field, 1.0, "float64", "logits and weights")
    conditioned = Conditioned.of(field)
    method = method_of(problem, field)
    offset, margin = conditioned.constant_over(1.0)
    options = MarginalsOptions(
        tol=tol,
        max_iter=problem.max_iter,
        temperature=1.0,
        n_threads=n_threads,
        dtype="float64",
        callback=None,
        random=np.random.default_rng(0),
        state=state,
        offset=offset,
        margin=margin,
    )
    near, lost = with_limited_costs(conditioned, options)
    if method == "trees" and state is None:
        # The edges get equal shares for all logits, so that the bound is one convex function.
        options = replace(options, state=TreeDescent(near, 1.0, n_threads).state())
    solution = METHODS[method].run(near, options)
    if solution.cut_short:
        raise KeyboardInterrupt
    p = solution.probabilities
    below = -np.inf
    if lower:
        raised, cut_short = lower_bound(near, solution, options)
        if cut_short:
            raise KeyboardInterrupt
        below = options.below(raised.bound - lost)
    changes = None
    if method == "trees":
        changes = _expected_changes(near, p, solution.state, n_threads)
    above = options.above(solution.upper + lost)
    gap, exact = solution.gap + lost, method == "exact_binary"
    return _Solved(p, above, gap, below, changes, solution.state, exact)


def method_of(problem: FieldProblem, field: Field) -> str:
    """Return the method to run: cuts for two labels, unless regions need too many arcs."""
    if problem.method != "projection" or field.n_labels != 2:
        return problem.method
    sizes = [p.sizes for p in field.potentials if isinstance(p, RegionConsistency)]
    arcs = sum(int((size.astype(np.float64) ** 2).sum()) for size in sizes)
    return "exact_binary" if arcs <= _MOST_ARCS else "projection"


def _expected_changes(
    field: Field, p: FloatArray, state: FloatArray | None, n_threads: int
) -> FloatArray:
    """Return the probability (E,) that the ends of each edge differ, by the pair marginals."""
    terms = [term for _, term in field._terms() if isinstance(term, PottsTerm)]
    if not terms:
        return np.zeros(0)
    (potts,) = terms
    descent = TreeDescent(field, 1.0, n_threads)
    assert state is not None
    descent.set_messages(state)
    energies = descent.expected_energies(potts, np.ascontiguousarray(p, np.float64))
    ends = potts.edges
    free = 1.0 - np.einsum("ej,ej->e", p[ends[:, 0]], p[ends[:, 1]])
    weights = potts.weights
    return np.asarray(np.divide(energies, weights, out=free, where=weights > 0))


def best_labels(
    problem: FieldProblem, logits: Tensor, weights: Tensor, region_weights: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return labels (B, N) of least energy, their energies (B,) and lower bounds (B,)."""
    fields = fields_of(problem, logits, weights, region_weights)

    def one(b: int, threads: int) -> MapResult:
        return completed(solve_map(fields[b], tol=problem.tol, n_jobs=threads))

    found = _of_images(one, len(fields))
    labels = np.array([result.labels for result in found], np.int64)
    values = [[result.value for result in found], [result.bound for result in found]]
    value, bound = torch.tensor(values, dtype=torch.float64).view(2, len(found))
    return torch.from_numpy(labels.reshape(len(found), problem.graph.n)), value, bound
