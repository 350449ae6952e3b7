"""Diversity by groups: a labelling is in a group if it uses one of the group's labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    BATCH,
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    as_count,
    as_function,
    as_integers,
    as_list,
    as_number,
)
from setwise.diversities._addition import Addition
from setwise.diversities._base import Diversity, all_labelings, as_weight
from setwise.diversities._concave import ConcaveCount
from setwise.fields._potentials._cardinality import CardinalityPotential
from setwise.fields._potentials._label_cost import LabelCost

Concave: TypeAlias = str | Callable[[FloatArray], FloatArray]
Predicate: TypeAlias = Callable[[IntArray], object]


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

    @property
    def _rewards(self) -> bool:
        """Whether a group may be rewarded, because parsimony charges less than the first step."""
        return self.weight > 0 and self.parsimony < (1.0 - 1e-12) * float(self.h.steps(0)[0])

    def _gains_of_all(self, labelings: IntArray, n_labels: int) -> FloatArray:
        n = labelings.shape[1]
        members = self._remember(
            (n, n_labels), lambda: self._members(all_labelings(n, n_labels), n_labels)
        )
        return np.asarray(0.0 - members @ self._costs(labelings, n_labels))

    def _around(self, labelings: IntArray, n_labels: int) -> tuple[Diversity, Diversity, float]:
        if not self._lacks_potential():
            return self, self, 0.0
        without = type(self).__new__(type(self))
        least = float(self.h.steps(0)[0])
        without._set(**self._contents() | {"parsimony": max(self.parsimony, least)})
        groups = self._members(np.zeros((1, labelings.shape[1]), np.int64), n_labels).shape[1]
        return without, without, self.weight * (without.parsimony - self.parsimony) * groups

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
    it. A negative cost for a group of one label is a function of a count. All other steps are made
    by trying all labellings, if these are at most about 1e6. The time is O(m N).

    Parameters
    ----------
    groups : sequence
        Groups may overlap. A list of labels is the group of all labellings that use one of them; an
        array of shape (K, N) is a group of K labellings; and a callable, which gets a labelling of
        shape (N,), says whether it is in the group.
    h : {"min1", "sqrt", "log1p"} or callable
        Increasing and concave, of an array of counts; a callable is checked on the counts used.
    weight : float
        :math:`\lambda \ge 0`.
    parsimony : float, optional
        w; by default the larger of 1 and h(1) - h(0); 0 for a monotone diversity.

    Examples
    --------
    >>> import setwise as sw
    >>> animals_or_vehicles = sw.diversities.GroupCoverage([[1, 2], [3]], "min1", 5.0)
    >>> animals_or_vehicles.gain([0, 2], [[0, 1]]), animals_or_vehicles.gain([0, 3], [[0, 1]])
    (-5.0, 0.0)
    >>> animals_or_vehicles.is_monotone, animals_or_vehicles.is_submodular
    (False, True)
    """

    groups: tuple[IntArray | Predicate, ...]

    def __init__(
        self,
        groups: Iterable[ArrayLike | Predicate],
        h: Concave = "min1",
        weight: float = 1.0,
        *,
        parsimony: float | None = None,
    ) -> None:
        listed = as_list(groups, "groups", "lists of labels")
        self._set(groups=tuple(_as_group(group, k) for k, group in enumerate(listed)))
        self._set_counted(h, weight, parsimony)

    def _lacks_potential(self) -> bool:
        if len(self._labels) == len(self.groups):
            return self._rewards and any(group.size > 1 for group in self._labels)
        return self.weight > 0

    @property
    def _labels(self) -> list[IntArray]:
        """The groups that are given by labels."""
        return [group for group in self.groups if not callable(group) and group.ndim == 1]

    def _members(self, labelings: IntArray, n_labels: int) -> BoolArray:
        used = used_labels(labelings, n_labels)
        inside = [_inside(group, labelings, used) for group in self.groups]
        return np.array(inside, np.bool_).reshape(len(self.groups), len(labelings)).T

    def addition(self, labelings: IntArray, n_labels: int) -> Addition:
        if self._lacks_potential():
            raise ValueError(
                "groups must be of labels, and of one label each unless parsimony is at least "
                f"h(1) - h(0), in a field with more than {BATCH} labellings, got {self!r}"
            )
        costs = self._costs(labelings, n_labels)
        priced = list(zip(self._labels, costs, strict=True))
        return Addition(
            counts=[
                _reward(int(group[0]), -cost, labelings.shape[1])
                for group, cost in priced
                if cost < 0 and group[0] < n_labels
            ],
            potentials=[LabelCost(float(cost), labels=group) for group, cost in priced if cost > 0],
        )

    def __repr__(self) -> str:
        groups = [
            getattr(group, "__name__", "callable") if callable(group) else group.tolist()
            for group in self.groups
        ]
        return f"GroupCoverage({groups}, {self._options()})"


