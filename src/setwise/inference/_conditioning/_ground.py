r"""A field without what is the same for every labelling, or beyond what any good one pays.

Sums of energies are rounded at the size of the numbers in them. A constant of :math:`10^9` in the
unaries, or a seed of :math:`10^{20}`, would so cost the digits that certificates are made of.
"""

from __future__ import annotations

from fractions import Fraction
from math import fsum, inf, isfinite, nextafter
from operator import is_
from typing import NamedTuple

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray
from setwise._foundation._certificate import EPS
from setwise.fields._base import Potential
from setwise.fields._field import Field
from setwise.inference._conditioning._energy_scale import sum_below, trivial_bound

# A label that alone costs so many times what the unaries' favourites cost is in no good labelling.
_HOPELESS = 1024.0


class Ground(NamedTuple):
    """A field, and what was taken out of it."""

    field: Field
    least: FloatArray
    """(N,): the least unary of each row"""
    below: float
    """the constants of the potentials"""
    size: float
    """the sum of their sizes, as often as they are rounded"""

    @property
    def constant(self) -> float:
        """The difference of the original energies to those of this field."""
        return fsum(self.least.tolist()) + self.below

    def beneath(self, bound: float) -> float:
        """Return a bound on the original energies, from one on the energies of this field."""
        parts = _core.sum_of_least(self.least[:, None])
        return sum_below(*parts, self.below, -EPS * self.size, bound)

    def over(self, temperature: float) -> tuple[float, float]:
        """``constant`` over a temperature, and by how much that may be rounded, at most."""
        rows = self.least.tolist() if self.least.any() else []
        constant = fsum(rows) + self.below
        quotient = constant / temperature
        lost = fsum((*rows, self.below, -constant))
        rest = Fraction(constant) / Fraction(temperature) - Fraction(quotient)
        return quotient, 2.0 * (float(abs(rest)) + (abs(lost) + EPS * self.size) / temperature)


def ground(field: Field) -> Ground:
    """Every row of unaries with a least entry of 0, and potentials without their constants."""
    favourites = field._favourites()
    least = favourites.least
    unary = field.unary - least[:, None] if least.any() else field.unary
    potentials: list[Potential] = []
    below, sizes = 0.0, 0.0
    for potential in field.potentials:
        grounded, constant = potential._grounded()
        potentials.append(grounded)
        below += constant
        sizes += abs(constant)
    size = (2.0 + len(field.potentials)) * sizes
    if not all(map(is_, potentials, field.potentials)):
        rest = Field._of(unary, tuple(potentials))
    elif unary is field.unary:
        rest = field
    else:
        rest = field._over(unary)
    rest._remember("favourites", favourites.grounded)
    return Ground(rest, least, below, size)


def without_hopeless(field: Field) -> Field:
    r"""Return a field with the same least energy and best labellings, without huge unaries.

    With the labelling z of least unaries and a bound b on every term's sum, :math:`E(z) - b` is
    all that there is to gain. Who takes a label that costs more than that above its row's least is
    worse off than with z, whatever the price: so prices stop at 1024 times it. ``field`` is
    grounded.
    """
    _, start, largest = field._favourites()
    if largest == 0.0:
        return field
    limit = _HOPELESS * (float(field._energies(start[None])[0]) - trivial_bound(field))
    if not 0.0 < limit < largest:
        return field
    return field._over(np.where(field.unary < inf, np.minimum(field.unary, limit), inf))


def difference_below(value: float, part: float) -> float:
    """value - part, rounded down: a rounding may lower a lower bound, never raise it."""
    rest = value - part
    if not isfinite(rest):
        return rest
    return nextafter(rest, -inf) if fsum((value, -part, -rest)) < 0.0 else rest


def difference_above(value: float, part: float) -> float:
    """value - part, rounded up, for upper bounds."""
    return -difference_below(-value, -part)
