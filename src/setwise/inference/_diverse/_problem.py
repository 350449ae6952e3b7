"""The problem of one step of a diverse list, split into the parts that a search needs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from setwise._foundation._certificate import EPS, relative_gap
from setwise.diversities._addition import Addition
from setwise.fields._base import Potential
from setwise.fields._field import Field
from setwise.fields._terms import CardinalityTerm
from setwise.inference._conditioning._conditioned import Conditioned
from setwise.inference._conditioning._magnitude import (
    NEGLIGIBLE,
    given_bound,
    rounding_of,
    rounding_of_bound,
    rounding_of_costs,
)
from setwise.inference._map._methods import METHODS
from setwise.inference._map._options import as_found, lost_of
from setwise.inference._map._result import Found, MapResult


@dataclass(frozen=True, eq=False)
class StepProblem:
    r"""The problem min :math:`E(y) - d(y \mid S)`: a field, and the terms of the diversity.

    ``balls`` are the functions of a count that are not concave, both the field's own and the added
    ones. No cut can contain them, so the search uses multipliers. Any potential that consists of
    such a term alone is a ball. ``others`` are all other potentials.
    """

    base: Field
    addition: Addition
    field: Field
    """The sum of both."""
    balls: tuple[CardinalityTerm, ...]
    others: tuple[Potential, ...]

    @classmethod
    def of(cls, base: Field, addition: Addition | None = None) -> StepProblem:
        """Return the problem of a field with an addition, or without one."""
        addition = Addition() if addition is None else addition
        field = addition.added_to(base)
        balls, apart = [], set()
        for potential in (*base.potentials, *addition.counts):
            match field._terms_of(potential):
                case (CardinalityTerm(is_submodular=False) as ball,):
                    balls.append(ball)
                    apart.add(id(potential))
        others = tuple(p for p in field.potentials if id(p) not in apart)
        return cls(base, addition, field, tuple(balls), others)

    @property
    def height(self) -> float:
        """The largest height of a ball, which is the range of its table."""
        return max(float(np.ptp(ball.table)) for ball in self.balls)

    def rest(self) -> Field:
        """Return the field without the balls."""
        return Field._of(self.field.unary, self.others) if self.balls else self.field

    def _largest_change(self) -> float:
        """Return the largest change of a finite unary by the addition, after rounding."""
        if not self.addition.prices:
            return 0.0
        allowed = np.isfinite(self.base.unary)
        changes = self.field.unary[allowed] - self.base.unary[allowed]
        return float(np.abs(changes).max(initial=0.0))

    def within_digits(self, found: MapResult, gain: float) -> Found:
        """Return the answer with its possible rounding error, or a bound that is lowered by it.

        Rounding errors arise in the search, in the added terms and in ``gain``, the labelling's
        gain in diversity. Large costs that the labelling does not incur cause them too.
        """
        field, step = self.base, self.field
        gap_scale = float(field._energies(found.labels[None])[0]) - given_bound(field) + abs(gain)
        # None for multipliers, which are not a method of solve_map.
        record = METHODS.get(found.method)
        if record is not None and record.adds_costs_only:
            rounding = rounding_of(found.value - given_bound(step))
        else:
            rounding = rounding_of_costs(step, by_cut=record is not None and record.by_cut)
        rounding = max(rounding, rounding_of(self._largest_change()))
        if found.gap == np.inf or gap_scale == 0.0 or rounding <= NEGLIGIBLE * gap_scale:
            scale = Conditioned(step, step)
            lost = lost_of(found) + scale.slack(found.value, found.bound)
            if not scale.adds_exactly(gain):
                lost += scale.n_summands * EPS * abs(gain)
            return replace(as_found(found), lost=lost)
        lost = rounding_of_bound(step) + len(step.unary) * rounding
        share = relative_gap(found.gap + lost, gap_scale + lost)
        return replace(
            as_found(found), bound=found.bound - lost, relative_gap=share, exact=False, lost=0.0
        )
