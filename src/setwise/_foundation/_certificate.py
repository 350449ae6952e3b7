"""One rule for every certificate: value, bound, and what the gap between them is measured against.

``gap`` is absolute: value - bound, of a maximum bound - value, never negative. Its share of what
there was to gain, ``relative_gap``, and the claim ``exact`` change neither with a constant added to
all values nor with their unit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf
from typing import TYPE_CHECKING, ClassVar

import numpy as np

EPS = float(np.finfo(np.float64).eps)


def relative_gap(gap: float, room: float, rounding: float = 0.0) -> float:
    """The share of ``room``, what there was to gain, that is not proved to be gained: in [0, 1].

    0 where the gap is no more than the rounding of the sums in it, whatever the room; ``inf`` where
    nothing is known, which is a gap of ``inf``.
    """
    if gap <= rounding:
        return 0.0
    return gap / max(gap, room) if gap < inf else inf


def gap_over_value(gap: float, value: float, unit: float = 1.0) -> float:
    """The gap beside the size of a value, of ``unit`` at least: for values that may be 0."""
    return gap / max(unit, abs(value))


class Certificate:
    """An answer, or a stage of a search, that is known to be within a gap of the best one.

    A record that has ``value``, what the answer costs or, of a maximum, brings, and ``bound``,
    which no answer passes, is one, with ``relative_gap`` beside them.
    """

    _sense: ClassVar[float] = 1.0
    """1 of a minimum, which the bound is below; -1 of a maximum."""

    if TYPE_CHECKING:  # fields of some records, properties of others

        @property
        def value(self) -> float: ...

        @property
        def bound(self) -> float: ...

    @property
    def gap(self) -> float:
        """Value - bound, of a maximum bound - value; never negative."""
        return max(0.0, self._apart())

    def _apart(self) -> float:
        """Value - bound, of a maximum bound - value, as rounded."""
        return self._sense * (self.value - self.bound)


class Measured(Certificate, ABC):
    """A certificate that knows what there was to gain, and the rounding of its own sums."""

    certified: bool
    """Whether the bound is a proof."""

    @abstractmethod
    def _measures(self) -> tuple[float, float, float]:
        """What the answer may be off by (at most the gap), what there was to gain, the rounding."""

    @property
    def relative_gap(self) -> float:
        """The share of what there was to gain that is not proved to be gained: in [0, 1].

        0 where all that is left is rounding. Neither a constant added to all values nor a change
        of their unit changes it.
        """
        return relative_gap(*self._measures())

    @property
    def exact(self) -> bool:
        """Whether the answer is proved to be a best one: certified, and off by rounding at most."""
        off, _, rounding = self._measures()
        return self.certified and off <= rounding
