"""A potential: one summand of a field's energy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._immutable import Immutable
from setwise.fields._terms._base import Term


class Potential(Immutable, ABC):
    r"""A summand of an energy over N variables with L labels each; added to a field with ``+``.

    A potential of your own is a subclass with one method, ``terms``: it writes the potential as a
    sum of terms of the kinds that inference reads. Every method that takes these terms then takes
    the potential. Three more may be written: ``check``, to refuse a field in words of its own;
    ``energies``, where they are faster, or rounded less, than those of the terms; and
    ``is_submodular``, where that does not depend on the field. A potential never changes, so a
    frozen dataclass is the shortest way to write one.

    Examples
    --------
    A price for each variable at the border of a row whose label is not the first one:

    >>> import dataclasses
    >>> import numpy as np
    >>> import setwise as sw
    >>> @dataclasses.dataclass(frozen=True, eq=False)
    ... class Frame(sw.fields.Potential):
    ...     price: float
    ...
    ...     def terms(self, n_variables, n_labels):
    ...         unary = np.zeros((n_variables, n_labels))
    ...         unary[[0, -1], 1:] = self.price
    ...         return (sw.fields.UnaryTerm(unary),)
    >>> field = sw.fields.Field([[1.0, 0.0]] * 4) + sw.fields.Potts([[0, 1], [1, 2], [2, 3]], 0.25)
    >>> field = field + Frame(price=5.0)
    >>> field.energy([1, 1, 1, 1]), sw.solve_map(field).labels.tolist()
    (10.0, [0, 1, 1, 0])
    """

    @abstractmethod
    def terms(self, n_variables: int, n_labels: int) -> Sequence[Term]:
        """Terms whose sum is this potential, for every labelling of a field of this size."""

    def check(self, n_variables: int, n_labels: int) -> None:
        """Raise a ``ValueError`` when the potential does not fit a field of this size."""
        self._terms(n_variables, n_labels)

    def energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        """Energies (m,) of checked labellings (m, N)."""
        energies = np.zeros(len(labels))
        for term in self._terms(labels.shape[1], n_labels):
            energies += term._energies(labels, n_labels)
        return energies

    @property
    def is_submodular(self) -> bool | None:
        r"""Whether the energy is a submodular function of the chosen pairs (variable, label).

        :math:`E(x) = F(\{(i, x_i)\})` with F submodular on all N L pairs: the model of
        log-supermodular inference, whose Lovász relaxation bounds every labelling's energy. F is
        what the potential's terms stand for: half a cut for each label, concave functions of
        counts. (Some submodular F exists for every energy, since a concave function of the number
        of pairs is constant on labellings; its bound would say nothing.)
        None: that depends on the field, and ``Field.is_submodular`` knows.
        """
        return None

    def _terms(self, n_variables: int, n_labels: int) -> tuple[Term, ...]:
        """The terms, checked where others than the library's own potentials made them."""
        terms = self.terms(n_variables, n_labels)
        if not isinstance(terms, list | tuple):
            raise TypeError(f"terms of {self!r} must be a list, got {type(terms).__name__}")
        for term in terms:
            if not isinstance(term, Term):
                raise TypeError(f"terms of {self!r} must be terms, got {type(term).__name__}")
            if not term._fits:
                term._check(n_variables, n_labels)
        return tuple(terms)

    def _grounded(self) -> tuple[Potential, float]:
        """The potential less a constant, and the constant: so that large ones cost no digits."""
        return self, 0.0

    def _limited(self, limit: float, n_labels: int) -> Potential:
        """The potential, where it costs more than ``limit`` only so much that it is not less."""
        return self

    def _largest_price(self, by_cut: bool) -> float | None:
        """The largest number that a search, or a cut, computes with; None: that of its terms."""
        return None

    def _least(self) -> float | None:
        """What every labelling pays, where the terms may round it away; None: what they say."""
        return None

    def _as_given(self) -> float:
        """The sum of the sizes of numbers that the terms may have rounded away."""
        return 0.0

    def _pair_tables(
        self, n_variables: int, n_labels: int
    ) -> Iterator[tuple[list[int], FloatArray]] | None:
        """An edge and a table for each pair of variables; None where it is no sum of such."""
        found = [term._pair_tables(n_labels) for term in self._terms(n_variables, n_labels)]
        tables = [pairs for pairs in found if pairs is not None]
        return chain.from_iterable(tables) if len(tables) == len(found) else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
