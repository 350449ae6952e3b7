"""The base class of potentials, the summands of a field's energy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._base_classes import Immutable
from setwise.fields._terms._base import Term


class Potential(Immutable, ABC):
    r"""A summand of an energy over N variables with L labels each; added to a field with ``+``.

    A potential of your own is a subclass with one method, ``terms``, which returns the potential as
    a sum of terms of the kinds that inference supports. Every method that supports these terms then
    supports the potential. Three more members are optional: ``check`` raises an error of its own if
    the field does not fit; ``energies`` computes energies faster or more accurately than the terms;
    ``is_submodular`` is defined if it does not depend on the field. A potential is immutable, so a
    frozen dataclass is the shortest way to define one. An ``__init__`` of your own sets fields by
    ``self._set(price=price)``, since ``self.price = price`` raises an error.

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
        """Return terms whose sum is this potential, for every labelling of a field of this size."""

    def check(self, n_variables: int, n_labels: int) -> None:
        """Raise a ``ValueError`` when the potential does not fit a field of this size."""
        self._terms(n_variables, n_labels)

    def energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        """Return energies (m,) of checked labellings (m, N)."""
        energies = np.zeros(len(labels))
        for term in self._terms(labels.shape[1], n_labels):
            energies += term._energies(labels, n_labels)
        return energies

    @property
    def is_submodular(self) -> bool | None:
        r"""Whether the energy is a submodular function of the chosen pairs (variable, label).

        :math:`E(x) = F(\{(i, x_i)\})` with F submodular on all N L pairs: the model of
        log-supermodular inference, whose Lovász relaxation bounds every labelling's energy. F is
        the function of the potential's terms: half a cut for each label, concave functions of
        counts. (A submodular F exists for every energy: one can always add a concave function of
        the number of pairs, which is constant on labellings. But its bound would be useless.) None
        means that the answer depends on the field; use ``Field.is_submodular`` then.
        """
        return None

    def _terms(self, n_variables: int, n_labels: int) -> tuple[Term, ...]:
        """Return the terms, which are checked unless a potential of the library made them."""
        terms = self.terms(n_variables, n_labels)
        if not isinstance(terms, list | tuple):
            raise TypeError(f"terms of {self!r} must be a list, got {type(terms).__name__}")
        for term in terms:
            if not isinstance(term, Term):
                raise TypeError(f"terms of {self!r} must be terms, got {type(term).__name__}")
            if not term._fits:
                term._check(n_variables, n_labels)
        return tuple(terms)

    def _pair_tables(
        self, n_variables: int, n_labels: int
    ) -> Iterator[tuple[list[int], FloatArray]] | None:
        """Return an edge and a table per pair of variables; None if it is not a sum over pairs."""
        found = [term._pair_tables(n_labels) for term in self._terms(n_variables, n_labels)]
        tables = [pairs for pairs in found if pairs is not None]
        return chain.from_iterable(tables) if len(tables) == len(found) else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def range_in_repr(values: FloatArray) -> str:
    """Return a range of counts as text: ``"2"``, ``"1..3"``, or ``"[]"`` if it is empty."""
    if values.size == 0:
        return "[]"
    low, high = values.min(), values.max()
    return f"{low:.6g}" if low == high else f"{low:.6g}..{high:.6g}"
