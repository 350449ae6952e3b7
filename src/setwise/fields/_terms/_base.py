"""The base class of terms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, Self

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._base_classes import Immutable
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS

Numbers = tuple[FloatArray, int]


class Term(Immutable, ABC):
    """The base class of the standard forms whose sums are potentials.

    The kinds are ``ConstantTerm``, ``UnaryTerm``, ``PottsTerm``, ``TableTerm``, ``CountTerm``,
    ``RobustTerm``, ``LabelTerm``, ``TransitionTerm``, ``CardinalityTerm`` and ``CliqueTerm``; every
    inference method declares which of them it supports.

    Examples
    --------
    >>> import setwise as sw
    >>> term = sw.fields.PottsTerm([[0, 1], [1, 2]], 0.5)
    >>> isinstance(term, sw.fields.Term), term.is_submodular
    (True, True)
    """

    __match_args__: ClassVar[tuple[str, ...]] = ()
    _fits = False  # True once the term was checked against its field

    @classmethod
    def _of(cls, *parts: object) -> Self:
        """Make a term from arrays that are valid and fit their field, without checks."""
        term = cls.__new__(cls)
        term._set(**dict(zip(cls.__match_args__, parts, strict=True)), _fits=True)
        return term

    @property
    @abstractmethod
    def is_submodular(self) -> bool:
        """Whether the term is a submodular function of the chosen pairs (variable, label)."""

    @abstractmethod
    def _check(self, n_variables: int, n_labels: int) -> None:
        """Raise a ``ValueError`` if the term does not fit a field of this size."""

    @abstractmethod
    def _energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        """Return energies (m,) of checked labellings (m, N)."""

    @abstractmethod
    def _least(self, n_variables: int, n_labels: int) -> float:
        """Return a lower bound on the energy of all labellings."""

    @abstractmethod
    def _most(self, n_labels: int) -> float:
        """Return an upper bound on the absolute energy of all labellings."""

    @abstractmethod
    def _magnitude(self, by_cut: bool) -> float:
        """Return the largest absolute number that a search, or a cut, adds and subtracts."""

    def _reduced(self, n_variables: int, n_labels: int) -> tuple[Term | None, float]:
        """Return the term minus a constant, None if nothing remains, and the constant."""
        return self, 0.0

    def _limited(self, limit: float) -> Term:
        """Return the term with costs above ``limit`` lowered, but not to less than ``limit``.

        The term must have no constant: for each cost there is a labelling that avoids it.
        """
        return self

    def _split(self, n_variables: int, n_labels: int) -> Sequence[Term]:
        """Return the terms that searches use instead of this one; they may be rounded."""
        return (self,)

    def _split_size(self) -> float:
        """Return the sum of the absolute entries of tables that a search splits."""
        return 0.0

    def _n_summands(self, n_variables: int) -> int:
        """Return the approximate number of summands of an energy."""
        return n_variables

    def _numbers(self, n_labels: int) -> Numbers | None:
        """Return numbers (R, C) such that each energy is a sum of at most one number per row.

        The second result is the multiplicity of each row. The result is None if there are no such
        numbers.
        """
        return None

    def _has_fractions(self, n_labels: int) -> bool:
        """Return whether searches use fractions of the numbers other than halves and quarters."""
        return False

    def _pair_tables(self, n_labels: int) -> Iterator[tuple[list[int], FloatArray]] | None:
        """Return an edge and a table (L, L) per pair, or None if it is not a sum over pairs."""
        return None

    def __repr__(self) -> str:
        sizes = (f"{name}={_size(getattr(self, name))}" for name in self.__match_args__)
        return f"{type(self).__name__}({', '.join(sizes)})"


def rounding_of_heights(heights: FloatArray) -> float:
    """Return a tolerance for differences of a table: 1e-12 of its range, or more by rounding."""
    if not len(heights):
        return 0.0
    return max(1e-12 * float(np.ptp(heights)), FEW_ROUNDINGS * EPS * float(np.abs(heights).max()))


def distinct(tables: FloatArray) -> tuple[FloatArray, int]:
    """Return the distinct tables and their multiplicities: one table if all share memory."""
    if len(tables) > 1 and tables.strides[0] == 0:
        return tables[:1], len(tables)
    return tables, 1


def largest(numbers: FloatArray) -> float:
    """Return the largest of the numbers in absolute value."""
    return float(np.abs(numbers).max(initial=0.0))


def _size(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    return f"{value:g}" if isinstance(value, float) else str(getattr(value, "__name__", value))