def _as_group(group: ArrayLike | Predicate, k: int) -> IntArray | Predicate:
    if callable(group):
        return as_function(group, "groups", "labels")
    array = as_array(group, "groups")
    if array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(
            f"groups must each hold at least one label or labelling, group {k} does not"
        )
    checked = as_integers(array, "groups", below=np.iinfo(np.int64).max)
    return np.unique(checked) if array.ndim == 1 else np.unique(checked, axis=0)


def _said(answer: object) -> bool:
    """Return the answer of a predicate of the caller's."""
    if isinstance(answer, bool | np.bool_):
        return bool(answer)
    raise TypeError(
        "groups must hold callables that return True or False for a labelling, got "
        f"{type(answer).__name__}"
    )


def _inside(group: IntArray | Predicate, labelings: IntArray, used: BoolArray) -> BoolArray:
    """Return which labellings are in a group, given the labels that each of them uses."""
    if callable(group):
        return np.array([_said(group(labels)) for labels in labelings.astype(np.int64)], np.bool_)
    if group.ndim == 1:
        return np.asarray(used[:, group[group < used.shape[1]]].any(axis=1))
    if group.shape[1] != labelings.shape[1]:
        raise ValueError(
            f"groups must hold labellings of {labelings.shape[1]} variables, got {group.shape[1]}"
        )
    rows = {labels.tobytes() for labels in group}
    return np.array([row.tobytes() in rows for row in labelings.astype(np.int64)], np.bool_)


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
    least h(1) - h(0), and expansion moves then support it. Below it a label may be rewarded
    (equation (8) of the paper is w = 0): ``diverse`` then searches multipliers, which gives a gap.
    The diversity is submodular, and monotone without parsimony. The time is O(m N).

    Parameters
    ----------
    h : {"min1", "sqrt", "log1p"} or callable
        Increasing and concave, of an array of counts; a callable is checked on the counts used.
    weight : float
        :math:`\lambda \ge 0`.
    parsimony : float, optional
        w; by default the larger of 1 and h(1) - h(0); 0 for a monotone diversity.
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
        costs = self._costs(labelings, n_labels)
        costs[self._hidden(n_labels)] = 0.0
        paid = np.maximum(costs, 0.0)
        n = labelings.shape[1]
        return Addition(
            counts=[_reward(k, -cost, n) for k, cost in enumerate(costs.tolist()) if cost < 0],
            potentials=[LabelCost(paid)] if paid.any() else [],
        )

    def __repr__(self) -> str:
        return f"LabelDiversity({self._options()})"


def _reward(label: int, reward: float, n: int) -> CardinalityPotential:
    """Return the price of not using a label, which is the reward for using it up to a constant."""
    table = np.zeros(n + 1)
    table[n] = reward  # all variables differ from the label
    return CardinalityPotential(np.full(n, label), table)


def used_labels(labelings: IntArray, n_labels: int) -> BoolArray:
    """Return which labels each labelling uses, (m, L)."""
    used = np.zeros((len(labelings), n_labels), np.bool_)
    rows = np.repeat(np.arange(len(labelings)), labelings.shape[1])
    used[rows, labelings.ravel()] = True
    return used
