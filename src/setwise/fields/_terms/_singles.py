"""Terms of one variable or none, which a field adds up before inference."""

from __future__ import annotations

from math import fsum

import numpy as np
from numpy.typing import ArrayLike

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray, as_number, as_numbers
from setwise.fields._terms._base import Numbers, Term, largest


class ConstantTerm(Term):
    """The same energy for every labelling.

    Parameters
    ----------
    value : float
        The energy.

    Examples
    --------
    >>> import setwise as sw
    >>> sw.fields.ConstantTerm(1.5)
    ConstantTerm(value=1.5)
    """

    __match_args__ = ("value",)

    value: float

    def __init__(self, value: float) -> None:
        self._set(value=as_number(value, "value"))

    @property
    def is_submodular(self) -> bool:
        return True

    def _check(self, n_variables: int, n_labels: int) -> None:
        pass

    def _energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        return np.full(len(labels), self.value)

    def _least(self, n_variables: int, n_labels: int) -> float:
        return float(self.value)

    def _most(self, n_labels: int) -> float:
        return abs(float(self.value))

    def _magnitude(self, by_cut: bool) -> float:
        return abs(float(self.value))

    def _reduced(self, n_variables: int, n_labels: int) -> tuple[None, float]:
        return None, float(self.value)

    def _numbers(self, n_labels: int) -> Numbers:
        return np.array([[self.value]], np.float64), 1


class UnaryTerm(Term):
    r"""An energy for the label of each variable, :math:`\sum_i u_{i x_i}`.

    Parameters
    ----------
    unary : array-like of shape (N, L)
        Finite.

    Examples
    --------
    >>> import setwise as sw
    >>> sw.fields.UnaryTerm([[0.0, 1.0], [2.0, 0.0]])
    UnaryTerm(unary=array of shape (2, 2))
    """

    __match_args__ = ("unary",)

    unary: FloatArray

    def __init__(self, unary: ArrayLike) -> None:
        self._set(unary=as_numbers(unary, "unary", shape=(None, None)))

    @property
    def is_submodular(self) -> bool:
        return True

    def _check(self, n_variables: int, n_labels: int) -> None:
        if self.unary.shape != (n_variables, n_labels):
            raise ValueError(
                f"unary must have the field's shape ({n_variables}, {n_labels}), "
                f"got {self.unary.shape}"
            )

    def _energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        energies = np.empty(len(labels))
        _core.unary_energies(labels, self.unary, energies)
        return energies

    def _least(self, n_variables: int, n_labels: int) -> float:
        return float(self.unary.min(axis=1).sum())

    def _most(self, n_labels: int) -> float:
        return float(np.abs(self.unary).max(axis=1).sum())

    def _magnitude(self, by_cut: bool) -> float:
        return largest(self.unary)

    def _reduced(self, n_variables: int, n_labels: int) -> tuple[Term, float]:
        least = self.unary.min(axis=1, keepdims=True)
        if not least.any():
            return self, 0.0
        return UnaryTerm._of(self.unary - least), fsum(least.ravel())

    def _limited(self, limit: float) -> Term:
        return UnaryTerm._of(np.minimum(self.unary, limit))

    def _numbers(self, n_labels: int) -> Numbers:
        return np.ascontiguousarray(self.unary), 1
