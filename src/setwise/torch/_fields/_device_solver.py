"""The solvers on a CUDA device. The host solves the fields that they do not support."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from setwise.torch._cuda._fields._grid import fits, grid_bound
from setwise.torch._cuda._fields._regions import region_bound
from setwise.torch._cuda._fields._trees import tree_bound
from setwise.torch._fields._problem import FieldAnswer, FieldProblem, levelled

# The least tolerances of the solvers, which compute in single precision. Chosen by hand; no
# measurement is on record.
_PRECISION = 1e-5
_TREE_PRECISION = 1e-6
# With two labels the pair marginals are optimal given those of their ends, so the gap is of second
# order in the error.
_BINARY_TREE_PRECISION = 1e-10
_REGION_PRECISION = 3e-5


def solve(
    problem: FieldProblem,
    logits: Tensor,
    weights: Tensor,
    region_weights: Tensor,
    *,
    lower: bool = False,
    states: Any = None,
    tol: float | None = None,
) -> FieldAnswer | None:
    """Solve fields that a device solver supports; return None for others, or for lower bounds."""
    graph = problem.graph
    if graph.sides is None or lower or (problem.alphas and problem.method != "projection"):
        return None
    index = logits.device.index
    here = nullcontext() if index == torch.cuda.current_device() else torch.cuda.device(index)
    with here:
        if problem.method == "trees":
            return _trees(problem, logits.detach(), weights.detach(), states, tol)
        if problem.alphas:
            return _regions(problem, logits.detach(), weights, region_weights, states, tol)
        return _grid(problem, logits.detach(), weights, states, tol)


def _grid(
    problem: FieldProblem, logits: Tensor, weights: Tensor, states: Any, tol: float | None
) -> FieldAnswer | None:
    """Solve grids of pairs by projection."""
    graph = problem.graph
    assert graph.sides is not None
    found = grid_bound(
        logits,
        weights.detach(),
        graph.sides,
        graph.directions,
        max(problem.tol if tol is None else tol, _PRECISION),
        problem.max_iter,
        states,
    )
    if found is None:
        return None
    return FieldAnswer(found.p, found.upper, found.gap, states=found.flow, least_tol=_PRECISION)


def _trees(
    problem: FieldProblem, logits: Tensor, weights: Tensor, states: Any, tol: float | None
) -> FieldAnswer | None:
    """Solve images with four neighbours, and chains, by trees."""
    graph = problem.graph
    sides = (1,) * (2 - len(graph.sides or ())) + (graph.sides or ())
    ways = [(0,) * (2 - len(way)) + way for way in graph.directions]
    if len(sides) != 2 or any(way not in ((0, 1), (1, 0)) for way in ways):
        return None
    nothing = torch.zeros_like(logits[:, 0])
    along = {way: weights[:, k] for k, way in enumerate(ways)}
    precision = _BINARY_TREE_PRECISION if logits.shape[1] == 2 else _TREE_PRECISION
    found = tree_bound(
        logits,
        along.get((0, 1), nothing),
        along.get((1, 0), nothing),
        (sides[0], sides[1]),
        max(problem.tol if tol is None else tol, precision),
        problem.max_iter,
        states,
    )
    if found is None:
        return None
    differ = found.differ[:, [int(way == (1, 0)) for way in ways]]
    return FieldAnswer(
        found.p,
        found.upper,
        found.gap,
        graph.of_edges(differ),
        states=found.messages,
        least_tol=precision,
    )


def _regions(
    problem: FieldProblem,
    logits: Tensor,
    weights: Tensor,
    region_weights: Tensor,
    states: Any,
    tol: float | None,
) -> FieldAnswer | None:
    """Solve grids with layers of regions by projection."""
    graph = problem.graph
    if not problem.n_regions or graph.sides is None:
        return None
    if not fits(logits, graph.sides, graph.directions):
        return None
    near = levelled(logits)
    found = region_bound(
        near.logits,
        weights.detach(),
        graph.sides,
        graph.directions,
        problem.regions,
        region_weights.detach(),
        problem.alphas,
        max(problem.tol if tol is None else tol, _REGION_PRECISION),
        problem.max_iter,
        states,
    )
    if found is None:
        return None
    upper = near.above(found.upper)
    return FieldAnswer(found.p, upper, found.gap, states=found.state, least_tol=_REGION_PRECISION)
