"""Losses that are sums of losses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray, as_list, as_numbers
from setwise.functions import Cardinality, Modular, SetFunction
from setwise.functions._families._compose import Sum, collected
from setwise.losses._base import Loss, LossTraits
from setwise.losses._families import Family, TableRows, Terms
from setwise.losses._labels import Labels


class SumLoss(Loss):
    """A weighted sum of losses with positive weights, as made by ``a + b`` and ``2.0 * a``.

    Parameters
    ----------
    terms : sequence of Loss
    coefficients : array of shape (len(terms),), optional
        Positive; 1 by default.

    Examples
    --------
    >>> import setwise as sw
    >>> loss = 0.5 * sw.losses.Jaccard() + 0.25 * sw.losses.Hamming()
    >>> loss([1, 1, 0, 0], [1, 0, 0, 0])
    0.5
    """

    terms: tuple[Loss, ...]
    coefficients: FloatArray

    def __init__(self, terms: Sequence[Loss], coefficients: ArrayLike | None = None) -> None:
        terms = as_list(terms, "terms", "losses")
        if not terms:
            raise ValueError("terms must hold at least one loss, got none")
        scales = as_numbers(
            np.ones(len(terms)) if coefficients is None else coefficients,
            "coefficients",
            shape=(len(terms),),
        )
        if scales.min() <= 0:
            raise ValueError(f"coefficients must be positive, got {scales.min():g}")
        flat: list[Loss] = []
        flat_scales: list[float] = []
        for term, scale in zip(terms, scales, strict=True):
            if not isinstance(term, Loss):
                raise TypeError(f"terms must be losses, got {type(term).__name__}")
            if isinstance(term, SumLoss):
                flat.extend(term.terms)
                flat_scales.extend(scale * term.coefficients)
            else:
                flat.append(term)
                flat_scales.append(float(scale))
        self._set(terms=tuple(flat), coefficients=np.array(flat_scales))

    def function_of(self, positive: BoolArray) -> SetFunction:
        return Sum([term.function_of(positive) for term in self.terms], self.coefficients)

    def _key(self, positive: BoolArray) -> object:
        return tuple(term._key(positive) for term in self.terms)

    def _family(self, labels: Labels) -> Family | None:
        """Return the family of the sum; losses of the number of mistakes have a joint table."""
        sizes, which = np.unique(labels.sizes, return_inverse=True)
        functions: list[Cardinality] = []
        for p in sizes:
            function = self._remember(("collected", int(p)), partial(self._of_size, int(p)))
            if not isinstance(function, Cardinality):
                return None
            functions.append(function)
        return TableRows.of(functions, which)

    def _of_size(self, p: int) -> SetFunction | None:
        parts = [term.function_of(np.zeros(p, np.bool_)) for term in self.terms]
        if not all(isinstance(part, Cardinality | Modular) for part in parts):
            return None
        return collected(Sum(parts, self.coefficients))

    def _values(self, labels: Labels, mistakes: BoolArray) -> FloatArray:
        values = np.zeros(labels.n)
        for term, scale in zip(self.terms, self.coefficients, strict=True):
            values += scale * term._values(labels, mistakes)
        return values

    def _gains(self, labels: Labels, order: IntArray, chains: IntArray) -> FloatArray:
        gains = np.zeros(len(order))
        for term, scale in zip(self.terms, self.coefficients, strict=True):
            gains += scale * term._gains(labels, order, chains)
        return gains

    def _up_to_order(self, labels: Labels) -> Iterator[tuple[SetFunction, IntArray]]:
        if len(self.terms) > 1:
            yield from self._distinct(labels)
            return
        for function, rows in self.terms[0]._up_to_order(labels):
            yield Sum([function], self.coefficients), rows

    @property
    def _traits(self) -> LossTraits:  # type: ignore[override]
        return LossTraits(is_symmetric=all(term._traits.is_symmetric for term in self.terms))

    @property
    def _form(self) -> Terms:
        return Terms(self, self.terms, self.coefficients)

    def _has_maximizer(self, *, slack: bool) -> bool:
        """Return whether one term has a maximiser; margin rescaling also allows a modular part."""
        if len(self.terms) == 1:
            return self.terms[0]._has_maximizer(slack=slack)
        beside = self._beside_modular()
        return not slack and beside is not self and beside._has_maximizer(slack=False)

    def _summands(self) -> list[tuple[float, Loss]]:
        return list(zip(self.coefficients.tolist(), self.terms, strict=True))

    def _unscaled(self) -> tuple[Loss, float]:
        if len(self.terms) == 1:
            return self.terms[0], float(self.coefficients[0])
        return self, 1.0

    def _beside_modular(self) -> Loss:
        others = [term for term in self.terms if not term._traits.is_modular]
        return others[0] if len(others) == 1 else self

    def _without_modular(self, labels: Labels) -> tuple[Loss, FloatArray | None]:
        kept = [k for k, term in enumerate(self.terms) if not term._traits.is_modular]
        if not kept or len(kept) == len(self.terms):
            return self, None
        total = np.zeros(len(labels.positive))
        for term, scale in zip(self.terms, self.coefficients, strict=True):
            weights = term._element_weights(labels)
            if weights is not None:
                total += scale * weights
        return SumLoss([self.terms[k] for k in kept], self.coefficients[kept]), total

    @property
    def is_submodular(self) -> bool | None:
        if all(term.is_submodular is True for term in self.terms):
            return True
        return False if len(self.terms) == 1 and self.terms[0].is_submodular is False else None

    @property
    def is_increasing(self) -> bool | None:
        if all(term.is_increasing is True for term in self.terms):
            return True
        return False if len(self.terms) == 1 and self.terms[0].is_increasing is False else None

    def __repr__(self) -> str:
        return " + ".join(
            repr(term) if scale == 1 else f"{scale:g} * {term!r}"
            for term, scale in zip(self.terms, self.coefficients, strict=True)
        )
