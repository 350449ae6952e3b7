"""The base class of diversities: the value of a list of labellings, and gains of new items."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    BATCH,
    FloatArray,
    IntArray,
    as_array,
    as_count,
    as_integers,
    as_list,
    as_number,
)
from setwise._foundation._base_classes import Immutable
from setwise.diversities._addition import Addition
from setwise.fields._field import Field, as_field

if TYPE_CHECKING:
    from setwise.diversities._combined import CombinedDiversity


# The largest number of labels: arrays with an entry per label are made at once.
MOST_LABELS = BATCH


class Diversity(Immutable, ABC):
    r"""A function d of lists of labellings, with :math:`d(\emptyset) = 0`.

    Its gains :math:`d(y \mid S) = d(S + y) - d(S)` are what the greedy algorithm adds to the
    relevance -E(y) of a labelling y. As a function of y a gain is a potential, so that the greedy
    step is MAP inference in ``augment(field, S)`` (Prasad, Jegelka and Batra, *Submodular meets
    Structured*, equation (3)). Lists may repeat an item, and every copy counts. So d is a set
    function on sufficiently many copies of each labelling.

    Diversities add up, with weights: ``d1 + 2.0 * d2`` (the paper's circled plus).

    A subclass of your own defines the gain (``gain_of``), the terms that its negative adds to the
    energy of a step (``addition``), and its properties: ``is_monotone``, ``is_submodular`` and,
    for a guarantee, ``copies_take_most``. It is immutable, so a class with fields
    is a frozen dataclass (``dataclass(frozen=True, eq=False)``). A diversity
    that is proportional to its field ``weight`` can be multiplied by numbers; any other needs
    ``scaled`` for that.

    Examples
    --------
    >>> import setwise as sw
    >>> d = sw.diversities.DivMBest(1.0) + 2.0 * sw.diversities.HammingBall(weight=1.0, gamma=0.5)
    >>> isinstance(d, sw.diversities.Diversity)
    True
    >>> round(d.gain([0, 1], [[0, 0]]), 6)  # 1 - 2 exp(-0.5)
    -0.213061
    """

    @property
    @abstractmethod
    def is_monotone(self) -> bool | None:
        """Whether gains are never negative; None if that is not known."""

    @property
    @abstractmethod
    def is_submodular(self) -> bool | None:
        """Whether gains never increase as the list grows; None if that is not known."""

    @property
    def copies_take_most(self) -> bool | None:
        r"""Whether, among all lists of m items, m copies of y reduce the gain of y most.

        :math:`d(y \mid S + m \cdot y) \le d(y \mid S + S')` for all S and all S' of m items. The
        guarantee of a list needs it in addition to ``is_submodular``, to bound how much the gain of
        an item may decrease by other items. The default, None, means that this is not known.
        """
        return None

    @abstractmethod
    def gain_of(self, labels: IntArray, labelings: IntArray, n_labels: int) -> float:
        """Return d(y | S) of checked labels (N,) and labellings (m, N).

        They may have any integer type, the smallest one for large arrays: compare them or use them
        as indices, but convert them before arithmetic.
        """

    @abstractmethod
    def addition(self, labelings: IntArray, n_labels: int) -> Addition:
        """Return -d(y | S) as a function of y, up to a constant, for checked labellings (m, N)."""

    def _lacks_potential(self) -> bool:
        """Return whether gains are no sum of potentials, so that there is no ``addition``."""
        return False

    def _gains_of_all(self, labelings: IntArray, n_labels: int) -> FloatArray:
        """Return d(y | S) of every labelling y in the order of ``all_labelings``."""
        every = all_labelings(labelings.shape[1], n_labels)
        return np.array([self.gain_of(labels, labelings, n_labels) for labels in every])

    def _around(self, labelings: IntArray, n_labels: int) -> tuple[Diversity, Diversity, float]:
        """Return diversities with potentials, whose gains enclose those of this one, and a number.

        Gains are at least those of the first, up to a constant, and at most those of the second
        plus the number.
        """
        return self, self, 0.0

    def _augment(self, field: Field, labelings: IntArray) -> Field:
        """Return the field of E(y) - d(y | S), up to a constant, for checked labellings."""
        self._labels_or_own(field.n_labels)
        return self.addition(labelings, field.n_labels).added_to(field)

    def scaled(self, scale: float) -> Diversity:
        """Return the diversity times a nonnegative number, which changes its weight."""
        if not hasattr(self, "weight"):
            raise TypeError(
                f"{type(self).__name__} must have a weight that it is proportional to, or its own "
                "scaled, to be multiplied by a number, got neither"
            )
        scaled = type(self).__new__(type(self))
        scaled._set(**self._contents() | {"weight": as_weight(scale * self.weight)})
        return scaled

    def _shares_of(self, m: int) -> list[tuple[Diversity, int]]:
        """Return the diversities that make a list of m items, each with its number of items."""
        return [(self, m - 1)]

    def _obstacle(self) -> str | None:
        """Return why a greedy list has no guarantee, or None if it has one."""
        if not self.is_submodular:
            return (
                f"{self!r} is not known to be submodular, and the greedy algorithm may fall short "
                "by any factor"
            )
        if not self.copies_take_most:
            return f"of {self!r} it is not known how much a list may take off the gain of an item"
        return None

    def _depends_on_labels(self, n_earlier: int) -> bool:
        """Return whether the gain given ``n_earlier`` items depends on the number of labels.

        Subclasses whose gain never depends on it return False.
        """
        return True

    def _node_costs(self, m: int) -> FloatArray | None:
        r"""Return the convex :math:`\varphi(n)`, n = 0..m, whose sum over variables is minus d.

        :math:`-d(S) = \sum_v \sum_l \varphi(n_{vl})` for lists of m items, :math:`n_{vl}` of which
        have label l at variable v; None if d is not such a sum. Joint lists need it.
        """
        return None

    def _value(self, labelings: IntArray, n_labels: int) -> float:
        return sum(
            self.gain_of(labels, labelings[:k], n_labels) for k, labels in enumerate(labelings)
        )

    def value(self, labelings: ArrayLike, n_labels: int | None = None) -> float:
        """Return d(S) of a list of labellings, shape (m, N).

        ``n_labels`` is L, the number of labels of the field. It may be omitted if the value does
        not depend on it, or if the diversity was made with it.
        """
        known = self._labels_or_own(n_labels)
        checked, limit = _as_list(labelings, known)
        self._check_labels(len(checked) - 1, known)
        return float(self._value(checked, limit))

    def _known_labels(self) -> int | None:
        """Return the number of labels of the fields; None for fields with any number."""
        return None

    def _labels_or_own(self, n_labels: int | None) -> int | None:
        """Return the given number of labels, or its own; the two must agree."""
        own = self._known_labels()
        if n_labels is not None and own is not None and as_count(n_labels, "n_labels") != own:
            raise ValueError(f"n_labels must be {own}, which {self!r} is for, got {n_labels}")
        return own if n_labels is None else n_labels

    def _check_labels(self, n_earlier: int, n_labels: int | None) -> None:
        if n_labels is None and self._depends_on_labels(n_earlier):
            raise ValueError(
                f"n_labels must be the number of labels of the field for {self!r}, which depends "
                "on it and was not made with it, got None"
            )

    def gain(self, labels: ArrayLike, labelings: ArrayLike, n_labels: int | None = None) -> float:
        """Return d(y | S): labels have shape (N,), the list (m, N); it may be empty, m = 0.

        ``n_labels`` is L, the number of labels of the field. It may be omitted if the gain does not
        depend on it, or if the diversity was made with it.
        """
        y = as_array(labels, "labels")
        if y.ndim != 1:
            raise ValueError(f"labels must have shape (N,), got {y.shape}")
        if y.size and y.dtype.kind not in "iu":
            raise TypeError(f"labels must hold integers, got dtype {y.dtype}")
        earlier = as_array(labelings, "labelings")
        if earlier.size == 0 and earlier.ndim < 2:
            earlier = np.zeros((0, len(y)), np.int64)
        if earlier.ndim != 2 or earlier.shape[1] != len(y):
            raise ValueError(f"labelings must have shape (m, {len(y)}), got {earlier.shape}")
        known = self._labels_or_own(n_labels)
        both, limit = _as_list(np.concatenate([earlier, y[None]]), known)
        self._check_labels(len(earlier), known)
        return float(self.gain_of(both[-1], both[:-1], limit))

    def augment(self, field: Field, labelings: ArrayLike) -> Field:
        r"""Return the field of the next greedy step: energy E(y) - d(y | S), up to a constant.

        Parameters
        ----------
        field : Field
            E, of N variables and L labels.
        labelings : array-like of int, shape (m, N)
            S, the list so far; m = 0 for the first step.
        """
        field = as_field(field)
        array = as_array(labelings, "labelings")
        if array.ndim != 2 or array.shape[1] != field.n_variables:
            raise ValueError(
                f"labelings must have shape (m, {field.n_variables}), got {array.shape}"
            )
        return self._augment(field, as_integers(array, "labelings", below=field.n_labels))

    def __add__(self, other: Diversity) -> CombinedDiversity:
        """Return the sum of two diversities."""
        from setwise.diversities._combined import CombinedDiversity  # a circular import

        if not isinstance(other, Diversity):
            return NotImplemented
        return CombinedDiversity([self, other])

    def __mul__(self, scale: float) -> Diversity:
        """Return the diversity times a number that is not negative."""
        return self.scaled(as_number(scale, "scale", nonnegative=True))

    __rmul__ = __mul__


def _as_list(labelings: ArrayLike, n_labels: int | None) -> tuple[IntArray, int]:
    array = as_array(labelings, "labelings")
    if array.ndim != 2:
        raise ValueError(f"labelings must have shape (m, N), got {array.shape}")
    if n_labels is None:
        limit = MOST_LABELS
    else:
        limit = as_count(n_labels, "n_labels", least=1, most=MOST_LABELS)
    checked = as_integers(array, "labelings", below=limit)
    return checked, int(checked.max(initial=0)) + 1 if n_labels is None else limit


def distances(labels: IntArray, labelings: IntArray) -> IntArray:
    """Return Hamming distances (m,) of labels (N,) to each of the labellings (m, N)."""
    # Faster than count_nonzero along an axis.
    counts = [np.count_nonzero(row != labels) for row in labelings]
    return np.array(counts, np.int64)


def all_labelings(n: int, n_labels: int) -> IntArray:
    """Return all L^N labellings, one per row, the last variable changing first."""
    codes = np.arange(n_labels**n)
    columns = [codes // n_labels**k % n_labels for k in range(n)[::-1]]
    kind = np.min_scalar_type(n_labels - 1)  # saves memory
    return np.array(columns, kind).reshape(n, len(codes)).T


def can_list_all(n: int, n_labels: int) -> bool:
    """Return whether there are few enough labellings to list them."""
    return bool(n * np.log2(n_labels) <= np.log2(BATCH))


def as_weight(weight: object) -> float:
    """Check the weight of a diversity, which is not negative."""
    return as_number(weight, "weight", nonnegative=True)


def as_diversities(values: Iterable[Diversity], name: str) -> tuple[Diversity, ...]:
    """Check that there is at least one diversity."""
    found = tuple(as_list(values, name, "diversities"))
    for diversity in found:
        if not isinstance(diversity, Diversity):
            raise TypeError(f"{name} must be diversities, got {type(diversity).__name__}")
    if not found:
        raise ValueError(f"{name} must hold at least one diversity, got none")
    return found
