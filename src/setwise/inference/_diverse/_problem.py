"""The problem of one step of a diverse list, in the parts that a search tells apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise.diversities._addition import Addition
from setwise.fields._base import Potential
from setwise.fields._field import Field
from setwise.fields._terms import CardinalityTerm


@dataclass(frozen=True, eq=False)
class StepProblem:
    r"""The least :math:`E(y) - d(y \mid S)`: a field, and what the diversity adds to it.

    ``balls`` are the functions of a count that are not concave, the field's own and those added:
    no cut takes them, and multipliers are searched for. A potential that is such a term and no
    other is one, whoever wrote it. ``others`` are all other potentials.
    """

    base: Field
    addition: Addition
    field: Field
    """the sum of both"""
    balls: tuple[CardinalityTerm, ...]
    others: tuple[Potential, ...]

    @classmethod
    def of(cls, base: Field, addition: Addition | None = None) -> StepProblem:
        """The problem of a field with an addition, or without one."""
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
        """That of the highest ball."""
        return max(float(np.ptp(ball.table)) for ball in self.balls)

    def rest(self) -> Field:
        """The field without the balls."""
        return Field._of(self.field.unary, self.others) if self.balls else self.field

    def largest_change(self) -> float:
        """The most that the addition changes a unary that forbids nothing, as it is rounded."""
        if not self.addition.prices:
            return 0.0
        allowed = np.isfinite(self.base.unary)
        changes = self.field.unary[allowed] - self.base.unary[allowed]
        return float(np.abs(changes).max(initial=0.0))
