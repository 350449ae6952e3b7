"""The terms of a field as groups of blocks over disjoint variables: what the kernel sweeps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.fields._terms import CardinalityTerm, CountTerm
from setwise.inference._relaxation._paths import paths_of

CHAIN, COUNT, SIMPLEX, CONVEX = 0, 1, 2, 3
_NONE: IntArray = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Group:
    """Blocks over disjoint variables, as the kernel takes them (``RelaxationState.add_group``)."""

    kind: int
    variables: IntArray
    """(P,), block after block"""
    starts: IntArray
    """(B + 1,)"""
    parameters: FloatArray
    """CHAIN: half the weight to the next; COUNT, CONVEX: gains h(k + 1) - h(k); SIMPLEX: costs."""
    slots: tuple[tuple[int, ...], ...]
    """The labels that one projection moves, for each of the projections of a block."""
    own: IntArray
    """(P,): the one label of each variable that a block is about, or empty."""
    low: FloatArray
    """(P,): no entry of a block's base polytope is below."""
    high: FloatArray

    @property
    def scale(self) -> float:
        """About what an entry of a block is; a cost is shared by all variables."""
        reach = float((self.high - self.low).mean()) / 4
        return reach / len(self.variables) if self.kind == SIMPLEX else reach

    def entries(self, values: FloatArray) -> FloatArray:
        """Values (P,) of the variables, for each entry of the blocks as the kernel has them."""
        slots, sizes = max(len(self.slots), 1), np.diff(self.starts)
        # block after block, in each the slots one after the other
        first = np.repeat(self.starts[:-1], slots)
        length = np.repeat(sizes, slots)
        at = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length - first, length)
        return np.asarray(values[at])


def path_groups(edges: IntArray, weights: FloatArray, shape: tuple[int, ...]) -> list[Group]:
    """Potts terms: for each label half a cut along paths that share no variable."""
    n, n_labels = shape
    groups = []
    for paths in paths_of(edges, weights, n):
        half = paths.weights / 2
        reach = half + np.concatenate([[0.0], half[:-1]])  # the edges on both sides
        slots = _each_label(n_labels)
        groups.append(Group(CHAIN, paths.vertices, paths.starts, half, slots, _NONE, -reach, reach))
    return groups


def region_groups(term: CountTerm, n_labels: int) -> list[Group]:
    """A layer of regions: for each label a concave function of its count in each region."""
    sizes = np.diff(term.starts) - 1
    sizes = sizes[sizes > 0]
    if len(sizes) == 0:
        return []
    starts = np.concatenate([[0], np.cumsum(sizes)])
    # a step from one region's table to the next is no gain
    inside = np.ones(len(term.table), np.bool_)
    inside[term.starts[1:] - 1] = False
    gains = np.diff(term.table, append=0.0)[inside]
    low = np.repeat(np.minimum.reduceat(gains, starts[:-1]), sizes)
    high = np.repeat(np.maximum.reduceat(gains, starts[:-1]), sizes)
    return [Group(COUNT, term.members, starts, gains, _each_label(n_labels), _NONE, low, high)]


def cardinality_groups(term: CardinalityTerm) -> list[Group]:
    """One block of the pairs (i, center_i); the table is concave, or convex."""
    n = len(term.center)
    if n == 0:
        return []
    gains = -np.diff(term.table)[::-1]  # of the number N - k of variables at their center
    low, high = np.full(n, gains.min()), np.full(n, gains.max())
    kind = COUNT if term.is_submodular else CONVEX
    return [Group(kind, np.arange(n), np.array([0, n]), gains, (), term.center, low, high)]


def cost_groups(costs: dict[tuple[int, ...], float], n: int) -> list[Group]:
    """Costs of labels, and costs of sets of labels, whose entries all labels of the set share."""
    groups = []
    for single in (True, False):
        chosen = {
            key: cost for key, cost in costs.items() if cost > 0 and (len(key) == 1) == single
        }
        if not chosen:
            continue
        values = np.array(list(chosen.values()))
        low, high = np.zeros(n), np.full(n, values.sum())  # several may move one label
        whole = np.array([0, n])
        groups.append(Group(SIMPLEX, np.arange(n), whole, values, tuple(chosen), _NONE, low, high))
    return groups


def _each_label(n_labels: int) -> tuple[tuple[int, ...], ...]:
    return tuple((j,) for j in range(n_labels))
