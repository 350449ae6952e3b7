"""Diversity by groups: a labelling is in a group if it uses one of the group's labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    as_count,
    as_integers,
    as_list,
    as_number,
)
from setwise.diversities._addition import Addition
from setwise.diversities._base import Diversity, as_weight
from setwise.diversities._concave import ConcaveCount
from setwise.fields._potentials._label_cost import LabelCost

Concave: TypeAlias = str | Callable[[FloatArray], FloatArray]


class _Counted(Diversity):
    r"""Groups of labellings, each with a concave function of the number of its items.

    .. math:: d(S) = \lambda \sum_i \Bigl( h(|G_i \cap S|) - h(0) - w \, |G_i \cap S| \Bigr)

    A subclass defines the groups of a labelling. The gain is the sum over these of :math:`\lambda
    (h(n_i + 1) - h(n_i) - w)`, which is not positive if w is at least h(1) - h(0).
    """

    h: ConcaveCount
    weight: float
    parsimony: float

    def _set_counted(self, h: Concave, weight: float, parsimony: float | None) -> None:
        concave = ConcaveCount(h)
        least = float(concave.steps(0)[0])
        if parsimony is None:
            price = max(1.0, least)
        else:
            price = as_number(parsimony, "parsimony", nonnegative=True)
        self._set(h=concave, weight=as_weight(weight), parsimony=price)

    @property
    def is_monotone(self) -> bool | None:
        if self.parsimony == 0 or self.weight == 0:
            return True
        # If w > 0 and the steps of h decrease to zero, gains become negative.
        return False if self.h.flattens else None

    @property
    def is_submodular(self) -> bool:
        return True

    @property
    def copies_take_most(self) -> bool:
        return True

    def _depends_on_labels(self, n_earlier: int) -> bool:
        return False

    def gain_of(self, labels: IntArray, labelings: IntArray, n_labels: int) -> float:
        prices = self._costs(labelings, n_labels)
        return 0.0 - float(prices[self._members(labels[None], n_labels)[0]].sum())

    def _costs(self, labelings: IntArray, n_labels: int) -> FloatArray:
        """Return lambda (w - h(n_i + 1) + h(n_i)) of each group with n_i items."""
        counts = self._members(labelings, n_labels).sum(axis=0)
        steps = self.h.steps(len(labelings))
        return np.asarray(self.weight * (self.parsimony - steps[counts]))

    def _checked_costs(self, labelings: IntArray, n_labels: int) -> FloatArray:
        costs = self._costs(labelings, n_labels)
        if (costs < -1e-12 * self.weight).any():
            raise ValueError(
                f"parsimony must be at least h(1) - h(0) = {self.h.steps(0)[0]:g} for inference, "
                f"which can take costs and no rewards, got {self.parsimony:g}"
            )
        return np.maximum(costs, 0.0)

    def _members(self, labelings: IntArray, n_labels: int) -> BoolArray:
        """Return which labellings are in which groups, (m, number of groups)."""
        raise NotImplementedError

    def _options(self) -> str:
        return f"h={self.h!r}, weight={self.weight:g}, parsimony={self.parsimony:g}"


class GroupCoverage(_Counted):
    r"""A reward for items that use labels of groups that earlier items did not use.

    .. math:: d(S) = \lambda \sum_i \Bigl( h(n_i(S)) - h(0) - w \, n_i(S) \Bigr), \qquad
              n_i(S) = |\{y \in S : y \text{ uses a label of group } i\}|

    Equations (4) and (6) of the paper, with its parsimony factor of weight w, which spreads groups
    over the list instead of putting them all into one item. It is submodular, and monotone without
    parsimony. The step is a ``LabelCost`` of :math:`\lambda (w - h(n_i + 1) + h(n_i))` for each
    group. The cost is nonnegative if w is at least h(1) - h(0), and expansion moves then support
    it. The time is O(m N).

    Parameters
    ----------
    groups : sequence of lists of int
        The labels of each group; groups may overlap.
    h : {"min1", "sqrt", "log1p"} or callable
        Increasing and concave, of an array of counts; a callable is checked on the counts used.
    weight : float
        :math:`\lambda \ge 0`.
    parsimony : float, optional
        w; by default the larger of 1 and h(1) - h(0). Values and gains are defined for any w that
        is not negative, ``diverse`` needs at least h(1) - h(0).

    Examples
    --------
    >>> import setwise as sw
    >>> animals_or_vehicles = sw.diversities.GroupCoverage([[1, 2], [3]], "min1", 5.0)
    >>> animals_or_vehicles.gain([0, 2], [[0, 1]]), animals_or_vehicles.gain([0, 3], [[0, 1]])
    (-5.0, 0.0)
    >>> animals_or_vehicles.is_monotone, animals_or_vehicles.is_submodular
    (False, True)
    """

    groups: tuple[IntArray, ...]

    def __init__(
        self,
        groups: Iterable[ArrayLike],
        h: Concave = "min1",
        weight: float = 1.0,
        *,
        parsimony: float | None = None,
    ) -> None:
        checked = []
        for k, group in enumerate(as_list(groups, "groups", "lists of labels")):
            labels = np.unique(as_integers(group, "groups", below=np.iinfo(np.int64).max))
            if as_array(group, "groups").ndim != 1 or labels.size == 0:
                raise ValueError(f"groups must each hold at least one label, group {k} does not")
            checked.append(labels)
        self._set(groups=tuple(checked))
        self._set_counted(h, weight, parsimony)

    def _members(self, labelings: IntArray, n_labels: int) -> BoolArray:
        used = used_labels(labelings, n_labels)
        inside = [used[:, group[group < n_labels]].any(axis=1) for group in self.groups]
        return np.array(inside, np.bool_).reshape(len(self.groups), len(labelings)).T

    def addition(self, labelings: IntArray, n_labels: int) -> Addition:
        costs = self._checked_costs(labelings, n_labels)
        priced = zip(self.groups, costs, strict=True)
        return Addition(
            potentials=[LabelCost(float(cost), labels=group) for group, cost in priced if cost > 0]
        )

    def __repr__(self) -> str:
        return f"GroupCoverage({[group.tolist() for group in self.groups]}, {self._options()})"


class CountedLabels(_Counted):
    """Groups of labels, of which one label, the background, may not count."""

    background: int | None

    def _set_labels(
        self, h: Concave, weight: float, parsimony: float | None, background: int | None
    ) -> None:
        self._set(background=None if background is None else as_count(background, "background"))
        self._set_counted(h, weight, parsimony)

    def _hidden(self, n_labels: int) -> list[int]:
        """Return the labels that do not count: the background, if the field has it."""
        if self.background is None or self.background >= n_labels:
            return []
        return [self.background]

    def _options(self) -> str:
        background = "" if self.background is None else f", background={self.background}"
        return super()._options() + background


class LabelDiversity(CountedLabels):
    r"""A reward for items that use labels that few earlier items used.

    .. math:: d(S) = \lambda \sum_l \Bigl( h(n_l(S)) - h(0) - w \, n_l(S) \Bigr), \qquad
              n_l(S) = |\{y \in S : l \in y\}|

    Each label is a group (Section 3.1 of the paper). The step is a label cost of :math:`\lambda (w
    - h(n_l + 1) + h(n_l))`. The cost is nonnegative if w, the weight of the parsimony factor, is at
    least h(1) - h(0), and expansion moves then support it. The diversity is submodular, and
    monotone without parsimony. The time is O(m N).

    Parameters
    ----------
    h : {"min1", "sqrt", "log1p"} or callable
        Increasing and concave, of an array of counts; a callable is checked on the counts used.
    weight : float
        :math:`\lambda \ge 0`.
    parsimony : float, optional
        w; by default the larger of 1 and h(1) - h(0). Values and gains are defined for any w that
        is not negative, ``diverse`` needs at least h(1) - h(0).
    background : int, optional
        A label that is expected everywhere, and does not count.

    Examples
    --------
    >>> import setwise as sw
    >>> d = sw.diversities.LabelDiversity("min1", weight=3.0, background=0)
    >>> d.gain([0, 1], [[0, 1]]), d.gain([0, 2], [[0, 1]])
    (-3.0, 0.0)
    >>> sw.diversities.LabelDiversity("min1", weight=3.0, parsimony=0.0).is_monotone
    True
    """

    def __init__(
        self,
        h: Concave = "min1",
        weight: float = 1.0,
        *,
        parsimony: float | None = None,
        background: int | None = None,
    ) -> None:
        self._set_labels(h, weight, parsimony, background)

    def _members(self, labelings: IntArray, n_labels: int) -> BoolArray:
        used = used_labels(labelings, n_labels)
        used[:, self._hidden(n_labels)] = False
        return used

    def addition(self, labelings: IntArray, n_labels: int) -> Addition:
        costs = self._checked_costs(labelings, n_labels)
        costs[self._hidden(n_labels)] = 0.0
        return Addition(potentials=[LabelCost(costs)] if costs.any() else [])

    def __repr__(self) -> str:
        return f"LabelDiversity({self._options()})"


def used_labels(labelings: IntArray, n_labels: int) -> BoolArray:
    """Return which labels each labelling uses, (m, L)."""
    used = np.zeros((len(labelings), n_labels), np.bool_)
    rows = np.repeat(np.arange(len(labelings)), labelings.shape[1])
    used[rows, labelings.ravel()] = True
    return used
