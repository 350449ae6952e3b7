r"""The conditioned problem of a search, and the mapping of its results to the given field.

The rounding error of a sum grows with the size of its summands. A constant of :math:`10^9`, or a
cost of :math:`10^{20}` that no good labelling incurs, would make this error larger than the gaps of
certificates. So constants are removed and costs are limited once, at the beginning of a call, for
the terms of any potential. Results are mapped back once, at its end: the energies of the given
field are those of the problem plus a constant, and a lower bound is only ever rounded downwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, fsum, inf, isfinite
from operator import is_
from typing import NamedTuple

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS, MANY_ROUNDINGS, relative_gap
from setwise.fields._base import Potential
from setwise.fields._field import Field
from setwise.fields._terms import Term
from setwise.inference._conditioning._magnitude import (
    NEGLIGIBLE,
    Unit,
    given_bound,
    rounding_of_bound,
    rounding_of_costs,
    sum_below,
    trivial_bound,
)

# Costs are limited to this multiple of the possible gain of a known labelling. Already with a
# multiple of 1, no labelling that incurs a limited cost is better than the known one. The larger
# multiple allows for rounding. Not tuned.
_BEYOND = 1024.0

# Sums in units count as exact if they leave this many of the 53 bits of a float free: two for
# quarters of a unit, and two for the sum of a value and a bound.
_SPARE_BITS = 4


class Sums(NamedTuple):
    """A description of the summands of a bound, if these are not the numbers of the field."""

    magnitude: float
    """the sum of the absolute summands"""
    lost: float = 0.0
    """an additional rounding error that the search has computed"""
    depth: int | None = None
    """the number of sums that a number enters; None for the number of summands of an energy"""


@dataclass(frozen=True, eq=False)
class Conditioned:
    """A field without constants and with limited costs, and the field that was given."""

    given: Field
    field: Field
    """the field that is searched; it shares unchanged arrays with ``given``"""
    least: FloatArray | None = None
    """(N,): the constants that were subtracted from the rows of unaries; None for no constants"""
    constants: tuple[float, ...] = ()
    """(K,): the constants that were subtracted from the potentials"""

    @classmethod
    def of(cls, field: Field) -> Conditioned:
        """Remove the constants: the least unary of each row, and the constant of each term."""
        favourites = field._favourites()
        least = favourites.least if favourites.least.any() else None
        unary = field.unary if least is None else field.unary - least[:, None]
        parts = [_without_constants(potential, field) for potential in field.potentials]
        if any(one is not other for (one, _), other in zip(parts, field.potentials, strict=True)):
            rest = Field._of(unary, tuple(potential for potential, _ in parts))
        else:
            rest = field if least is None else field._over(unary)
        if least is not None:
            rest._remember("favourites", favourites.grounded)
        return cls(field, rest, least, tuple(constant for _, constant in parts))

    @property
    def is_changed(self) -> bool:
        """Whether the field that is searched differs from the given one."""
        return self.field is not self.given

    @property
    def constant(self) -> float:
        """The given energy of a labelling minus its energy in the field that is searched."""
        return self._constant_of_rows + sum(self.constants)

    @property
    def _constant_of_rows(self) -> float:
        return 0.0 if self.least is None else fsum(self.least.tolist())

    @property
    def _error_of_constants(self) -> float:
        """The largest rounding error of the constants of the potentials.

        It is zero if they are multiples of the unit of the energies whose sums are exact.
        """
        size = sum(map(abs, self.constants))
        if size * EPS <= self.unit.step:
            return 0.0
        return EPS * (2.0 + len(self.constants)) * size

    def below(self, bound: float) -> float:
        """Convert a lower bound on the searched energies into one on the given energies."""
        rows = (0.0,) if self.least is None else _core.sum_of_least(self.least[:, None])
        return sum_below(*rows, sum(self.constants), -self._error_of_constants, bound)

    def constant_over(self, temperature: float) -> tuple[float, float]:
        """Return ``constant`` over a temperature, and a bound on its rounding error."""
        rows = [] if self.least is None else self.least.tolist()
        of_terms = sum(self.constants)
        constant = fsum(rows) + of_terms
        quotient = constant / temperature
        lost = fsum((*rows, of_terms, -constant))
        rest = Fraction(constant) / Fraction(temperature) - Fraction(quotient)
        error = abs(lost) + self._error_of_constants
        return quotient, 2.0 * (float(abs(rest)) + error / temperature)

    def value_of(self, labels: IntArray) -> float:
        """Return the given energy of a labelling."""
        return float(self.given._energies(labels[None])[0])

    def limited(
        self, limit: float, *, unaries_only: bool = False, keep_submodular: bool = False
    ) -> Conditioned:
        """Return the problem with larger costs lowered to ``limit``; forbidden labels are kept.

        Entries of tables off the diagonal are limited to twice the limit, so that tables that are
        submodular for two labels stay submodular. With ``keep_submodular``, other terms that would
        not stay submodular are not limited.
        """
        field = self.field
        if not limit > 0.0:
            return self

        def limit_term(term: Term) -> Term:
            after = term if term._magnitude(False) <= limit else term._limited(limit)
            kept = keep_submodular and term.is_submodular and not after.is_submodular
            return term if kept else after

        potentials = field.potentials
        if not unaries_only:
            potentials = tuple(
                _changed(p, field, tuple(map(limit_term, field._given_of(p)))) for p in potentials
            )
        if field._favourites().largest > limit:
            unary = np.where(field.unary < inf, np.minimum(field.unary, limit), inf)
            near = field._over(unary) if unaries_only else Field._of(unary, potentials)
        elif all(map(is_, potentials, field.potentials)):
            return self
        else:
            near = Field._of(field.unary, potentials)
        return replace(self, field=near)

    def limited_beside(self, value: float, *, unaries_only: bool = False) -> Conditioned:
        r"""Return a problem with the same least energy and best labellings, without huge costs.

        ``value`` is the energy of a labelling. Let b be the sum of the least values of all terms. A
        labelling that incurs a cost above :math:`\text{value} - b` is worse.
        """
        floor = self.trivial if unaries_only else self.floor
        return self.limited(_BEYOND * (value - floor), unaries_only=unaries_only)

    def without_huge_unaries(self) -> Conditioned:
        """Limit the unaries, given the energy of the labelling of least unaries."""
        _, start, largest = self.field._favourites()
        if largest == 0.0:
            return self
        value = float(self.field._energies(start[None])[0])
        return self.limited_beside(value, unaries_only=True)

    @cached_property
    def trivial(self) -> float:
        """The sum of the least unaries and of the least values of the terms that are searched."""
        return trivial_bound(self.field)

    @cached_property
    def floor(self) -> float:
        """The trivial bound of the tables before they are split."""
        return given_bound(self.field)

    @cached_property
    def n_summands(self) -> int:
        """The number of summands of an energy."""
        n = self.field.n_variables
        return n + sum(term._n_summands(n) for _, term in self.field._terms())

    @cached_property
    def unit(self) -> Unit:
        """The unit of the given energies."""
        return self.given._remember("unit", lambda: Unit.of(self.given))

    def relative_gap(self, value: float, bound: float) -> float:
        """Return the relative gap, (value - bound) / (value - trivial bound)."""
        return relative_gap(value - bound, value - self.floor)

    def is_exact(
        self, value: float, bound: float, sums: Sums | None = None, slack: float | None = None
    ) -> bool:
        """Return whether the gap is within rounding; ``sums`` are the summands of the bound.

        ``slack`` is the result of the method of that name, if it is known.
        A gap above 1e-9 of the possible gain never counts as rounding, even if large numbers cancel
        in the bound. If energies are multiples of a unit, neither does a gap of half a unit, and a
        gap below one unit counts as zero if their sums are exact.
        """
        gap = value - bound
        if self.unit.is_exact(_SPARE_BITS):
            slack = self.slack(value, bound, sums) if slack is None else slack
            # Whole numbers are compared exactly. Finer units than the rounding decide nothing.
            if self.unit.step >= 1.0 or slack < self.unit.step:
                return self.claim(value, bound, slack) >= value
        if gap <= 0.0:
            return True
        magnitude = max(bound - self.trivial, 0.0) if sums is None else sums.magnitude
        if self.relative_gap(value, bound) > NEGLIGIBLE or gap > self.rounding(value, magnitude):
            return False
        return gap < 0.5 * self.unit.step or self.unit.step == 0.0

    def rounding(self, value: float, magnitude: float) -> float:
        """Return the rounding error of the energy of a labelling together with that of a bound.

        Numbers that are not summands, such as the cost of a label that a seed forbids, do not
        matter.
        """
        return self.n_summands * EPS * (max(value - self.trivial, 0.0) + magnitude)

    def slack(self, value: float, bound: float, sums: Sums | None = None) -> float:
        """Return an upper bound on the rounding error of a computed bound.

        Without ``sums`` the bound is a sum of numbers of the field, which has no rounding error if
        they are multiples of a unit whose sums are exact.
        """
        if sums is None:
            if self._sums_are_exact:
                return 0.0
            sums = Sums(max(bound - self.trivial, 0.0))
        least, split = self._sizes
        gap_scale = value - self.trivial if value < inf else 0.0
        size = max(gap_scale, 0.0) + least + sums.magnitude
        depth = self.n_summands if sums.depth is None else sums.depth
        return sums.lost + EPS * ((depth + FEW_ROUNDINGS) * size + MANY_ROUNDINGS * split)

    def adds_exactly(self, number: float) -> bool:
        """Return whether sums of energies and this number, in quarters of the unit, are exact."""
        step = self.unit.step
        return self._sums_are_exact and number % (0.25 * step) == 0.0 and abs(number) * EPS <= step

    def claim(self, value: float, bound: float, slack: float) -> float:
        """Return the bound to report for a value, which holds in exact arithmetic.

        ``bound`` is the bound that a search computed, and ``slack`` an upper bound on its rounding
        error. If energies are multiples of a unit, it is raised to the next multiple.
        """
        claimed = bound - slack
        if claimed >= value:
            return value
        step = self.unit.step
        if step > 0.0 and isfinite(claimed):
            claimed = ceil(claimed / step) * step
        if claimed < self.floor:
            claimed = max(claimed, sum_below(self.floor, -EPS * self.n_summands * self._sizes[0]))
        return min(claimed, value)

    def costs_hide_digits(self, value: float, *, by_cut: bool) -> bool:
        """Return whether the rounding error of the largest cost matters for a labelling's energy.

        Errors of up to 1e-9 of this energy, above the trivial bound, are ignored.
        """
        return rounding_of_costs(self.field, by_cut=by_cut) > NEGLIGIBLE * (value - self.floor)

    def less_rounding_of_costs(self, value: float, bound: float) -> float:
        """Return the bound minus the rounding error that all costs together may cause."""
        return min(max(bound - rounding_of_bound(self.field), self.floor), value)

    @cached_property
    def _sums_are_exact(self) -> bool:
        """Whether sums and differences of the numbers of the field's terms are exact."""
        if not self.unit.is_exact(_SPARE_BITS):
            return False
        return not any(t._has_fractions(self.field.n_labels) for _, t in self.field._given())

    @cached_property
    def _sizes(self) -> tuple[float, float]:
        """The absolute sums of the least numbers of the field, and of the tables to be split."""
        field = self.field
        least = field._favourites().least
        size = float(np.abs(least).sum()) if least.any() else 0.0
        for _, term in field._terms():
            size += abs(term._least(*field.unary.shape))
        return size, sum(term._split_size() for _, term in field._given())


