"""The solvers on a CUDA device; what they do not take is for the host."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from setwise.torch._cuda._field import fits, grid_bound
from setwise.torch._cuda._regions import region_bound
from setwise.torch._cuda._trees import tree_bound
from setwise.torch._fields._answer import Answer, Problem

_PRECISION = 1e-5  # the relative gap that single precision reaches
_TREE_PRECISION = 1e-6
_BINARY_TREE_PRECISION = 1e-10  # pairs are the best of their ends there: the gap is of second order
_REGION_PRECISION = 3e-5
_MOST_LEVEL = 2.0**28


def solve(
    problem: Problem,
    logits: Tensor,
    weights: Tensor,
    region_weights: Tensor,
    *,
    lower: bool = False,
    states: Any = None,
    tol: float | None = None,
) -> Answer | None:
    """As the host's; None where the device has no way, or a lower bound is due."""
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
    problem: Problem, logits: Tensor, weights: Tensor, states: Any, tol: float | None
) -> Answer | None:
    """Grids of pairs alone."""
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
    return Answer(found.p, found.upper, found.gap, states=found.flow, least_tol=_PRECISION)


def _trees(
    problem: Problem, logits: Tensor, weights: Tensor, states: Any, tol: float | None
) -> Answer | None:
    """By trees: images with four neighbours, and chains."""
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
    return Answer(
        found.p,
        found.upper,
        found.gap,
        graph.of_edges(differ),
        states=found.messages,
        least_tol=precision,
    )


def _regions(
    problem: Problem,
    logits: Tensor,
    weights: Tensor,
    region_weights: Tensor,
    states: Any,
    tol: float | None,
) -> Answer | None:
    """Grids with layers of regions."""
    graph = problem.graph
    if not problem.n_regions or graph.sides is None:
        return None
    if not fits(logits, graph.sides, graph.directions):
        return None
    near, constant = _grounded(logits)
    found = region_bound(
        near,
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
    upper = _sum_above(found.upper, constant)
    return Answer(found.p, upper, found.gap, states=found.state, least_tol=_REGION_PRECISION)


def _grounded(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Logits in double precision less what the labels of a pixel have in common; its sum (B,).

    What is in single precision would lose its digits to it. In steps of 64, and of no more than
    2^28, 2^31 pixels of it sum up exactly. In single precision the difference itself would be
    rounded, of labels far below the best, which couplings may choose all the same.
    """
    wide = logits.double()
    level = (64 * torch.trunc(wide.amax(1, keepdim=True) / 64)).clamp(-_MOST_LEVEL, _MOST_LEVEL)
    return wide - level, level.sum((1, 2))


def _sum_above(bound: Tensor, constant: Tensor) -> Tensor:
    """Their sum, rounded up."""
    total = bound + constant
    above = torch.nextafter(total, torch.full_like(total, torch.inf))
    return torch.where(constant == 0, bound, above)
