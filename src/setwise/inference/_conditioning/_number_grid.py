"""Whether the energies of a field are whole numbers of some unit, a power of two."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from setwise import _core
from setwise.fields._base import Potential
from setwise.fields._field import Field

_DIGITS = 2.0**53


class NumberGrid(NamedTuple):
    """The unit of a field's energies, and how far two of them can lie apart."""

    step: float
    """every energy is a multiple of it; 0 where no unit leaves room for exact sums"""
    total: float

    @classmethod
    def of(cls, field: Field) -> NumberGrid:
        """Find the grid of the given numbers, in one pass that stops at the first long fraction."""
        step, total = _core.number_grid(np.ascontiguousarray(field.unary), True)
        for potential in field.potentials:
            if step == 0.0:
                return _NONE
            for finest, apart in _grids(potential, *field.unary.shape):
                step, total = min(step, finest), total + apart
        return cls(step, total) if step < inf and total <= _DIGITS * step else _NONE

    def has_room(self, bits: int) -> bool:
        """Whether sums of such energies are exact also in a unit finer by so many bits."""
        return self.step > 0.0 and self.total * 2.0**bits <= _DIGITS * self.step


_NONE = NumberGrid(0.0, inf)


def _grids(potential: Potential, n_variables: int, n_labels: int) -> list[tuple[float, float]]:
    """Return the grid of each array of numbers of a potential, without a unit if it has none."""

    def find() -> list[tuple[float, float]]:
        numbers = potential._numbers(n_variables, n_labels)
        if numbers is None:
            return [_NONE]
        grids = [_core.number_grid(np.ascontiguousarray(array), False) for array, _ in numbers]
        uses = [times for _, times in numbers]
        return [(step, k * total) for (step, total), k in zip(grids, uses, strict=True)]

    return potential._remember(("number grids", n_variables, n_labels), find)
