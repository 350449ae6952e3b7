"""Label costs: a price for each label that is used."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise import _core
from setwise._foundation._arguments import (
    FloatArray,
    IntArray,
    as_integers,
    as_number,
    as_numbers,
)
from setwise.fields._base import Potential, range_in_repr
from setwise.fields._terms._label_counts import LabelTerm


class LabelCost(Potential):
    r"""A price for each label that some variable takes, or one price for a group of labels.

    .. math:: \varphi(x) = \sum_j c_j \, [\exists i : x_i = j]
              \qquad\text{or}\qquad
              \varphi(x) = c \, [\exists i : x_i \in G], \qquad c \ge 0

    (Delong, Osokin, Isack and Boykov, *Fast Approximate Energy Minimization with Label Costs*.) It
    is submodular, as a concave function of the number of variables that take the labels. An energy
    costs O(N), compiled.

    Parameters
    ----------
    costs : array-like of shape (L,), or float with ``labels``
        Not negative.
    labels : array-like of int, optional
        The labels of the group.

    Examples
    --------
    >>> import setwise as sw
    >>> field = sw.fields.Field([[0.0, 0.0, 0.0]] * 4)
    >>> (field + sw.fields.LabelCost([1.0, 2.0, 4.0])).energy([[0, 0, 2, 0], [1, 1, 1, 1]]).tolist()
    [5.0, 2.0]
    >>> group = sw.fields.LabelCost(10.0, labels=[1, 2])
    >>> (field + group).energy([[0, 0, 0, 0], [0, 1, 2, 0]]).tolist()
    [0.0, 10.0]
    >>> group
    LabelCost(10, labels=[1, 2])
    """

    costs: FloatArray
    """(L,), or (1,) for a group."""
    labels: IntArray | None

    def __init__(self, costs: ArrayLike, labels: ArrayLike | None = None) -> None:
        if labels is None:
            self._set(costs=as_numbers(costs, "costs", nonnegative=True), labels=None)
            return
        price = as_number(costs, "costs", nonnegative=True)
        group = np.unique(as_integers(labels, "labels", below=np.iinfo(np.int64).max))
        if np.ndim(labels) != 1 or group.size == 0:
            raise ValueError(
                f"labels must be a list of at least one label, got shape {np.shape(labels)}"
            )
        self._set(costs=np.array([price]), labels=group)

    @property
    def is_submodular(self) -> bool:
        return True

    def check(self, n_variables: int, n_labels: int) -> None:
        if self.labels is None and len(self.costs) != n_labels:
            raise ValueError(
                f"costs must have an entry for each of the field's {n_labels} labels, "
                f"got {len(self.costs)}"
            )
        if self.labels is not None and self.labels.max() >= n_labels:
            raise ValueError(
                f"labels must be among the field's {n_labels} labels, numbered from 0, "
                f"got {self.labels.max()}"
            )

    def energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        used = np.zeros((len(labels), n_labels), np.uint8)
        _core.used_labels(labels, used)
        if self.labels is None:
            return np.asarray(used @ self.costs)
        return np.asarray(used[:, self.labels].any(axis=1) * self.costs[0])

    def terms(self, n_variables: int, n_labels: int) -> tuple[LabelTerm, ...]:
        if self.labels is None:
            groups = np.eye(n_labels, dtype=np.bool_)
        else:
            groups = np.isin(np.arange(n_labels), self.labels)[None, :]
        return tuple(
            LabelTerm._of(float(cost), group)
            for cost, group in zip(self.costs, groups, strict=True)
            if cost > 0
        )

    def __repr__(self) -> str:
        if self.labels is None:
            many = len(self.costs) > 8
            costs = f"labels={len(self.costs)}, costs={range_in_repr(self.costs)}"
            return f"LabelCost({costs if many else self.costs.tolist()})"
        return f"LabelCost({self.costs[0]:g}, labels={self.labels.tolist()})"
