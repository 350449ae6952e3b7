r"""Prices of potentials beyond what a labelling in hand costs, and the digits that they take.

A search adds and subtracts the terms of a field, as a cut does with a table that it splits into
unaries and an edge. What it proves is off by the rounding of the largest of them, even where no
good labelling pays it: a table with an entry of :math:`10^{20}` beside entries of 1 would hide
these. So such prices are cut down to what the labelling makes unreachable, and the search is made
again; where that is not enough the bound is lowered by what rounding may have done to it.
"""

from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise._foundation._certificate import EPS, relative_gap
from setwise.fields._base import Potential
from setwise.fields._field import Field
from setwise.fields._potentials._cardinality import CardinalityPotential
from setwise.fields._potentials._label_cost import LabelCost
from setwise.fields._potentials._label_transition import LabelTransition
from setwise.fields._potentials._pairwise import Pairwise
from setwise.fields._potentials._potts import Potts
from setwise.fields._potentials._region_consistency import RegionConsistency
from setwise.fields._potentials._robust_pn import RobustPn
from setwise.inference._map._energy_scale import NEGLIGIBLE, trivial_of_tables
from setwise.inference._map._largest_energy import largest_energy
from setwise.inference._map._result import MapResult

# Prices are cut down to so many times what the labelling in hand costs.
_REACH = 1024.0
# How many roundings of its size a price goes through, at least.
_ROUNDINGS = 16.0


def out_of_reach(field: Field, result: MapResult, energy: float) -> bool:
    """Whether the rounding of a price is more than a negligible share of what an energy pays."""
    room = energy - trivial_of_tables(field)
    # a cut leaves the weights of edges alone
    return rounding_of_prices(field, by_cut=result.method == "cut") > NEGLIGIBLE * room


def within_reach(field: Field, value: float) -> Field:
    r"""A field with the same least energy and best labellings, no price far above ``value``.

    ``field`` is grounded, ``value`` the energy of a labelling. A potential that alone costs more
    than :math:`c = 1024 (\text{value} - b)`, b the least that all terms cost, is in no good
    labelling, and still is in none when it costs c or more. Of a table, entries off the diagonal
    are cut down to 2 c, so that what was submodular for two labels stays so.
    """
    return _limited(field, _REACH * (value - trivial_of_tables(field)))


def within_sight(field: Field, temperature: float, value: float) -> Field:
    r"""A field with the same log Z and marginals to the last digit, its prices cut down.

    With a labelling of energy ``value`` and b the least that all terms cost, prices of
    :math:`\text{value} - b + t (N \log L + 745)` leave all labellings that pay them a share of
    less than :math:`e^{-745}` of Z. Cut down, they raise Z, by no more.
    """
    nats = field.n_variables * log(field.n_labels) + 745.0
    limit = value - trivial_of_tables(field) + temperature * nats
    near = _limited(field, limit)
    kept = [
        before if before.is_submodular and not after.is_submodular else after
        for before, after in zip(field.potentials, near.potentials, strict=True)
    ]
    return Field._of(near.unary, tuple(kept))


def digits_lost(field: Field) -> float:
    """What rounding may do to a bound that is computed from all prices of a field, at most."""
    bare = field.with_unary(np.where(np.isfinite(field.unary), 0.0, np.inf))
    return _ROUNDINGS * EPS * (field.n_variables + 1) * (_tables(field) + largest_energy(bare))


def rounding_of_prices(field: Field, *, by_cut: bool = False) -> float:
    """The rounding of the largest price of a potential."""
    largest = max((_largest(p, by_cut) for p in field.potentials), default=0.0)
    return rounding_of(largest)


def rounding_of(price: float) -> float:
    """What is lost of the digits of sums that a price is in."""
    return _ROUNDINGS * EPS * abs(price)


def rounding_of_unaries(field: Field) -> float:
    """The rounding of the largest unary that forbids nothing."""
    finite = np.isfinite(field.unary)
    return _ROUNDINGS * EPS * float(field.unary.max(initial=0.0, where=finite))


