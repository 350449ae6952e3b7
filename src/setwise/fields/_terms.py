"""The few forms that every potential comes down to: what inference reads instead of potentials.

A potential translates itself into terms for a field of N variables and L labels; a method says
which kinds of terms it takes. So a new potential works with every method that takes its terms,
and a new method need not know the potentials. ``is_submodular`` is that of the term as a function
of the chosen pairs (variable, label).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, get_args

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise._foundation._certificate import EPS


def rounding_of_heights(heights: FloatArray) -> float:
    """What differences of a table may be off by: 1e-12 of its range, or the last digits kept."""
    if not len(heights):
        return 0.0
    return max(1e-12 * float(np.ptp(heights)), 4 * EPS * float(np.abs(heights).max()))


def _members(regions: IntArray) -> IntArray:
    order = np.argsort(regions, kind="stable")
    return order[regions[order] >= 0]


@dataclass(frozen=True, eq=False)
class ConstantTerm:
    """The same energy for every labelling."""

    is_submodular: ClassVar[bool] = True

    value: float


@dataclass(frozen=True, eq=False)
class UnaryTerm:
    """sum_i unary[i, x_i]; unary has shape (N, L) and is finite."""

    is_submodular: ClassVar[bool] = True

    unary: FloatArray


@dataclass(frozen=True, eq=False)
class PottsTerm:
    """sum_e weights[e] [x_i != x_j] over edges e = (i, j), weights >= 0."""

    is_submodular: ClassVar[bool] = True

    edges: IntArray
    """(E, 2), no self-loops; a repeated edge adds."""
    weights: FloatArray
    """(E,)"""


@dataclass(frozen=True, eq=False)
class TableTerm:
    """sum_e tables[e, x_i, x_j] over edges e = (i, j), where no Potts and unaries equal it."""

    is_submodular: ClassVar[bool] = False

    edges: IntArray
    """(E, 2), no self-loops."""
    tables: FloatArray
    """(E, L, L), finite."""


@dataclass(frozen=True, eq=False)
class CountTerm:
    """sum_r sum_j h_r(n_rj), n_rj the number of variables of region r with label j, h_r concave.

    The table of region r is ``table[starts[r] : starts[r + 1]]``, its size plus one entries.
    """

    is_submodular: ClassVar[bool] = True

    regions: IntArray
    """(N,): the region of each variable, -1 for none; regions 0..R-1 do not overlap."""
    starts: IntArray
    """(R + 1,)"""
    table: FloatArray
    """(sum of sizes + R,)"""

    @cached_property
    def members(self) -> IntArray:
        """(P,): the variables that are in a region, region after region."""
        return _members(self.regions)


@dataclass(frozen=True, eq=False)
class RobustTerm:
    """sum_r weights[r] min(1, min_j (size_r - n_rj) / truncation[r]), where no CountTerm equals it.

    That takes more than two labels, a truncation above half of a region's size (rounded up), and
    labels enough to leave more than that half outside the commonest one.
    """

    is_submodular: ClassVar[bool] = False

    regions: IntArray
    weights: FloatArray
    """(R,), >= 0"""
    truncation: FloatArray
    """(R,), > 0"""

    @cached_property
    def members(self) -> IntArray:
        """(P,): the variables that are in a region, region after region."""
        return _members(self.regions)


@dataclass(frozen=True, eq=False)
class LabelTerm:
    """cost [some variable takes a label in the group], cost >= 0."""

    is_submodular: ClassVar[bool] = True

    cost: float
    labels: BoolArray
    """(L,)"""


@dataclass(frozen=True, eq=False)
class TransitionTerm:
    """sum over pairs a < b of costs[a, b] h(n_ab), n_ab the weight of the edges that join a and b.

    h is concave and increasing with h(0) = 0; None stands for min(1, n).
    """

    is_submodular: ClassVar[bool] = False

    edges: IntArray
    """(E, 2)"""
    costs: FloatArray
    """(L, L), symmetric, >= 0, zero on the diagonal."""
    concave: Callable[[FloatArray], FloatArray] | None


@dataclass(frozen=True, eq=False)
class CardinalityTerm:
    """table[k], k the number of variables with x_i != center_i: any function of it."""

    center: IntArray
    """(N,)"""
    table: FloatArray
    """(N + 1,)"""

    @cached_property
    def is_submodular(self) -> bool:
        """Whether the table is concave: its second differences at most rounding above zero."""
        slack = rounding_of_heights(self.table)
        return bool((np.diff(self.table, 2) <= slack).all())


Term = (
    ConstantTerm
    | UnaryTerm
    | PottsTerm
    | TableTerm
    | CountTerm
    | RobustTerm
    | LabelTerm
    | TransitionTerm
    | CardinalityTerm
)

KINDS: tuple[type, ...] = get_args(Term)
