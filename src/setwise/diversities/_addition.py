"""The terms that a diversity adds to the problem of a greedy step."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, IntArray, as_integers, as_list, as_numbers
from setwise._foundation._base_classes import Immutable
from setwise.fields._base import Potential
from setwise.fields._field import Field, as_field
from setwise.fields._potentials._cardinality import CardinalityPotential


class Addition(Immutable):
    r"""The negative gain of a labelling up to a constant, in the parts that a search distinguishes.

    .. math:: -d(y \mid S) = \sum_s \sum_{i : y_i = a_{si}} p_{si}
              + \sum_s T_s(\mathrm{Ham}(y, c_s)) + \sum_k \varphi_k(y) + \mathrm{const}

    Prices change only the unaries, so the step is as easy as MAP inference. For functions of a
    count that are not concave, ``diverse`` searches multipliers. All other parts are handled by the
    methods of ``solve_map``. Additions can be summed: the potentials of a sum keep the order of its
    summands.

    Parameters
    ----------
    prices : sequence of pairs (labels, price)
        Labels a of shape (N,), and the price of each variable that takes its label in them: a
        number for all, or an array of shape (N,). Any change of unaries is a sum of L such pairs.
    counts : sequence of CardinalityPotential
        Each has a center c and a table T.
    potentials : sequence of Potential
        All other potentials.

    Examples
    --------
    >>> import setwise as sw
    >>> away = sw.diversities.Addition(prices=[([0, 1], 2.0)])
    >>> field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0]])
    >>> away.added_to(field).unary.tolist()
    [[2.0, 1.0], [2.0, 2.0]]
    >>> (away + sw.diversities.Addition(potentials=[sw.fields.LabelCost([1.0, 0.0])])).is_empty
    False
    """

    prices: tuple[tuple[IntArray, FloatArray], ...]
    counts: tuple[CardinalityPotential, ...]
    potentials: tuple[Potential, ...]
    _in_order: tuple[Potential, ...]

    def __init__(
        self,
        *,
        prices: Iterable[tuple[ArrayLike, ArrayLike]] = (),
        counts: Iterable[CardinalityPotential] = (),
        potentials: Iterable[Potential] = (),
    ) -> None:
        counted = _as_all(counts, "counts", CardinalityPotential)
        others = _as_all(potentials, "potentials", Potential)
        pairs = as_list(prices, "prices", "pairs (labels, price)")
        self._set(
            prices=tuple(_as_price(pair) for pair in pairs),
            counts=counted,
            potentials=others,
            _in_order=counted + others,
        )

    @property
    def is_empty(self) -> bool:
        """Whether the addition changes no field."""
        return not (self.prices or self._in_order)

    def added_to(self, field: Field) -> Field:
        """Return the field with this added to its energy; the field itself if nothing is added."""
        field = as_field(field)
        if self.prices:
            unary = field.unary.copy()
            everyone = np.arange(field.n_variables)
            for labels, price in self.prices:
                _check_labels(labels, field)
                unary[everyone, labels] += price
            field = field.with_unary(unary)
        for potential in self._in_order:
            field += potential
        return field

    def __add__(self, other: Addition) -> Addition:
        """Return the sum of both."""
        if not isinstance(other, Addition):
            return NotImplemented
        both = Addition()
        both._set(
            prices=self.prices + other.prices,
            counts=self.counts + other.counts,
            potentials=self.potentials + other.potentials,
            _in_order=self._in_order + other._in_order,
        )
        return both

    def __repr__(self) -> str:
        return (
            f"Addition(prices={len(self.prices)}, counts={len(self.counts)}, "
            f"potentials={len(self.potentials)})"
        )


def _as_price(pair: object) -> tuple[IntArray, FloatArray]:
    parts = as_list(pair, "prices", "pairs (labels, price)")
    if len(parts) != 2:
        raise ValueError(f"prices must be pairs (labels, price), got {len(parts)} entries")
    labels = as_integers(parts[0], "prices", below=np.iinfo(np.int64).max)
    if labels.ndim != 1:
        raise ValueError(f"prices must have labels of shape (N,), got {labels.shape}")
    price = as_numbers(parts[1], "prices", shape=None)
    if price.shape not in ((), labels.shape):
        raise ValueError(
            f"prices must be a number or have shape ({len(labels)},), got {price.shape}"
        )
    labels.flags.writeable = price.flags.writeable = False
    return labels, price


def _check_labels(labels: IntArray, field: Field) -> None:
    if len(labels) != field.n_variables:
        raise ValueError(
            f"prices must have a label for each of the field's {field.n_variables} variables, "
            f"got {len(labels)}"
        )
    if labels.max(initial=-1) >= field.n_labels:
        raise ValueError(
            f"prices must hold some of the field's {field.n_labels} labels, numbered from 0, "
            f"got {labels.max()}"
        )


def _as_all(potentials: Iterable[Potential], name: str, kind: type) -> tuple[Potential, ...]:
    found = tuple(as_list(potentials, name, f"objects of {kind.__name__}"))
    for potential in found:
        if not isinstance(potential, kind):
            raise TypeError(
                f"{name} must be objects of {kind.__name__}, got {type(potential).__name__}"
            )
    return found