def _limited(field: Field, limit: float) -> Field:
    if not limit > 0.0:
        return field
    potentials = tuple(_cut_down(potential, field, limit) for potential in field.potentials)
    unary = np.where(field.unary < np.inf, np.minimum(field.unary, limit), np.inf)
    return Field._of(unary, potentials)


def without_lost_digits(field: Field, result: MapResult) -> MapResult:
    """The result with a bound that is below what rounding may have done to it, and its claims."""
    trivial = trivial_of_tables(field)
    bound = min(max(result.bound - digits_lost(field), trivial), result.value)
    share = relative_gap(result.value - bound, result.value - trivial)
    return replace(result, bound=bound, relative_gap=share, exact=bound == result.value)


def remeasured(field: Field, result: MapResult) -> MapResult:
    """The result with its gap against the least entries of tables as they are given."""
    share = relative_gap(result.gap, result.value - trivial_of_tables(field))
    return replace(result, relative_gap=share, exact=result.exact and share <= NEGLIGIBLE)


def _tables(field: Field) -> float:
    """The sum of the largest entries of all tables."""
    tables = [p for p in field.potentials if isinstance(p, Pairwise) and len(p.edges)]
    return sum(
        float(np.abs(p.tables).max(axis=(-2, -1)).sum())
        * (len(p.edges) if p.tables.ndim == 2 else 1)
        for p in tables
    )


def _largest(potential: Potential, by_cut: bool) -> float:
    """The largest number that a search computes with on the potential's account."""
    match potential:
        case Potts(weights=weights):
            return 0.0 if by_cut else float(weights.max(initial=0.0))
        case Pairwise(tables=tables):
            return float(np.abs(tables).max(initial=0.0))
        case CardinalityPotential(table=table):
            return float(np.abs(table).max(initial=0.0))
        case RegionConsistency() | RobustPn():
            return float(potential.weight.max(initial=0.0))
        case LabelCost(costs=costs) | LabelTransition(costs=costs):
            return float(costs.max(initial=0.0))
    return 0.0


def _cut_down(potential: Potential, field: Field, limit: float) -> Potential:
    """The potential, where it costs more than ``limit`` only so much that it is not less."""
    match potential:
        case Potts(edges=edges, weights=weights):
            return Potts(edges, np.minimum(weights, limit))
        case Pairwise(edges=edges, tables=tables):
            highest = limit * (2.0 - np.eye(potential.n_labels))
            return Pairwise(edges, np.minimum(tables, highest))
        case CardinalityPotential(center=center, table=table):
            return CardinalityPotential(center, np.minimum(table, limit))
        case RobustPn(regions=regions, weight=weight, truncation=truncation):
            least = np.minimum(1.0 / truncation, 1.0)  # of a region of two labels, by weight
            return RobustPn(regions, _at_most(weight, limit, least), truncation)
        case RegionConsistency(regions=regions, weight=weight, alpha=alpha):
            sizes = potential.sizes.astype(np.float64)
            least = (sizes - 1.0) ** alpha + 1.0 - sizes**alpha
            return RegionConsistency(regions, _at_most(weight, limit, least), alpha)
        case LabelCost(costs=costs, labels=None) if field.n_labels > 1:
            return LabelCost(np.minimum(costs, limit))
        case LabelTransition(edges=edges, costs=costs, concave=concave, heights=heights):
            first = float(heights[1:2].sum())
            return LabelTransition(
                edges, np.minimum(costs, limit / first) if first > 0.0 else costs, concave
            )
    return potential


def _at_most(weights: FloatArray, limit: float, least: FloatArray) -> FloatArray:
    """Weights whose least prices are cut down to the limit, up to rounding."""
    return np.where(weights * least > 2.0 * limit, 2.0 * limit / np.maximum(least, EPS), weights)
