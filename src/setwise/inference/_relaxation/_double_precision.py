"""A pass in double precision, which proves the bound of blocks of single precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray
from setwise._foundation._certificate import gap_over_value
from setwise.inference._relaxation._block_groups import Group, rounding_of_blocks
from setwise.inference._relaxation._relaxation import Relaxation, fill


@dataclass(frozen=True, eq=False)
class SmoothedPoint:
    """The smoothed objective at a point of the base polytope, with its duality gap.

    Attributes
    ----------
    probabilities : array of shape (N, L)
        p_ij proportional to exp(-s_ij / t).
    objective : float
        t sum_i log sum_j exp(-s_ij / t), without the constant of the energy.
    gap : float
        The Lovász extension at p minus <s, p>.
    relative_gap : float
        gap / max(t, abs(objective with min_j u_ij = 0)).
    rounding : float
        The possible rounding error of the objective, without that of its sums.
    """

    probabilities: FloatArray
    objective: float
    gap: float
    relative_gap: float
    rounding: float


def double_pass(
    relaxation: Relaxation, temperature: float, blocks: FloatArray, n_threads: int
) -> SmoothedPoint:
    r"""Sweep each group once, in double precision, from ``blocks`` (ordered by group).

    Rounded blocks lie only near the base polytope, but :math:`\log Z \le \sum_i \log \sum_j
    \exp(-s_{ij} / t)` needs :math:`s(A) \le F(A)` for every set A. A step ends with a projection.
    So after one step per group, s lies in the base polytope, and the objective has not increased.
    The groups are swept one at a time: memory is about 6 arrays of N L float64, for any number of
    groups.
    """
    offsets = relaxation.unary.min(axis=1)
    unary = relaxation.finite_unary(temperature) - offsets[:, None]
    ends = np.cumsum(
        [len(group.variables) * max(len(group.slots), 1) for group in relaxation.groups]
    )
    parts = (
        list(zip(relaxation.groups, np.split(blocks, ends[:-1]), strict=True)) if len(ends) else []
    )
    scores = unary.copy()
    for group, part in parts:
        _alone(scores, group, part, n_threads).scores(scores)
    for group, part in parts:
        _alone(scores, group, -part, n_threads).scores(scores)  # scores without this group
        kernel = _alone(scores, group, part, n_threads)
        kernel.sweep(temperature, 0.0, n_threads)
        kernel.scores(scores)
    whole = _core.RelaxationState(scores)
    height, _ = whole.evaluate(temperature, n_threads)
    p: FloatArray = np.empty(scores.shape)
    whole.probabilities(temperature, p, n_threads)
    rounding = rounding_of_blocks(relaxation.groups, scores, blocks, temperature)
    scores -= unary
    gap = -float(np.vdot(scores, p))
    for group, part in parts:
        gap += _alone(unary, group, np.zeros(len(part)), n_threads).gap(p, n_threads)
    gap = max(0.0, gap)
    return SmoothedPoint(
        probabilities=p,
        objective=height - float(offsets.sum()),
        gap=gap,
        relative_gap=gap_over_value(gap, height, temperature),
        rounding=2.0 * rounding,  # each group is subtracted from the scores and added again
    )


def _alone(unary: FloatArray, group: Group, blocks: FloatArray, n_threads: int) -> Any:
    """Return the state of a single group."""
    state = fill(_core.RelaxationState, unary, [group])
    state.set_blocks(blocks.astype(np.float64), n_threads)
    return state