class _Changed(Potential):
    """A potential whose terms were replaced by terms with other numbers."""

    source: Potential
    changed: tuple[Term, ...]

    def __init__(self, source: Potential, changed: tuple[Term, ...]) -> None:
        self._set(source=source, changed=changed)

    def terms(self, n_variables: int, n_labels: int) -> Sequence[Term]:
        return self.changed

    def __repr__(self) -> str:
        return repr(self.source)


def _changed(potential: Potential, field: Field, terms: tuple[Term, ...]) -> Potential:
    """Return a potential of these terms: the same one if its terms are the same."""
    return (
        potential
        if all(map(is_, terms, field._given_of(potential)))
        else _Changed(potential, terms)
    )


def _without_constants(potential: Potential, field: Field) -> tuple[Potential, float]:
    """Return a potential without the constants of its terms, and their sum."""
    terms = field._given_of(potential)
    parts = [_reduced(term, *field.unary.shape) for term in terms]
    if not any(parts):
        return potential, 0.0
    found = [part or (term, 0.0) for part, term in zip(parts, terms, strict=True)]
    rest = tuple(term for term, _ in found if term is not None)
    return _Changed(potential, rest), fsum(constant for _, constant in found)


def _reduced(term: Term, n_variables: int, n_labels: int) -> tuple[Term | None, float] | None:
    """Return a term minus its constant, and the constant; None if it has none."""

    def reduce() -> tuple[Term | None, float] | None:
        rest, constant = term._reduced(n_variables, n_labels)
        return None if rest is term else (rest, constant)

    return term._remember(("reduced", n_variables, n_labels), reduce)
