"""Concave functions of the weight of the mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import (
    BoolArray,
    FloatArray,
    IntArray,
    as_count,
    as_function,
    as_number,
    as_numbers,
    call_on_arrays,
)
from setwise.functions import Cardinality, ConcaveOfModular
from setwise.losses._base import Loss, LossTraits
from setwise.losses._families import Curve, Family, TableRows, Tables
from setwise.losses._labels import Labels, read_labels
from setwise.losses._modular import flat_weights

# The largest number of frequent itemsets. Each stores a column of packed bits, so that a million of
# them take 1.25 GB for 10,000 rows. Chosen by hand to bound the memory.
_MOST_ITEMSETS = 1_000_000

Rows = NDArray[np.uint8]
Itemset = tuple[tuple[int, ...], Rows]


class ConcaveLoss(Loss):
    r"""The submodular loss l(I) = h(:math:`\sum_{i \in I} \beta_i`) - h(0) with a concave h.

    Parameters
    ----------
    concave : callable
        h, called with an array; checked to be concave on a grid of [0, sum of the weights].
    weights : array of shape (p,), optional
        Not negative; by default 1 for every element, in sets of any size.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> loss = sw.losses.ConcaveLoss(np.sqrt, [9.0, 16.0])
    >>> loss([1, 1], [0, 0])
    5.0
    """

    concave: Callable[..., ArrayLike]
    weights: FloatArray | None

    def __init__(self, concave: Callable[..., ArrayLike], weights: ArrayLike | None = None) -> None:
        as_function(concave, "concave", "sums")
        checked = None if weights is None else as_numbers(weights, "weights", nonnegative=True)
        zero = float(call_on_arrays(concave, "concave", np.zeros(1))[0])
        self._set(concave=concave, weights=checked, _zero=zero)
        if checked is not None:
            ConcaveOfModular(concave, checked)

    def function_of(self, positive: BoolArray) -> ConcaveOfModular:
        weights = np.ones(len(positive)) if self.weights is None else self.weights
        if len(weights) != len(positive):
            raise ValueError(
                f"y must have {len(weights)} elements a set, one for each weight of the loss, "
                f"got {len(positive)}"
            )
        return ConcaveOfModular(partial(_from_zero, self.concave, self._zero), weights)

    _zero: float

    def _key(self, positive: BoolArray) -> object:
        return len(positive)

    def _family(self, labels: Labels) -> Family | None:
        """Return the family of losses of the number of mistakes, or None if there are weights."""
        if self.weights is not None:
            return None
        sizes, which = np.unique(labels.sizes, return_inverse=True)
        return TableRows.of([self._sizes(int(p)) for p in sizes], which)

    def _sizes(self, p: int) -> Cardinality:
        def table() -> Cardinality:
            # This checks that h is concave up to p.
            function = self.function_of(np.zeros(p, np.bool_))
            return Cardinality(function._at(np.arange(p + 1.0)))

        return self._remember(("sizes", p), table)

    def _gains(self, labels: Labels, order: IntArray, chains: IntArray) -> FloatArray:
        flat_weights(self.weights, labels)
        if self.weights is None:
            for p in np.unique(labels.sizes):  # check that h is concave, once per size
                self._remember(int(p), partial(self.function_of, np.zeros(p, np.bool_)))
        steps = np.ones(len(order)) if self.weights is None else self.weights[order]
        return concave_gains(self.concave, steps, chains)

    @property
    def _traits(self) -> LossTraits:  # type: ignore[override]
        return LossTraits(is_symmetric=self.weights is None)

    @property
    def _form(self) -> Tables | Curve:
        if self.weights is None:
            return Tables(self, of_size=True)
        return Curve(self.concave, self.weights)

    def _has_maximizer(self, *, slack: bool) -> bool:
        return self.weights is None

    @property
    def is_submodular(self) -> bool:
        return True

    @property
    def is_increasing(self) -> bool | None:
        if self.weights is None:
            return None
        return self.function_of(np.zeros(len(self.weights), np.bool_)).is_increasing

    def __repr__(self) -> str:
        name = getattr(self.concave, "__name__", repr(self.concave))
        return f"{type(self).__name__}({name})"


def _from_zero(concave: Callable[..., ArrayLike], zero: float, sums: FloatArray) -> FloatArray:
    return call_on_arrays(concave, "concave", sums) - zero


def concave_gains(
    concave: Callable[..., ArrayLike], steps: FloatArray, chains: IntArray
) -> FloatArray:
    """Return h(sum after) - h(sum before) along chains of weights, with two calls of h in total."""
    sums = np.empty(len(steps))
    _core.chain_sums(steps, chains, sums)
    before = np.empty_like(sums)
    before[1:] = sums[:-1]
    before[chains[:-1][np.diff(chains) > 0]] = 0.0  # each chain begins with the empty set
    return np.subtract(
        call_on_arrays(concave, "concave", sums), call_on_arrays(concave, "concave", before)
    )


class TruncatedModular(ConcaveLoss):
    r"""The loss l(I) = :math:`\min(l_{\max}, \sum_{i \in I} \beta_i)` of equation (51).

    Parameters
    ----------
    limit : float
        l_max, positive. The loss is not modular if l_max is below the sum of the weights.
    weights : array of shape (p,), optional
        beta, not negative; 1 for every element by default.

    Examples
    --------
    >>> import setwise as sw
    >>> loss = sw.losses.TruncatedModular(1.3, [1.0, 0.5, 0.2])
    >>> loss([1, 1, 0], [0, 0, 0])
    1.3
    """

    limit: float

    def __init__(self, limit: float = 1.0, weights: ArrayLike | None = None) -> None:
        self._set(limit=as_number(limit, "limit", positive=True))
        super().__init__(partial(np.minimum, self.limit), weights)

    @property
    def is_increasing(self) -> bool:
        return True

    def __repr__(self) -> str:
        weights = "" if self.weights is None else f", {self.weights.tolist()}"
        return f"TruncatedModular({self.limit:g}{weights})"


class ItemsetLoss(ConcaveLoss):
    r"""The loss l(I) = :math:`\sqrt{\sum_{i \in I} m_i}` of equations (55) and (56).

    Here m_i is the number of frequent itemsets with label i. Mistakes in labels that occur together
    cost more, and each further mistake adds less. An itemset is frequent if at least a share
    ``min_support`` of the rows of Y contain it.

    Parameters
    ----------
    counts : array of shape (p,)
        m_i, not negative; ``ItemsetLoss.from_labels(Y)`` counts them.

    Examples
    --------
    >>> import setwise as sw
    >>> Y = [[1, 1, 0], [1, 1, 0], [0, 1, 1], [1, 1, 1]]
    >>> loss = sw.losses.ItemsetLoss.from_labels(Y, min_support=0.5)
    >>> loss.weights.tolist()  # {0}, {1}, {2}, {0, 1}, {1, 2}
    [2.0, 3.0, 2.0]
    """

    def __init__(self, counts: ArrayLike) -> None:
        super().__init__(np.sqrt, as_numbers(counts, "counts", nonnegative=True))

    @classmethod
    def from_labels(
        cls, Y: ArrayLike, min_support: float = 0.1, max_size: int | None = None
    ) -> ItemsetLoss:
        """Make the loss whose itemsets are mined from the rows of Y, shape (n, p)."""
        return cls(_itemset_counts(Y, min_support, max_size))

    @property
    def is_increasing(self) -> bool:
        return True

    def __repr__(self) -> str:
        assert self.weights is not None
        return f"ItemsetLoss({self.weights.tolist()})"


def _itemset_counts(Y: ArrayLike, min_support: float, max_size: int | None) -> FloatArray:
    """Return the number of frequent itemsets with each label (Lovász hinge paper, equation (56)).

    A set of labels is frequent if at least ``min_support`` of the rows are positive in all of them.
    Every part of a frequent set is frequent, so sets of k labels come from pairs of sets of k - 1
    that differ in their last label. The cost is O(n) per candidate, with eight rows per byte.
    """
    labels = read_labels(Y, name="Y")
    if labels.layout != "rows" or labels.n == 0:
        raise ValueError(f"Y must have shape (n, p) with n at least 1, got {labels.shape}")
    min_support = as_number(min_support, "min_support")
    if not 0 < min_support <= 1:
        raise ValueError(f"min_support must lie in (0, 1], got {min_support}")
    largest = labels.shape[1] if max_size is None else as_count(max_size, "max_size", least=1)
    least = max(1.0, min_support * labels.n - 1e-9)
    columns = np.packbits(labels.positive.reshape(labels.shape).astype(np.bool_).T, axis=1)
    counts = np.zeros(labels.shape[1])
    level: Iterable[Itemset] = [((j,), column) for j, column in enumerate(columns)]
    found = 0
    for _ in range(largest):
        frequent: list[Itemset] = []
        for items, rows in level:
            if _support(rows) >= least:
                frequent.append((items, rows))
                counts[list(items)] += 1
            if found + len(frequent) > _MOST_ITEMSETS:
                raise ValueError(
                    f"min_support gives more than {_MOST_ITEMSETS} frequent itemsets, "
                    f"got {min_support}: raise it, or set max_size"
                )
        found += len(frequent)
        if len(frequent) < 2:  # a larger set would be the union of two of them
            break
        level = _joined(frequent)
    return counts


def _support(rows: Rows) -> int:
    return int(np.bitwise_count(rows).sum())


def _joined(level: list[Itemset]) -> Iterator[Itemset]:
    """Return candidates one label larger, from pairs of sets that differ in their last label."""
    for k, (items, rows) in enumerate(level):
        for others, other_rows in islice(level, k + 1, None):
            if others[:-1] != items[:-1]:
                break
            yield (*items, others[-1]), rows & other_rows
