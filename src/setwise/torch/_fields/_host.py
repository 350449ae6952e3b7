"""The compiled solvers behind a layer: one field an image, threads over images."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setwise._foundation._arguments import FloatArray
from setwise._foundation._interrupts import whole
from setwise._foundation._pool import Pool
from setwise.fields._field import Field
from setwise.fields._potentials._potts import Potts
from setwise.fields._potentials._region_consistency import RegionConsistency
from setwise.inference._map._ground import ground
from setwise.inference._map._largest_energy import check_magnitude
from setwise.inference._map._result import MapResult
from setwise.inference._map._solve_map import solve_map
from setwise.inference._marginals._marginals import _lower_bound, _within_sight
from setwise.inference._marginals._methods import METHODS
from setwise.inference._marginals._options import Options
from setwise.inference._marginals._tree_descent import TreeDescent
from setwise.torch._fields._answer import Answer, Problem

_MOST_ARCS = 200_000  # of auxiliary nodes, where cuts are still quicker than passes


@dataclass(frozen=True, eq=False)
class _Solved:
    """The answer for one image."""

    p: FloatArray
    upper: float
    gap: float
    lower: float
    changes: FloatArray | None
    state: FloatArray | None
    is_exact: bool


def solve(
    problem: Problem,
    logits: Tensor,
    weights: Tensor,
    region_weights: Tensor,
    *,
    lower: bool = False,
    states: list[Any] | None = None,
    tol: float | None = None,
) -> Answer:
    """Logits (B, L, N), weights (B, K, M) and (B, K', R) of edges and regions, as fields.

    ``states`` are those of an answer for the same graph and regions, to go on from.
    """
    fields = fields_of(problem, logits, weights, region_weights)
    given = problem.tol if tol is None else tol
    threads = torch.get_num_threads()
    inner = threads if len(fields) == 1 else 1

    def one(b: int) -> _Solved:
        start = states[b] if states else None
        return _solved(fields[b], problem, given, start, lower, inner)

    if len(fields) > 1 and threads > 1:
        with Pool(min(threads, len(fields))) as pool:
            solved = pool.map(one, range(len(fields)))
    else:
        solved = [one(b) for b in range(len(fields))]
    n_labels, n = logits.shape[1:]
    shape = (len(solved), n, n_labels)
    p = torch.from_numpy(np.array([s.p for s in solved]).reshape(shape)).transpose(1, 2)

    def column(values: list[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float64)

    expected = None
    if problem.method == "trees":
        rows = np.array([s.changes for s in solved])
        expected = torch.from_numpy(rows.reshape(len(solved), len(problem.graph.edges)))
    return Answer(
        p,
        column([s.upper for s in solved]),
        column([s.gap for s in solved]),
        expected,
        column([s.lower for s in solved]) if lower else None,
        [s.state for s in solved],
        is_exact=all(s.is_exact for s in solved),
    )


def fields_of(
    problem: Problem, logits: Tensor, weights: Tensor, region_weights: Tensor
) -> list[Field]:
    """A field for each image: minus the logits, pairs, layers of regions."""
    graph = problem.graph
    unaries = -logits.detach().double().cpu().transpose(1, 2).contiguous().numpy()
    of_edges = weights.detach().double().cpu().flatten(1).numpy()[:, graph.position]
    layers = problem.regions.cpu().numpy()
    of_regions = region_weights.detach().double().cpu().numpy()
    fields = []
    for b, unary in enumerate(unaries):
        potentials: list[Any] = [Potts(graph.edges, of_edges[b])] if len(graph.edges) else []
        for k, alpha in enumerate(problem.alphas):
            present = np.unique(layers[b, k])
            present = present[present >= 0]
            potentials.append(RegionConsistency(layers[b, k], of_regions[b, k, present], alpha))
        fields.append(Field._of(unary, tuple(potentials), graph.sides))
    return fields


def _solved(
    field: Field,
    problem: Problem,
    tol: float,
    state: FloatArray | None,
    lower: bool,
    n_threads: int,
) -> _Solved:
    check_magnitude(field, 1.0, "float64", "logits and weights")
    parts = ground(field)
    method = method_of(problem, field)
    offset, margin = parts.over(1.0)
    options = Options(
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
    near, lost = _within_sight(parts.field, options)
    if method == "trees" and state is None:
        # Even shares, whatever the logits: so that the bound is one convex function of them.
        options = replace(options, state=TreeDescent(near, 1.0, n_threads).state())
    solution = whole(METHODS[method].run(near, options))
    p = solution.probabilities
    below = -np.inf
    if lower:
        raised, cut_short = _lower_bound(near, solution, options)
        if cut_short:
            raise KeyboardInterrupt
        below = options.below(raised.bound - lost)
    changes = None
    if method == "trees":
        changes = _expected_changes(near, p, solution.state, n_threads)
    above = options.above(solution.upper + lost)
    gap, exact = solution.gap + lost, method == "exact_binary"
    return _Solved(p, above, gap, below, changes, solution.state, exact)


def method_of(problem: Problem, field: Field) -> str:
    """The method that runs: two labels by cuts, where those of the regions are few."""
    if problem.method != "projection" or field.n_labels != 2:
        return problem.method
    sizes = [p.sizes for p in field.potentials if isinstance(p, RegionConsistency)]
    arcs = sum(int((size.astype(np.float64) ** 2).sum()) for size in sizes)
    return "exact_binary" if arcs <= _MOST_ARCS else "projection"


def _expected_changes(
    field: Field, p: FloatArray, state: FloatArray | None, n_threads: int
) -> FloatArray:
    """(E,): the probability that the ends of each edge differ, under the bound's own pairs."""
    if not any(isinstance(potential, Potts) for potential in field.potentials):
        return np.zeros(0)
    potts = next(potential for potential in field.potentials if isinstance(potential, Potts))
    descent = TreeDescent(field, 1.0, n_threads)
    assert state is not None
    descent.set_messages(state)
    term = potts.terms(*field.unary.shape)[0]
    energies = descent.expected_energies(term, np.ascontiguousarray(p, np.float64))
    ends = potts.edges
    free = 1.0 - np.einsum("ej,ej->e", p[ends[:, 0]], p[ends[:, 1]])
    weights = potts.weights
    return np.asarray(np.divide(energies, weights, out=free, where=weights > 0))


def best_labels(
    problem: Problem, logits: Tensor, weights: Tensor, region_weights: Tensor, *, tol: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Labels (B, N) of least energy, their energies and bounds (B,) on every energy."""
    fields = fields_of(problem, logits, weights, region_weights)
    threads = torch.get_num_threads()

    def one(field: Field) -> MapResult:
        return whole(solve_map(field, tol=tol, n_jobs=threads if len(fields) == 1 else 1))

    if len(fields) > 1 and threads > 1:
        with Pool(min(threads, len(fields))) as pool:
            found = pool.map(one, fields)
    else:
        found = [one(field) for field in fields]
    labels = np.array([result.labels for result in found], np.int64)
    values = [[result.value for result in found], [result.bound for result in found]]
    value, bound = torch.tensor(values, dtype=torch.float64).view(2, len(found))
    return torch.from_numpy(labels.reshape(len(found), problem.graph.n)), value, bound
