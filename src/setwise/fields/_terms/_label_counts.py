"""Terms of counts: of the variables with labels of a group, or that differ from a labelling."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise import _core
from setwise._foundation._arguments import (
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    as_integers,
    as_number,
    as_numbers,
)
from setwise.fields._terms._base import Numbers, Term, largest, rounding_of_heights


class LabelTerm(Term):
    r"""A price that is charged once if some variable takes a label of a group.

    Parameters
    ----------
    cost : float
        Not negative.
    labels : array-like of bool, shape (L,)
        The labels of the group.

    Examples
    --------
    >>> import setwise as sw
    >>> sw.fields.LabelTerm(3.0, [False, True, True]).is_submodular
    True
    """

    __match_args__ = ("cost", "labels")

    cost: float
    labels: BoolArray

    def __init__(self, cost: float, labels: ArrayLike) -> None:
        group = as_array(labels, "labels")
        if group.dtype != np.bool_:
            raise TypeError(f"labels must be boolean, got dtype {group.dtype}")
        if group.ndim != 1:
            raise ValueError(f"labels must have shape (L,), got {group.shape}")
        self._set(cost=as_number(cost, "cost", nonnegative=True), labels=group.copy())

    @property
    def is_submodular(self) -> bool:
        return True

    def _check(self, n_variables: int, n_labels: int) -> None:
        if len(self.labels) != n_labels:
            raise ValueError(
                f"labels must have an entry for each of the field's {n_labels} labels, "
                f"got {len(self.labels)}"
            )

    def _energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        used = np.zeros((len(labels), n_labels), np.uint8)
        _core.used_labels(labels, used)
        return np.asarray(used[:, self.labels].any(axis=1) * self.cost)

    def _least(self, n_variables: int, n_labels: int) -> float:
        return self.cost if n_variables > 0 and self.labels.all() else 0.0

    def _most(self, n_labels: int) -> float:
        return self.cost

    def _magnitude(self, by_cut: bool) -> float:
        return self.cost

    def _reduced(self, n_variables: int, n_labels: int) -> tuple[Term | None, float]:
        least = self._least(n_variables, n_labels)
        return (None, least) if least else (self, 0.0)

    def _limited(self, limit: float) -> Term:
        return LabelTerm._of(min(self.cost, limit), self.labels)

    def _numbers(self, n_labels: int) -> Numbers:
        return np.array([[self.cost]]), 1


class CardinalityTerm(Term):
    r"""Any function of the number of variables that differ from a labelling, :math:`t_k`.

    Parameters
    ----------
    center : array-like of int, shape (N,)
        The labelling.
    table : array-like of shape (N + 1,)
        Finite; ``table[k]`` is the energy if k variables differ from the center.

    Examples
    --------
    >>> import setwise as sw
    >>> sw.fields.CardinalityTerm([0, 1, 0], [0.0, 2.0, 3.0, 3.5]).is_submodular
    True
    """

    __match_args__ = ("center", "table")

    center: IntArray
    table: FloatArray

    def __init__(self, center: ArrayLike, table: ArrayLike) -> None:
        labels = as_center(center)
        self._set(center=labels, table=as_numbers(table, "table", shape=(len(labels) + 1,)))

    @property
    def is_submodular(self) -> bool:
        """Whether the table is concave: second differences are at most zero up to rounding."""

        def compute() -> bool:
            slack = rounding_of_heights(self.table)
            return bool((np.diff(self.table, 2) <= slack).all())

        return self._remember("is_submodular", compute)

    def _check(self, n_variables: int, n_labels: int) -> None:
        check_center(self.center, n_variables, n_labels)

    def _energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        energies = np.empty(len(labels))
        _core.cardinality_energies(labels, n_labels, self.center, self.table, energies)
        return energies

    def _least(self, n_variables: int, n_labels: int) -> float:
        return float(self.table.min())

    def _most(self, n_labels: int) -> float:
        return float(np.abs(self.table).max())

    def _magnitude(self, by_cut: bool) -> float:
        return largest(self.table)

    def _reduced(self, n_variables: int, n_labels: int) -> tuple[Term, float]:
        least = float(self.table.min())
        if least == 0.0:
            return self, 0.0
        return CardinalityTerm._of(self.center, self.table - least), least

    def _limited(self, limit: float) -> Term:
        return CardinalityTerm._of(self.center, np.minimum(self.table, limit))

    def _numbers(self, n_labels: int) -> Numbers:
        return self.table[None], 1


def as_center(center: ArrayLike) -> IntArray:
    """Read a labelling (N,) with any number of labels."""
    array = as_array(center, "center")
    if array.ndim != 1:
        raise ValueError(f"center must have shape (N,), got {array.shape}")
    return as_integers(array, "center", below=np.iinfo(np.int64).max)


def check_center(center: IntArray, n_variables: int, n_labels: int) -> None:
    """Raise a ``ValueError`` if a labelling does not fit the field."""
    if len(center) != n_variables:
        raise ValueError(
            f"center must have an entry for each of the field's {n_variables} variables, "
            f"got {len(center)}"
        )
    if n_variables and center.max() >= n_labels:
        raise ValueError(
            f"center must hold some of the field's {n_labels} labels, numbered from 0, "
            f"got {center.max()}"
        )
