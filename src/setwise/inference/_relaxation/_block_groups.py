"""The terms of a field as groups of blocks over disjoint variables, which the kernel sweeps."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS
from setwise.fields._terms import CardinalityTerm, CountTerm
from setwise.inference._relaxation._paths import paths_of

# The kernel identifies the kinds of blocks by these numbers.
CHAIN, COUNT, SIMPLEX, CONVEX = range(4)
_NONE: IntArray = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Group:
    """Blocks over disjoint variables, as arguments of ``RelaxationState.add_group``."""

    kind: int
    variables: IntArray
    """the variables (P,), ordered by block"""
    starts: IntArray
    """the starts of the blocks, (B + 1,)"""
    parameters: FloatArray
    """CHAIN has half the weights to the next variable, COUNT and CONVEX gains, SIMPLEX costs."""
    slots: tuple[tuple[int, ...], ...]
    """For each projection of a block, the labels that it changes."""
    own: IntArray
    """The label of each variable that a block depends on, (P,), or empty."""
    low: FloatArray
    """A lower bound on each entry in the base polytope of its block, (P,)."""
    high: FloatArray

    @property
    def scale(self) -> float:
        """The approximate size of an entry of a block, whose variables share a cost."""
        size = float((self.high - self.low).mean()) / 4
        return size / len(self.variables) if self.kind == SIMPLEX else size

    def entries(self, values: FloatArray) -> FloatArray:
        """Return values (P,) of the variables for each entry of the blocks, in kernel order."""
        slots, sizes = max(len(self.slots), 1), np.diff(self.starts)
        # ordered by block, then by slot
        first = np.repeat(self.starts[:-1], slots)
        length = np.repeat(sizes, slots)
        at = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length - first, length)
        return np.asarray(values[at])


def path_groups(edges: IntArray, weights: FloatArray, shape: tuple[int, ...]) -> list[Group]:
    """Return the groups of Potts terms: for each label half a cut along disjoint paths."""
    n, n_labels = shape
    groups = []
    for paths in paths_of(edges, weights, n):
        half = paths.weights / 2
        # The sum of half the weights of the edges on both sides.
        largest = half + np.concatenate([[0.0], half[:-1]])
        slots = _each_label(n_labels)
        groups.append(
            Group(CHAIN, paths.vertices, paths.starts, half, slots, _NONE, -largest, largest)
        )
    return groups


def region_groups(term: CountTerm, n_labels: int) -> list[Group]:
    """Return the groups of a layer of regions: a concave function of each label's count."""
    sizes = np.diff(term.starts) - 1
    sizes = sizes[sizes > 0]
    if len(sizes) == 0:
        return []
    starts = np.concatenate([[0], np.cumsum(sizes)])
    # a difference across the tables of two regions is not a gain
    inside = np.ones(len(term.table), np.bool_)
    inside[term.starts[1:] - 1] = False
    gains = np.diff(term.table, append=0.0)[inside]
    low = np.repeat(np.minimum.reduceat(gains, starts[:-1]), sizes)
    high = np.repeat(np.maximum.reduceat(gains, starts[:-1]), sizes)
    return [Group(COUNT, term.members, starts, gains, _each_label(n_labels), _NONE, low, high)]


def cardinality_groups(term: CardinalityTerm) -> list[Group]:
    """Return one block of the pairs (i, center_i), whose table is concave or convex."""
    n = len(term.center)
    if n == 0:
        return []
    gains = -np.diff(term.table)[::-1]  # gains in the number N - k of variables at their center
    low, high = np.full(n, gains.min()), np.full(n, gains.max())
    kind = COUNT if term.is_submodular else CONVEX
    return [Group(kind, np.arange(n), np.array([0, n]), gains, (), term.center, low, high)]


def cost_groups(costs: dict[tuple[int, ...], float], n: int) -> list[Group]:
    """Return the groups of costs of labels and of sets of labels, which share their entries."""
    groups = []
    for single in (True, False):
        chosen = {
            key: cost for key, cost in costs.items() if cost > 0 and (len(key) == 1) == single
        }
        if not chosen:
            continue
        values = np.array(list(chosen.values()))
        low, high = np.zeros(n), np.full(n, values.sum())  # several costs may depend on one label
        whole = np.array([0, n])
        groups.append(Group(SIMPLEX, np.arange(n), whole, values, tuple(chosen), _NONE, low, high))
    return groups


def _each_label(n_labels: int) -> tuple[tuple[int, ...], ...]:
    return tuple((j,) for j in range(n_labels))


def rounding_of_blocks(
    groups: list[Group], scores: FloatArray, blocks: FloatArray, temperature: float
) -> float:
    r"""Return a bound on the amount by which rounded blocks may exceed the energy of any labelling.

    :math:`\log Z \le \sum_i \log \sum_j \exp(-s_{ij} / t)` needs :math:`s(A) \le F(A)` for each
    set A. The rounding error of a projection is relative to its argument, :math:`z = s_g +
    t\,\mathrm{logit}\,p`; that of a mean of n numbers, which a pool or a segment subtracts, is at
    most n times as large. A forbidden label is 750 t above the others, so that its rounding error
    dominates.

    Let s (N, L) be the ``scores`` without a constant for each row. Since :math:`|z_{ij}| \le
    |s_{g,ij}| + \max_k s_{ik} - \min_k s_{ik} + t \log L`, the bound is the sum over the groups g,
    whose largest blocks have :math:`n_g` variables, of

    .. math:: 2 \varepsilon (8 + n_g) \sum_i \max_j |z_{ij}|;

    The factor 2 accounts for momentum, with which a pass starts at an extrapolated point.
    """
    n, n_labels = scores.shape
    if n == 0 or n_labels == 1:
        return 0.0
    spread = float((scores.max(axis=1) - scores.min(axis=1)).sum())
    spread += n * temperature * log(n_labels)
    total, begin = 0.0, 0
    for group in groups:
        end = begin + len(group.variables) * max(len(group.slots), 1)
        entries = float(np.abs(blocks[begin:end]).sum(dtype=np.float64))
        total += (FEW_ROUNDINGS + int(np.diff(group.starts).max())) * (entries + spread)
        begin = end
    return 2.0 * EPS * total
