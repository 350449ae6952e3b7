"""A potential: one summand of a field's energy."""

from __future__ import annotations

from abc import ABC, abstractmethod

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._immutable import Immutable
from setwise.fields._terms import Term


class Potential(Immutable, ABC):
    r"""A summand of an energy over N variables with L labels each; added to a field with ``+``.

    A subclass evaluates itself (``_energies``), says whether it fits a field (``_check``), and
    translates itself into the terms that inference reads (``_terms``).

    Examples
    --------
    >>> import setwise as sw
    >>> potential = sw.fields.LabelCost([1.0, 2.0])
    >>> isinstance(potential, sw.fields.Potential), potential.is_submodular
    (True, True)
    >>> (sw.fields.Field([[0.0, 0.0]] * 3) + potential).energy([0, 1, 0])
    3.0
    """

    @property
    @abstractmethod
    def is_submodular(self) -> bool | None:
        r"""Whether the energy is a submodular function of the chosen pairs (variable, label).

        :math:`E(x) = F(\{(i, x_i)\})` with F submodular on all N L pairs: the model of
        log-supermodular inference, whose Lovász relaxation bounds every labelling's energy. F is
        what the potential's terms stand for: half a cut for each label, concave functions of
        counts. (Some submodular F exists for every energy, since a concave function of the number
        of pairs is constant on labellings; its bound would say nothing.)
        None: that depends on the number of labels, and ``Field.is_submodular`` knows.
        """

    @abstractmethod
    def _check(self, n_variables: int, n_labels: int) -> None:
        """Raise a ``ValueError`` when the potential does not fit a field of this size."""

    @abstractmethod
    def _energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        """Energies (m,) of checked labellings (m, N), in compiled code."""

    def _grounded(self) -> tuple[Potential, float]:
        """The potential less a constant, and the constant: so that large ones cost no digits."""
        return self, 0.0

    @abstractmethod
    def _terms(self, n_variables: int, n_labels: int) -> tuple[Term, ...]:
        """Terms whose sum is this potential, for every labelling of a field of this size."""
