"""A term: what every kind of them must answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Self

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._base_classes import Immutable
from setwise._foundation._certificate import EPS


class Term(Immutable, ABC):
    """One of the forms that potentials are sums of: what a subclass of ``Potential`` returns.

    The kinds are ``ConstantTerm``, ``UnaryTerm``, ``PottsTerm``, ``TableTerm``, ``CountTerm``,
    ``RobustTerm``, ``LabelTerm``, ``TransitionTerm``, ``CardinalityTerm`` and ``CliqueTerm``; every
    method of inference says which of them it takes.

    Examples
    --------
    >>> import setwise as sw
    >>> term = sw.fields.PottsTerm([[0, 1], [1, 2]], 0.5)
    >>> isinstance(term, sw.fields.Term), term.is_submodular
    (True, True)
    """

    __match_args__: ClassVar[tuple[str, ...]] = ()
    _fits = False  # of a term of a potential that has checked itself against its field

    @classmethod
    def _of(cls, *parts: object) -> Self:
        """Make a term of parts that are known to be valid and to fit their field."""
        term = cls.__new__(cls)
        term._set(**dict(zip(cls.__match_args__, parts, strict=True)), _fits=True)
        return term

    @property
    @abstractmethod
    def is_submodular(self) -> bool:
        """Whether it is a submodular function of the chosen pairs (variable, label)."""

    @abstractmethod
    def _check(self, n_variables: int, n_labels: int) -> None:
        """Raise a ``ValueError`` when the term does not fit a field of this size."""

    @abstractmethod
    def _energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        """Return energies (m,) of checked labellings (m, N)."""

    @abstractmethod
    def _least(self, n_variables: int, n_labels: int) -> float:
        """Return a number that no labelling costs less than."""

    @abstractmethod
    def _most(self, n_labels: int) -> float:
        """Return a number that no labelling costs more than, in size."""

    @abstractmethod
    def _price(self, by_cut: bool) -> float:
        """Return the largest number, in size, that a search, or a cut, adds and subtracts."""

    def _n_summands(self, n_variables: int) -> int:
        """Return roughly how many numbers an energy is a sum of."""
        return n_variables

    def _numbers(self, n_labels: int) -> FloatArray | None:
        """(R, C) numbers: every energy is a sum of at most one of each row; None if none is."""
        return None

    def _pair_tables(self, n_labels: int) -> Iterator[tuple[list[int], FloatArray]] | None:
        """Return an edge and a table (L, L) for each pair of variables; None: no sum of such."""
        return None

    def __repr__(self) -> str:
        sizes = (f"{name}={_size(getattr(self, name))}" for name in self.__match_args__)
        return f"{type(self).__name__}({', '.join(sizes)})"


def rounding_of_heights(heights: FloatArray) -> float:
    """Return the rounding of a table's differences: 1e-12 of its range, or its last digits."""
    if not len(heights):
        return 0.0
    return max(1e-12 * float(np.ptp(heights)), 4 * EPS * float(np.abs(heights).max()))


def largest(numbers: FloatArray) -> float:
    """Return the largest of the numbers in absolute value."""
    return float(np.abs(numbers).max(initial=0.0))


def _size(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    return f"{value:g}" if isinstance(value, float) else str(getattr(value, "__name__", value))
